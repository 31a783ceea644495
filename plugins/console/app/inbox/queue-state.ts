/** The state of the list of pending requests, and how reads and events change it. */
import type { Action, Api } from "../core/api-types.ts";
import { serviceNow } from "../core/api.ts";
import { findOutcome, type RequestOutcome } from "./outcome.tsx";

/** Maximum number of requests that are read individually to find out why they left a filtered list. */
const MAX_REREADS = 20;

/** How the inbox is filtered and sorted, and which group is open: parameters of `GET /v1/approvals`. */
export type ListQuery = Omit<NonNullable<Api["GET /v1/approvals"]["query"]>, "limit" | "cursor">;

/** Requests that the same rule decided for the same tool and operation. */
export type Group = Api["GET /v1/approvals/groups"]["response"]["groups"][number];

/** Whether the query has a filter, so that the inbox omits some pending requests. */
export function hasFilter(query: ListQuery): boolean {
  return Object.entries(query).some(([name, value]) => name !== "sort" && name !== "group" && value !== undefined);
}

/** Whether the query narrows its view with a filter or a search. */
export const isNarrowed = (query: ListQuery): boolean => hasFilter({ ...query, view: undefined } as ListQuery);

export interface QueueItem {
  action: Action;
  outcome: RequestOutcome | null;
  /** Whether the request was read individually. If not, its votes may be incomplete, and it has no token. */
  isFull: boolean;
  error: unknown;
  /** Whether the request was already settled when it was first read, for example because a link opened it later. */
  isPast?: boolean;
}

export interface QueueState {
  /** The groups, in the order in which they are displayed. */
  groups: readonly Group[];
  /** New groups that belong further up, until the person asks for them. */
  heldGroups: readonly Group[];
  /** The query that returned the groups; null before the first read. */
  groupsQuery: ListQuery | null;
  /** Whether the service counted all pending requests and listed all groups. */
  isComplete: boolean;
  /** The query that returned the rows of the open group. */
  query: ListQuery;
  items: ReadonlyMap<string, QueueItem>;
  order: readonly string[];
  held: readonly string[];
  cursor: string | null;
  /** Number of requests in all groups. Null while it is unknown, or if more are pending than the service counts. */
  total: number | null;
  loading: boolean;
  error: unknown;
  /** Why the open request could not be read. */
  missing: { id: string; error: unknown } | null;
}

export const EMPTY_QUEUE: QueueState = {
  groups: [],
  heldGroups: [],
  groupsQuery: null,
  isComplete: true,
  query: {},
  items: new Map(),
  order: [],
  held: [],
  cursor: null,
  total: null,
  loading: true,
  error: null,
  missing: null,
};

const deadlineOf = (action: Action): number => Date.parse(action.expires_at ?? "");
const RISKS: readonly (string | null)[] = ["low", "medium", "high", "critical"];
const byId = (a: Action, b: Action): number => (a.id < b.id ? -1 : 1);
/** Sorts by deadline, then by id. Older ids come first, because ids grow over time. */
const byDeadline = (a: Action, b: Action): number => deadlineOf(a) - deadlineOf(b) || byId(a, b);
/** The orders in which the service sorts. */
const ORDERS = {
  deadline: byDeadline,
  oldest: byId,
  newest: (a: Action, b: Action): number => byId(b, a),
  risk: (a: Action, b: Action): number => RISKS.indexOf(b.risk_level) - RISKS.indexOf(a.risk_level) || byDeadline(a, b),
} as const;
const orderOf = ({ query }: QueueState) => ORDERS[query.sort ?? "deadline"];

/** Returns the pinned facts that a vote on the request as displayed is about. */
export const listPins = ({ pins = [] }: Pick<Action, "pins">): string =>
  JSON.stringify(pins.map(({ policy, path, value }) => [policy, path, value]));

export function storeAction(state: QueueState, action: Action, more: Partial<QueueItem> = {}): QueueState {
  return storeActions(state, [action], more);
}

