/** Lists pending actions by deadline. The list of all actions is newest first, so the most urgent would be last. */
import { Type } from "@sinclair/typebox";
import { type CoreHost, invalidCursor, listReply, readPage } from "../../src/core.ts";
import { decodeCursor, DEFAULT_LIMIT, defineRoute, nextLink, PAGE_QUERY, type Route } from "../../src/plugin.ts";
import type { ActionRow, PendingCursor } from "../../src/storage/index.ts";
import { readRecord } from "./action-record.ts";
import { contentBytes } from "./visible-action.ts";
import { ActionRecord } from "./schemas.ts";

const LIST = "approvals";
const { limit, cursor } = PAGE_QUERY;
const Query = Type.Object({ limit, cursor }, { additionalProperties: false });

const Answer = Type.Object(
  {
    actions: Type.Array(ActionRecord),
    total: Type.Integer({ minimum: 0, description: "Number of pending actions that this key may see, on all pages." }),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
);

export function pendingRoute(host: CoreHost, tag: string): Route {
  return defineRoute({
    method: "GET",
    path: "/v1/approvals",
    tag,
    summary: "List pending actions, by deadline",
    scope: ["actions:read", "actions:read_own"],
    query: Query,
    description:
      "Pending actions that have not expired. An action submitted while you read the pages appears on a later page if it expires after the cursor.",
    responses: { 200: { description: "A page.", schema: Answer } },
    errors: ["INVALID_CURSOR"],
    async handle({ query, credential, reserveResponseBytes }) {
      const now = host.clock();
      const { compiled: set } = await host.policies.current();
      const position = query.cursor === undefined ? null : decodePosition(query.cursor);
      // Start after the current time: overdue actions are left out even if they are not marked as expired yet.
      const after =
        position !== null && position.expires_at > now
          ? position
          : { expires_at: now, decision_seq: Number.MAX_SAFE_INTEGER };
      const [{ items, next_cursor }, total] = await Promise.all([
        readPage<ActionRow>(
          LIST,
          { limit: query.limit ?? DEFAULT_LIMIT, bytes: host.config.server.max_page_bytes },
          {
            read: (last, limit) => host.storage.pendingActions(credential.visibility, positionOf(last) ?? after, limit),
            size: contentBytes,
            position: (row) => `${row.expires_at ?? 0}.${row.decision_seq}`,
            render: (row) => readRecord(host, row, credential, { token: false, set }),
            turn: host.waitForReadSlot,
            hold: reserveResponseBytes,
          },
        ),
        host.storage.pendingCount(credential.visibility, now),
      ]);
      return listReply("actions", items, { total, next_cursor }, nextLink("/v1/approvals", query, next_cursor));
    },
  });
}

function positionOf(row: ActionRow | null): PendingCursor | null {
  return row === null ? null : { expires_at: row.expires_at ?? 0, decision_seq: row.decision_seq };
}

function decodePosition(cursor: string): PendingCursor {
  const match = /^(\d{1,16})\.(\d{1,16})$/.exec(decodeCursor(LIST, cursor));
  const [expires_at, decision_seq] = [Number(match?.[1]), Number(match?.[2])];
  if (!Number.isSafeInteger(expires_at) || !Number.isSafeInteger(decision_seq)) throw invalidCursor(cursor);
  return { expires_at, decision_seq };
}
