/**
 * Requests and responses of the API, from the schemas of the service's routes. The package contains these types printed
 * out (.ci/client-types.mjs), so that its declarations do not need the service.
 */
import type { ApiCalls } from "../../src/contract/api-calls.ts";

export type Action = ApiCalls["GET /v1/actions/{id}"]["response"];
export type ActionList = ApiCalls["GET /v1/actions"]["response"];
export type Plan = ApiCalls["GET /v1/plans/{id}"]["response"];
export type ListedPlan = ApiCalls["GET /v1/plans"]["response"]["plans"][number];
export type Submission = ApiCalls["POST /v1/actions"]["body"];
export type Result = ApiCalls["POST /v1/actions/{id}/result"]["body"];
export type ListQuery = Omit<ApiCalls["GET /v1/actions"]["query"], "agent" | "offset">;
export type Event = ApiCalls["GET /v1/events/page"]["response"]["events"][number];
export type EventsQuery = Omit<ApiCalls["GET /v1/events"]["query"], "agent">;