/** Stores the requests of a page. Copies the map once, because thousands of requests may be loaded. */
function storeActions(state: QueueState, actions: readonly Action[], more: Partial<QueueItem> = {}): QueueState {
  const items = new Map(state.items);
  for (const action of actions) {
    const old = items.get(action.id) ?? { action, outcome: null, isFull: false, error: null };
    // A list does not compare the pinned facts with their current values, as a read of the request does.
    const isKnown = more.isFull !== true && listPins(old.action) === listPins(action);
    const pins = isKnown && old.action.pins !== undefined ? { pins: old.action.pins } : {};
    items.set(action.id, { ...old, ...more, action: { ...old.action, ...action, ...pins } });
  }
  return { ...state, items };
}

export function changeItem(state: QueueState, id: string, more: Partial<QueueItem>): QueueState {
  const old = state.items.get(id);
  return old === undefined ? state : { ...state, items: new Map(state.items).set(id, { ...old, ...more }) };
}

/** Adds pending requests at the end of the list. Holds those that belong further up. */
function placeActions(state: QueueState, actions: readonly Action[]): QueueState {
  const known = new Set([...state.order, ...state.held]);
  const compare = orderOf(state);
  const [order, held] = [[...state.order], [...state.held]];
  let last = state.items.get(order.at(-1) ?? "")?.action;
  const stored = actions.filter((action) => {
    if (known.has(action.id)) return true;
    if (last !== undefined && compare(action, last) <= 0) {
      held.push(action.id);
      return true;
    }
    // The request is on a page that has not been loaded yet.
    if (last !== undefined && state.cursor !== null) return false;
    order.push(action.id);
    last = action;
    return true;
  });
  return { ...storeActions(state, stored), order, held };
}

interface Page {
  actions: readonly Action[];
  next_cursor: string | null;
}

/** Returns the group of a request; undefined if none is known. */
export function findGroup(groups: readonly Group[], action: Action | undefined): Group | undefined {
  return groups.find(
    ({ tool, operation, policy, rule }) =>
      tool === action?.tool && operation === action.operation && policy === action.policy && rule === action.rule,
  );
}

/** Whether the signed-in person gave the vote. */
type IsMine = (vote: Action["approvals"][number]) => boolean;

const isDone = ({ action, outcome }: QueueItem, isMine: IsMine): boolean =>
  outcome !== null || deadlineOf(action) <= serviceNow() || action.approvals.some(isMine);

interface CountedGroups {
  groups: readonly Group[];
  total: number | null;
  complete: boolean;
}

/**
 * Stores the groups that the service counted for the query. Groups of the same query do not move: new ones that belong
 * further up are held. The open group stays while its requests show their outcomes, and so does one whose only request
 * shows its outcome. The groups of another query replace all groups, because the query can have another order.
 */
export function storeGroups(
  state: QueueState,
  query: ListQuery,
  { groups, total, complete }: CountedGroups,
  open: string | null,
  isMine: IsMine,
): QueueState {
  const counts = { groupsQuery: query, isComplete: complete, total, loading: false, error: null };
  if (state.groupsQuery === null || !isSameQuery(state.groupsQuery, query))
    return { ...state, ...counts, groups, heldGroups: [] };
  const latest = new Map(groups.map((group) => [group.id, group]));
  const isKept = ({ id, count, first }: Group): boolean => {
    const only = count === 1 ? state.items.get(first) : undefined;
    return latest.has(id) || (id === open && state.order.length > 0) || (only !== undefined && isDone(only, isMine));
  };
  const known = state.groups
    .filter(isKept)
    .map((group) => latest.get(group.id) ?? (group.count === 1 ? group : { ...group, count: 0 }));
  const places = new Map(groups.map(({ id }, place) => [id, place]));
  const last = Math.max(-1, ...known.map(({ id }) => places.get(id) ?? -1));
  const added = groups.filter(({ id }) => !known.some((group) => group.id === id));
  const isBelow = ({ id }: Group): boolean => known.length === 0 || (places.get(id) ?? 0) > last;
  return {
    ...state,
    groups: [...known, ...added.filter(isBelow)],
    heldGroups: added.filter((group) => !isBelow(group)),
    ...counts,
  };
}

