/** Routes that read actions: the list, one action, and its ledger entries. */
import {
  type CoreHost,
  decodeEntry,
  decodeSeqCursor,
  encodeCursor,
  listReply,
  parseRfc3339,
  readPage,
  toHex,
} from "../../src/core.ts";
import { type Credential, DEFAULT_LIMIT, defineRoute, nextLink, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionFilter, ActionRow } from "../../src/storage/index.ts";
import { noticeOverdue } from "./expiry.ts";
import { buildActionReply, readActionRecord, ACTION_RESPONSE } from "./action-record.ts";
import { withCurrentStatus, isOverdue, contentByteLength, visibleAction } from "./visible-action.ts";
import * as schema from "./schemas.ts";
import { createActionSearch, isSearch } from "./search-actions.ts";
import type { ActionWaits } from "./wait.ts";

const LIST_NAME = "actions";
const SCOPES = ["actions:read", "actions:read_own"] as const;

export function readRoutes(host: CoreHost, tag: string, waiters: ActionWaits) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/actions",
      tag,
      summary: "List actions, newest first",
      scope: SCOPES,
      query: schema.ListQuery,
      responses: { 200: { description: "A page.", schema: schema.ActionList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential, reserveResponseBytes: holdResponse }) {
        const now = host.clock();
        const filter = { ...filterOf(query, credential), as_of: now };
        const search = isSearch(query) ? createActionSearch(host, credential.key.id, filter, query) : null;
        const { compiled: set } = await host.policies.current();
        const page = await readPage<ActionRow>(
          LIST_NAME,
          { limit: query.limit ?? DEFAULT_LIMIT, bytes: host.config.server.max_page_bytes, offset: query.offset },
          {
            read: (after, limit) =>
              search?.read(after, limit) ??
              host.storage.actions(
                after === null ? { ...filter, limit } : { ...filter, offset: 0, before_seq: after.decision_seq, limit },
              ),
            size: contentByteLength,
            position: (row) => row.decision_seq,
            render(row) {
              if (isOverdue(row, now)) noticeOverdue(host);
              return readActionRecord(host, row, credential, { token: false, set });
            },
            turn: () => host.waitForReadSlot(credential.key.id),
            hold: holdResponse,
          },
        );
        const cut = search?.cutAt() ?? null;
        const next_cursor = page.next_cursor ?? (cut === null ? null : encodeCursor(LIST_NAME, cut));
        return listReply("actions", page.items, { next_cursor }, nextLink("/v1/actions", query, next_cursor));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/actions/:id",
      tag,
      summary: "Read an action",
      scope: SCOPES,
      params: schema.IdParams,
      query: schema.WaitQuery,
      description: "`?wait=N` waits up to N seconds while the action is pending.",
      responses: { 200: ACTION_RESPONSE },
      errors: ["ACTION_NOT_FOUND", "TOO_MANY_WAITS", "RECORD_ALTERED"],
      async handle(context) {
        const { params, query, credential } = context;
        const stored = await visibleAction(host.storage, params.id, credential);
        const row = withCurrentStatus(stored, host.clock());
        if (row !== stored) noticeOverdue(host);
        if (query.wait === undefined || row.status !== "pending_approval")
          return buildActionReply(host, row, credential, { set: (await host.policies.current()).compiled });
        waiters.assertCapacity(credential);
        const latest = await waiters.waitWhilePending(row, waiters.grantedMs(query.wait), context);
        return buildActionReply(host, latest ?? row, await context.reauthenticate());
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/actions/:id/events",
      tag,
      summary: "The action's ledger entries",
      scope: SCOPES,
      params: schema.IdParams,
      responses: { 200: { description: "Oldest first.", schema: schema.EventList } },
      errors: ["ACTION_NOT_FOUND"],
      async handle({ params, credential }) {
        const row = await visibleAction(host.storage, params.id, credential);
        const entries = await host.storage.entriesOfAction(row.id);
        return {
          status: 200,
          json: {
            events: entries.map(({ seq, leaf_hash, type, created_at, action_id, bytes }) => ({
              seq,
              hash: toHex(leaf_hash),
              type,
              at: toRfc3339(created_at),
              action_id,
              entry: decodeEntry(bytes),
            })),
          },
        };
      },
    }),
  ];
}

function filterOf(
  query: schema.ListQuery,
  credential: Credential,
): Omit<ActionFilter, "limit" | "visibility"> & Pick<Credential, "visibility"> {
  const { status, tool, operation, request_hash, grant_id, offset } = query;
  const agent = query.agent_id ?? query.agent;
  if (query.agent_id !== undefined && query.agent !== undefined && query.agent_id !== query.agent) {
    throw invalidRefusal("agent", "`agent` and `agent_id` are the same filter; send one of them");
  }
  if (isSearch(query) && offset !== undefined)
    throw invalidRefusal("offset", "a search does not support offsets; use next_cursor");
  return {
    visibility: credential.visibility,
    ...(status === undefined ? {} : { status }),
    ...(agent === undefined ? {} : { agent_id: agent }),
    ...(tool === undefined ? {} : { tool }),
    ...(operation === undefined ? {} : { operation }),
    ...(request_hash === undefined ? {} : { request_hash }),
    ...(grant_id === undefined ? {} : { allowed_by: grant_id }),
    ...(query.since === undefined ? {} : { since: parseInstant("since", query.since) }),
    ...(query.until === undefined ? {} : { until: parseInstant("until", query.until) }),
    ...(query.cursor === undefined ? {} : { before_seq: decodeSeqCursor(LIST_NAME, query.cursor) }),
    ...(offset === undefined ? {} : { offset }),
  };
}

function parseInstant(parameter: string, text: string): number {
  const ms = parseRfc3339(text);
  if (ms === null) throw invalidRefusal(parameter, "must be an RFC 3339 time such as 2026-01-31T12:00:00Z");
  return ms;
}

function invalidRefusal(parameter: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", `the query parameter ${parameter} is invalid: ${detail}`, {
    errors: [{ parameter, detail }],
  });
}
