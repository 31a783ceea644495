/** Types of the API's requests and responses. The schemas of the routes determine them. */
import type { ApiCalls as Api, EntryBody } from "../../../../src/plugin.ts";

export type { Api, EntryBody };

type Item<List extends readonly unknown[]> = List[number];

export type Action = Api["GET /v1/actions/{id}"]["response"];
export type Backtest = Extract<Api["POST /v1/replay"]["response"], { kind: "backtest" }>;
export type Event = Item<Api["GET /v1/events/page"]["response"]["events"]>;
export type LinkAnswer = Api["POST /v1/approval-link"]["response"];
export type LinkedAction = LinkAnswer["action"];
export type Policy = Api["GET /v1/policies/{id}"]["response"];

/** A ledger entry of one type. */
export type EntryOf<Type extends EntryBody["type"]> = Extract<EntryBody, { type: Type }>;
export type ApprovalEntry = EntryOf<"approval">;
export type RedecisionEntry = EntryOf<"redecision">;
