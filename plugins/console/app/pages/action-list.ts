/** The list of actions: its filters, its pages, and the events that keep it up to date. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Action, Api } from "../core/api-types.ts";
import { request } from "../core/api.ts";
import { followLiveEvents } from "../core/live-events.ts";

export const FILTERS = [
  "q",
  "status",
  "decision",
  "agent_id",
  "tool",
  "operation",
  "policy",
  "rule",
  "has_rule",
  "answer",
  "since",
  "until",
  "grant_id",
] as const;
export type ActionFilters = Record<(typeof FILTERS)[number], string>;

export const STATUSES = [
  "allowed",
  "denied",
  "pending_approval",
  "approved",
  "expired",
  "cancelled",
  "executing",
  "unknown",
  "succeeded",
  "failed",
] as const;

const PAGE = 50;
/**
 * Maximum number of rows that are loaded to fill a gap, for example after the computer slept. If the gap is larger, the
 * list starts again with the newest rows.
 */
const MAX_MISSED = 1000;
/** Events that arrive within this time cause one read. Milliseconds. */
const COLLECT_MS = 1000;
/** Like `COLLECT_MS`, but for a list that the service has to search. Milliseconds. */
const SEARCH_EVERY_MS = 5000;

type Query = NonNullable<Api["GET /v1/actions"]["query"]>;

/** Returns the filters as parameters of the API. Times in the address are in the user's time zone. */
export function toActionQuery(filters: ActionFilters): Query {
  const given = Object.entries({ ...filters, since: toUtc(filters.since), until: toUtc(filters.until) });
  return Object.fromEntries(given.filter(([, value]) => value !== "")) as Query;
}

/**
 * Whether the service has to search for matching actions. Each request then searches only a limited number of actions.
 */
function isSearch({ q, decision, policy, rule, has_rule, answer }: ActionFilters): boolean {
  return [q, decision, policy, rule, has_rule, answer].some((value) => value !== "");
}

function toUtc(text: string): string {
  const time = Date.parse(text);
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}

interface ActionListState {
  rows: readonly Action[];
  error: unknown;
  loading: boolean;
  live: { state: string; why: string };
  hasMore: boolean;
  isBusy: boolean;
  older(): void;
  reload(): void;
}

/** Loads the newest page and follows the ledger. The filters do not change while the list is displayed. */
export function useActions(filters: ActionFilters): ActionListState {
  const [rows, setRows] = useState<readonly Action[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [state, setState] = useState<{ loading: boolean; error: unknown }>({ loading: true, error: null });
  const [isBusy, setBusy] = useState(false);
  const [live, setLive] = useState({ state: "starting", why: "" });
  const rowsRef = useRef(rows);
  rowsRef.current = rows;
  const isLoaded = useRef(false);
  /** Counts the restarts of the list. A page that was requested before a restart is discarded. */
  const lists = useRef(0);
  const readPage = (more: string | null, signal?: AbortSignal) =>
    request("GET /v1/actions", {
      query: { ...toActionQuery(filters), limit: PAGE, ...(more === null ? {} : { cursor: more }) },
      signal,
    });

  /** Reads the newest pages until they reach the displayed rows. Older displayed rows stay in the list. */
  const refresh = async (signal?: AbortSignal): Promise<void> => {
    try {
      const newest: Action[] = [];
      let next: string | null = null;
      let isGap = false;
      do {
        const page: Awaited<ReturnType<typeof readPage>> = await readPage(next, signal);
        newest.push(...page.actions);
        next = page.next_cursor;
        const [first] = rowsRef.current;
        isGap = next !== null && first !== undefined && first.id < (newest.at(-1)?.id ?? "");
      } while (isGap && newest.length < MAX_MISSED);
      const oldest = newest.at(-1)?.id ?? "";
      setRows(next === null || isGap ? newest : [...newest, ...rowsRef.current.filter((row) => row.id < oldest)]);
      if (!isLoaded.current || isGap) {
        lists.current += 1;
        setCursor(next);
      }
      isLoaded.current = true;
      setState({ loading: false, error: null });
    } catch (error) {
      if (signal?.aborted !== true) setState({ loading: false, error });
    }
  };
  const older = async (): Promise<void> => {
    const list = lists.current;
    setBusy(true);
    try {
      const { actions, next_cursor } = await readPage(cursor);
      if (list !== lists.current) return;
      setRows((old) => [...old, ...actions]);
      setCursor(next_cursor);
    } catch (error) {
      setState({ loading: false, error });
    } finally {
      setBusy(false);
    }
  };

  useEffect(() => {
    const over = new AbortController();
    let pending: ReturnType<typeof setTimeout> | undefined;
    void refresh(over.signal);
    const soon = (): void => {
      pending ??= setTimeout(
        () => {
          pending = undefined;
          void refresh(over.signal);
        },
        isSearch(filters) ? SEARCH_EVERY_MS : COLLECT_MS,
      );
    };
    followLiveEvents({
      filters: { type: "decision,approval,execution", agent_id: filters.agent_id, tool: filters.tool },
      signal: over.signal,
      onEvent: soon,
      onState(next, why) {
        setLive({ state: next, why });
        if (next === "live") soon();
      },
    });
    return () => {
      over.abort();
      clearTimeout(pending);
    };
  }, []);
  return {
    rows,
    ...state,
    live,
    hasMore: cursor !== null,
    isBusy,
    older: () => void older(),
    reload: () => void refresh(),
  };
}
