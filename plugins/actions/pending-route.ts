/** What waits for a verdict, in the order in which it runs out: a list in order of decisions shows that last. */
import { Type } from "@sinclair/typebox";
import {
  decodeCursor,
  DEFAULT_LIMIT,
  defineRoute,
  type Host,
  nextLink,
  PAGE_QUERY,
  type Route,
} from "../../src/plugin.ts";
import type { ActionRow, PendingCursor } from "../../src/storage/index.ts";
import { invalidCursor, listReply, readPage } from "../../src/core.ts";
import { readRecord } from "./action-record.ts";
import { contentBytes } from "./rows.ts";
import { ActionRecord } from "./schemas.ts";

const LIST = "approvals";
const { limit, cursor } = PAGE_QUERY;
const Query = Type.Object({ limit, cursor }, { additionalProperties: false });

const Answer = Type.Object(
  {
    actions: Type.Array(ActionRecord),
    total: Type.Integer({ minimum: 0, description: "All that wait and that this key may see, on every page." }),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
);

export function pendingRoute(host: Host, tag: string): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/approvals",
    tag,
    summary: "List what waits for approval, first what expires first",
    scope: ["actions:read", "actions:read_own"],
    query: Query,
    description:
      "Pending actions whose time has not run out. One that is submitted while the pages are read is found on them where it expires behind the cursor.",
    responses: { 200: { description: "A page.", schema: Answer } },
    errors: ["INVALID_CURSOR"],
    async handle({ query, credential, reserveResponseBytes: holdResponse }) {
      const now = host.clock();
      const { compiled: set } = await host.policies.current();
      const place = query.cursor === undefined ? null : placeOf(query.cursor);
      // What is overdue stays out whether or not it is marked so already: this read waits for no write.
      const after =
        place !== null && place.expires_at > now ? place : { expires_at: now, decision_seq: Number.MAX_SAFE_INTEGER };
      const [{ items, next_cursor }, total] = await Promise.all([
        readPage<ActionRow>(
          LIST,
          { limit: query.limit ?? DEFAULT_LIMIT, bytes: host.config.server.max_page_bytes },
          {
            read: (last, limit) => host.storage.pendingActions(credential.visibility, placeAfter(last) ?? after, limit),
            size: contentBytes,
            position: (row) => `${row.expires_at ?? 0}.${row.decision_seq}`,
            render: (row) => readRecord(host, row, credential, { token: false, set }),
            turn: host.waitForReadSlot,
            hold: holdResponse,
          },
        ),
        host.storage.pendingCount(credential.visibility, now),
      ]);
      return listReply("actions", items, { total, next_cursor }, nextLink("/v1/approvals", query, next_cursor));
    },
  });
}

function placeAfter(row: ActionRow | null): PendingCursor | null {
  return row === null ? null : { expires_at: row.expires_at ?? 0, decision_seq: row.decision_seq };
}

function placeOf(cursor: string): PendingCursor {
  const match = /^(\d{1,16})\.(\d{1,16})$/.exec(decodeCursor(LIST, cursor));
  const [expires_at, decision_seq] = [Number(match?.[1]), Number(match?.[2])];
  if (!Number.isSafeInteger(expires_at) || !Number.isSafeInteger(decision_seq)) throw invalidCursor(cursor);
  return { expires_at, decision_seq };
}
