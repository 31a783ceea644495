/** Types of the API's requests and responses. The schemas of the routes determine them. */
import type { ApiCalls as Api, EntryBody, PluginScope } from "../../../../src/plugin.ts";

export type { Api, EntryBody, PluginScope };

type Item<List extends readonly unknown[]> = List[number];

export type Action = Api["GET /v1/actions/{id}"]["response"];
export type Agent = Api["GET /v1/agents/{id}"]["response"];
export type Analytics = Api["GET /v1/analytics"]["response"];
export type ApiKey = Api["GET /v1/api-keys/{id}"]["response"];
export type Backtest = Extract<Api["POST /v1/replay"]["response"], { kind: "backtest" }>;
export type BreakGlassApproval = Item<Api["GET /v1/break-glass"]["response"]["break_glass"]>;
export type Delegation = Item<Api["GET /v1/delegations"]["response"]["delegations"]>;
export type Delivery = Item<Api["GET /v1/deliveries"]["response"]["deliveries"]>;
export type Device = Item<Api["GET /v1/users/{id}/devices"]["response"]["devices"]>;
export type Event = Item<Api["GET /v1/events/page"]["response"]["events"]>;
export type Grant = Api["GET /v1/grants/{id}"]["response"];
export type LegalHold = Api["GET /v1/holds/{id}"]["response"];
export type LinkAnswer = Api["POST /v1/approval-link"]["response"];
export type LinkedAction = LinkAnswer["action"];
export type Oversight = Api["GET /v1/analytics/oversight"]["response"];
export type Policy = Api["GET /v1/policies/{id}"]["response"];
export type Replay = Extract<Api["POST /v1/replay"]["response"], { kind: "decision" }>;
export type Session = Item<Api["GET /v1/users/{id}/sessions"]["response"]["sessions"]>;
export type Stop = Item<Api["GET /v1/stop"]["response"]["stops"]>;
export type User = Api["GET /v1/session"]["response"]["user"];
export type UserDetails = Api["GET /v1/users/{id}"]["response"];

/** A ledger entry of one type. */
export type EntryOf<Type extends EntryBody["type"]> = Extract<EntryBody, { type: Type }>;
export type ApprovalEntry = EntryOf<"approval">;
export type RedecisionEntry = EntryOf<"redecision">;
