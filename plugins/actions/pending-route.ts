/**
 * Lists pending actions, sorted by deadline unless another order is chosen. The list of all actions does not suffice:
 * it is sorted newest first, so the most urgent action would be last.
 */
import { type Static, Type } from "@sinclair/typebox";
import {
  userState,
  type CoreHost,
  invalidCursor,
  listReply,
  orNull,
  readPage,
  textSchema,
  timeSchema,
} from "../../src/core.ts";
import {
  type Credential,
  decodeCursor,
  DEFAULT_LIMIT,
  defineRoute,
  nextLink,
  PAGE_QUERY,
  Refusal,
  toRfc3339,
} from "../../src/plugin.ts";
import type { ActionRow, PendingCursor } from "../../src/storage/index.ts";
import { readActionRecord } from "./action-record.ts";
import {
  compareSortKeys,
  findMatchingActions,
  formatSortKey,
  inSlices,
  needsFullScan,
  parseSortKey,
  PendingFilter,
  sortKey,
} from "./pending-filter.ts";
import { collectGroups, type PendingGroup } from "./pending-groups.ts";
import type { PendingIndex } from "./pending-index.ts";
import { contentByteLength } from "./visible-action.ts";
import { ActionRecord } from "./schemas.ts";
import { findUserAsApprover, type PendingApprover } from "./voting-capacity.ts";

const LIST = "approvals";
/** Maximum number of groups of pending actions that one response lists. */
const MAX_GROUPS = 100;
const { limit, cursor } = PAGE_QUERY;
const user_id = Type.Optional(
  Type.String({
    maxLength: 64,
    description:
      "With `view=mine`: lists the actions that this user can approve now and the caller can see. For a user other than the caller, requires `users:read` or `users:manage`.",
  }),
);
const Query = Type.Object({ ...PendingFilter.properties, user_id, limit, cursor }, { additionalProperties: false });
type Query = Static<typeof Query>;

const Answer = Type.Object(
  {
    actions: Type.Array(ActionRecord),
    total: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        "Number of pending actions on all pages that this key may see and that match the filters. Null if more are pending than one request reads: 20,000.",
    }),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
);

export function pendingRoute(host: CoreHost, readPending: PendingIndex, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/approvals",
    tag,
    summary: "List pending actions, by deadline",
    scope: ["actions:read", "actions:read_own"],
    query: Query,
    description:
      "Pending actions that have not expired. In the order by deadline, an action that is submitted while you read the pages appears on a later page if it expires after the cursor.",
    responses: { 200: { description: "A page.", schema: Answer } },
    errors: ["INVALID_CURSOR"],
    async handle({ query, credential, reserveResponseBytes }) {
      const { compiled: set } = await host.policies.current();
      const read =
        needsFullScan(query) || query.user_id !== undefined
          ? await readMatches(host, readPending, query, credential)
          : query.sort === "newest"
            ? readNewest(host, query, credential)
            : readByDeadline(host, query, credential);
      const [{ items, next_cursor }, total] = await Promise.all([
        readPage<ActionRow>(
          LIST,
          { limit: query.limit ?? DEFAULT_LIMIT, bytes: host.config.server.max_page_bytes },
          {
            read: read.page,
            size: contentByteLength,
            position: read.position,
            render: (row) =>
              readActionRecord(host, row, credential, { token: false, set, pins: query.group !== undefined }),
            turn: () => host.waitForReadSlot(credential.key.id),
            hold: reserveResponseBytes,
          },
        ),
        read.total,
      ]);
      return listReply("actions", items, { total, next_cursor }, nextLink("/v1/approvals", query, next_cursor));
    },
  });
}

const Group = Type.Object(
  {
    id: textSchema("The value of the query parameter `group`."),
    tool: Type.String(),
    operation: Type.String(),
    policy: orNull(Type.String()),
    rule: orNull(Type.String()),
    count: Type.Integer({ minimum: 1 }),
    agents: Type.Array(Type.String(), { description: "At most 3 of the agents." }),
    agent_count: Type.Integer({ minimum: 1, description: "At most 100." }),
    risk_level: orNull(textSchema("The highest risk of these actions; null if none is rated.")),
    expires_at: orNull(timeSchema("The earliest deadline of these actions.")),
    preview: orNull(
      textSchema(
        'The rule\'s preview with the values of all these actions, such as `Refund 20 to 480 "EUR" to "cus_1" and 13 others`; null if the rule has no preview.',
      ),
    ),
    headline: orNull(textSchema("Without a preview: the values of the member that distinguishes these actions.")),
    first: textSchema("Id of the first of these actions in the order of the list."),
  },
  { title: "PendingGroup", additionalProperties: false },
);
const Groups = Type.Object(
  {
    groups: Type.Array(Group, { description: `At most ${MAX_GROUPS}.` }),
    total: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: "Number of pending actions in all groups. Null if more are pending than one request reads: 20,000.",
    }),
    complete: Type.Boolean({
      description: "False if there are more groups, or more pending actions than one request reads.",
    }),
  },
  { additionalProperties: false },
);