export function storeFirstPage(state: QueueState, query: ListQuery, { actions, next_cursor }: Page): QueueState {
  let next: QueueState = { ...state, query, error: null };
  if (state.order.length === 0 || !isSameQuery(state.query, query)) {
    return { ...storeActions(next, actions), order: actions.map(({ id }) => id), held: [], cursor: next_cursor };
  }
  if (next_cursor === null) next = { ...next, cursor: null };
  return placeActions(next, actions);
}

export const isSameQuery = (a: ListQuery, b: ListQuery): boolean => JSON.stringify(a) === JSON.stringify(b);

export function storeNextPage(state: QueueState, { actions, next_cursor }: Page): QueueState {
  const known = new Set([...state.order, ...state.held]);
  const added = actions.map(({ id }) => id).filter((id) => !known.has(id));
  return { ...storeActions(state, actions), error: null, cursor: next_cursor, order: [...state.order, ...added] };
}

/** Stores a request that was read individually. */
export function storeFetchedAction(state: QueueState, action: Action, open: string | null): QueueState {
  const { id } = action;
  const outcome = findOutcome(action);
  const known = state.items.get(id);
  const ownOutcome = known?.outcome?.isMine === true ? known.outcome : null;
  // A list contains only requests that the service found.
  if (known === undefined && open !== id) return state;
  const isPast = known?.isPast ?? (known === undefined && outcome !== null);
  return {
    ...storeAction(state, action, { isFull: true, error: null, outcome: ownOutcome ?? outcome, isPast }),
    missing: null,
  };
}

/**
 * Returns a function that tests whether a request is missing from the page, although its position in the order is
 * within the page.
 */
function absenceFrom({ actions, next_cursor }: Page, state: QueueState): (action: Action) => boolean {
  const remaining = new Set(actions.map(({ id }) => id));
  const last = next_cursor === null ? undefined : actions.at(-1);
  return (action) => !remaining.has(action.id) && (last === undefined || orderOf(state)(action, last) < 0);
}

/**
 * Returns the ids of listed requests that are missing from a page, because they are settled or no longer match
 * the filter. At most `MAX_REREADS`.
 */
export function listMissingIds(page: Page, state: QueueState): string[] {
  const isAbsent = absenceFrom(page, state);
  const isToRead = (id: string): boolean => {
    const item = state.items.get(id);
    return item !== undefined && item.outcome === null && !item.isFull && isAbsent(item.action);
  };
  return state.order.filter(isToRead).slice(0, MAX_REREADS);
}

/** Adds the held requests and groups, in the order of the query. */
export function showHeldRows(state: QueueState): QueueState {
  const compare = orderOf(state);
  const order = [...state.order, ...state.held].sort((a, b) => {
    const [first, second] = [state.items.get(a), state.items.get(b)];
    return first === undefined || second === undefined ? 0 : compare(first.action, second.action);
  });
  const byFirst = (a: Group, b: Group): number => Date.parse(a.expires_at ?? "") - Date.parse(b.expires_at ?? "");
  const groups = [...state.groups, ...state.heldGroups];
  if ((state.query.sort ?? "deadline") === "deadline") groups.sort(byFirst);
  return { ...state, groups, heldGroups: [], order, held: [] };
}

/**
 * Returns the ids of listed requests that are no longer pending, or no longer in the view because the person has
 * approved them.
 * @param isMine whether the signed-in person gave the vote
 */
export function listSettledIds({ items, order, query, groups }: QueueState, isMine: IsMine): Set<string> {
  const isSettled = (id: string): boolean => {
    const item = items.get(id);
    return item === undefined || isDone(item, query.view === "mine" ? isMine : () => false);
  };
  const alone = groups.filter(({ count, first }) => count === 1 && items.has(first)).map(({ first }) => first);
  return new Set([...order, ...alone].filter(isSettled));
}

export function removeRows(state: QueueState, ids: ReadonlySet<string>): QueueState {
  const groups = state.groups.filter(({ count, first }) => count > 1 || !ids.has(first));
  return { ...state, groups, order: state.order.filter((id) => !ids.has(id)) };
}

/** Returns the items with these ids. */
export function listItems({ items }: QueueState, ids: readonly string[]): QueueItem[] {
  return ids.map((id) => items.get(id)).filter((item) => item !== undefined);
}
