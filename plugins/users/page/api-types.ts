/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type Delegation = Api["GET /v1/delegations"]["response"]["delegations"][number];
export type Device = Api["GET /v1/users/{id}/devices"]["response"]["devices"][number];
export type Session = Api["GET /v1/users/{id}/sessions"]["response"]["sessions"][number];
export type User = Api["GET /v1/session"]["response"]["user"];
export type UserDetails = Api["GET /v1/users/{id}"]["response"];