export function pendingGroupsRoute(host: CoreHost, readPending: PendingIndex, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/approvals/groups",
    tag,
    summary: "Count pending actions by rule, tool and operation",
    description:
      "Of all pages that match the filters. Each group has one sentence about all its actions. The groups have the order of their first actions: by deadline, unless `sort` says otherwise.",
    scope: ["actions:read", "actions:read_own"],
    query: PendingFilter,
    responses: { 200: { description: "The groups.", schema: Groups } },
    async handle({ query, credential }) {
      const { matches, isComplete } = await findMatchingActions(host, readPending, credential, query);
      const byId = new Map<string, PendingGroup>();
      for await (const slice of inSlices(host, credential, matches)) collectGroups(slice, byId);
      const groups = [...byId.values()];
      return {
        status: 200,
        json: {
          groups: groups.slice(0, MAX_GROUPS).map(renderGroup),
          total: isComplete ? matches.length : null,
          complete: isComplete && groups.length <= MAX_GROUPS,
        },
      };
    },
  });
}

function renderGroup(collected: PendingGroup): Static<typeof Group> {
  const { agents, expires_at, first, hasPreview, values, ...group } = collected;
  const sentence = values.join("");
  return {
    ...group,
    agents: [...agents].slice(0, 3),
    agent_count: agents.size,
    expires_at: expires_at === Infinity ? null : toRfc3339(expires_at),
    preview: hasPreview ? sentence : null,
    headline: !hasPreview && values.some(({ isEmpty }) => !isEmpty) ? sentence : null,
    first,
  };
}

/** The reads of one request: its page, and the number of all matching actions. */
interface PendingRead {
  page(last: ActionRow | null, limit: number): Promise<ActionRow[]>;
  /** Returns the position to store in the next cursor. */
  position(row: ActionRow): string;
  total: Promise<number | null> | number | null;
}

/** Reads pages without filters, in the order of the store: by deadline. */
function readByDeadline(host: CoreHost, query: Query, { visibility }: Credential): PendingRead {
  const now = host.clock();
  const position = query.cursor === undefined ? null : decodePosition(query.cursor);
  // Start after the current time, to omit overdue actions that are not marked as expired yet.
  const after =
    position !== null && position.expires_at > now
      ? position
      : { expires_at: now, decision_seq: Number.MAX_SAFE_INTEGER };
  return {
    page: (last, size) => host.storage.pendingActions(visibility, positionOf(last) ?? after, size),
    position: (row) => `${row.expires_at ?? 0}.${row.decision_seq}`,
    total: host.storage.pendingCount(visibility, now),
  };
}

/** Reads pages without filters from the store's list of actions, which is sorted newest first. */
function readNewest(host: CoreHost, query: Query, { visibility }: Credential): PendingRead {
  const now = host.clock();
  const before = query.cursor === undefined ? undefined : 0 - parseSortKey(LIST, query, query.cursor)[0];
  return {
    page(last, limit) {
      const before_seq = last?.decision_seq ?? before;
      const filter = { visibility, status: "pending_approval", as_of: now, limit } as const;
      return host.storage.actions(before_seq === undefined ? filter : { ...filter, before_seq });
    },
    position: (row) => formatSortKey(query, row),
    total: host.storage.pendingCount(visibility, now),
  };
}

/** Finds all actions that match the filters, and reads the rows of the page by their ids. */
async function readMatches(
  host: CoreHost,
  readPending: PendingIndex,
  query: Query,
  credential: Credential,
): Promise<PendingRead> {
  const from = query.cursor === undefined ? null : parseSortKey(LIST, query, query.cursor);
  const approver = query.user_id === undefined ? credential : await readUser(host, query, query.user_id, credential);
  const { matches, isComplete } = await findMatchingActions(host, readPending, credential, query, approver);
  const first = from === null ? 0 : matches.findIndex((action) => compareSortKeys(sortKey(query, action), from) > 0);
  const remaining = first < 0 ? [] : matches.slice(first);
  const ids = remaining.map(({ id }) => id);
  const places = new Map(ids.map((id, place) => [id, place]));
  return {
    async page(last, size) {
      const start = last === null ? 0 : (places.get(last.id) ?? ids.length) + 1;
      const rows = await host.storage.actionsById(ids.slice(start, start + size));
      return rows.sort((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
    },
    position: (row) => formatSortKey(query, row),
    total: isComplete ? matches.length : null,
  };
}

/**
 * Returns the user, with the delegations that apply to their sessions. Throws VALIDATION_FAILED for an unknown or
 * deactivated user and for a view other than `mine`, and INSUFFICIENT_SCOPE if the caller may not read users.
 */
async function readUser(host: CoreHost, query: Query, id: string, caller: Credential): Promise<PendingApprover> {
  const fault = (detail: string): Refusal =>
    new Refusal("VALIDATION_FAILED", `the query parameter user_id is invalid: ${detail}`, {
      errors: [{ parameter: "user_id", detail }],
    });
  if (query.view !== "mine") throw fault("it needs view=mine");
  if (caller.session?.user.id === id) return caller;
  if (!caller.hasScope("users:read") && !caller.hasScope("users:manage"))
    throw new Refusal("INSUFFICIENT_SCOPE", "reading what another user can approve needs the scope users:read");
  const snapshot = await host.snapshot();
  if (!snapshot.state(userState).has(id)) throw fault("there is no such user");
  const approver = await findUserAsApprover(host, snapshot, id);
  if (approver === null) throw fault("the user is deactivated");
  return approver;
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
