/** Messages to people and programs: sent, waiting, and abandoned. */
import { useEffect, useState } from "preact/hooks";
import {
  ActionName,
  Age,
  Badge,
  buildUrl,
  EmptyState,
  encodeSegment,
  ErrorNotice,
  hasScope,
  Loading,
  MarkedValue,
  OneLine,
  Page,
  PrincipalName,
  readFormValues,
  request,
  RowPages,
  Snippet,
  Table,
  TimeLeft,
} from "../../console/app/kit.ts";
import type { Delivery } from "./api-types.ts";

const STATES = ["waiting", "scheduled", "delivered", "dead", "obsolete"] as const;
const PAGE_SIZE = 50;
const EVERY_MS = 5000;

const TEXTS = {
  title: "Deliveries",
  every: `updated every ${EVERY_MS / 1000} s`,
  filter: "Filter",
  clear: "All",
  state: "State",
  anyState: "any",
  action: "Action",
  empty: "No messages were sent yet.",
  emptyHelp:
    "Channels in assent.yaml define who is notified when an action requires approval. A rule names its channels: approval: { notify: [approvers] }.",
  emptySnippet: "Lines for assent.yaml: mail through a server on this machine",
  noMatch: "No delivery matches the filters.",
  head: ["To", "What", "State", "Attempts", "When"],
  retry: "Try again",
  next: "next",
};

const CHANNEL = `plugins:
  - built-in
  - name: notify-email
    options: { host: localhost, port: 25, from: "Assent <assent@example.com>" }
channels:
  approvers:
    notifier: notify-email
    people:
      - { owner: anna, to: anna@example.com }
`;

/** Texts for kinds of messages whose names do not say enough. */
const KINDS: Readonly<Record<string, string>> = {
  approval_requested: "request",
  approval_escalated: "request, because others did not vote",
  approval_reminder: "reminder",
  approval_closed: "outcome of the request",
  outcome_unknown: "outcome unknown",
  break_glass: "emergency approval",
  agent_throttled: "throttled agent",
  coverage_gap: "gap in coverage",
  event: "ledger entry",
};
const BADGES: Readonly<Record<Delivery["state"], string>> = {
  waiting: "require_approval",
  scheduled: "inactive",
  delivered: "active",
  dead: "failed",
  obsolete: "expired",
};

/** Renders the page. The filters are in the address. */
export function Deliveries({ query }: { query: URLSearchParams }) {
  return <List key={query.toString()} state={query.get("state") ?? ""} action={query.get("action_id") ?? ""} />;
}

function List({ state, action }: { state: string; action: string }) {
  const { rows, cursor, isLoading, error, refresh, older, retry } = useDeliveries(state, action);
  const isFiltered = state !== "" || action !== "";
  return (
    <Page title={TEXTS.title} side={<span class="quiet">{TEXTS.every}</span>}>
      <Filters state={state} action={action} isFiltered={isFiltered} />
      <ErrorNotice error={error} onRetry={refresh} />
      {rows.length === 0 && isLoading ? <Loading what="deliveries" /> : null}
      {rows.length > 0 || isLoading || error !== null ? null : isFiltered ? (
        <EmptyState text={TEXTS.noMatch} />
      ) : (
        <EmptyState text={TEXTS.empty}>
          <p>{TEXTS.emptyHelp}</p>
          <Snippet label={TEXTS.emptySnippet} text={CHANNEL} />
        </EmptyState>
      )}
      {rows.length === 0 ? null : (
        <RowPages
          rows={rows}
          keyOf={({ id }) => id}
          what="deliveries"
          hasMore={cursor !== null}
          isBusy={isLoading}
          onMore={older}
        >
          {(deliveries) => (
            <Table label={TEXTS.title} head={TEXTS.head} numbers={["Attempts"]}>
              {deliveries.map((row) => (
                <Row key={row.id} row={row} onRetry={() => retry(row.id)} />
              ))}
            </Table>
          )}
        </RowPages>
      )}
    </Page>
  );
}

function Filters({ state, action, isFiltered }: { state: string; action: string; isFiltered: boolean }) {
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        location.hash = buildUrl("#/deliveries", readFormValues(event.currentTarget));
      }}
    >
      <div class="field">
        <label for="f-state">{TEXTS.state}</label>
        <select id="f-state" name="state">
          <option value="">{TEXTS.anyState}</option>
          {STATES.map((name) => (
            <option key={name} value={name} selected={name === state}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="f-action">{TEXTS.action}</label>
        <input id="f-action" name="action_id" defaultValue={action} autocomplete="off" spellcheck={false} />
      </div>
      <button type="submit" class="primary">
        {TEXTS.filter}
      </button>
      {isFiltered ? (
        <a class="button" href="#/deliveries">
          {TEXTS.clear}
        </a>
      ) : null}
    </form>
  );
}

/**
 * Loads deliveries, and reads the newest page again every few seconds. Also returns functions that load older
 * deliveries and retry a delivery.
 */
function useDeliveries(state: string, action: string) {
  const [rows, setRows] = useState<readonly Delivery[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [status, setStatus] = useState<{ isLoading: boolean; error: unknown }>({ isLoading: true, error: null });
  const load = (from: string | null) =>
    request("GET /v1/deliveries", {
      query: {
        state: STATES.find((name) => name === state),
        action_id: action === "" ? undefined : action,
        limit: PAGE_SIZE,
        cursor: from ?? undefined,
      },
    });
  const run = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
      setStatus({ isLoading: false, error: null });
    } catch (error) {
      setStatus({ isLoading: false, error });
    }
  };
  const refresh = (isFirst: boolean): void =>
    void run(async () => {
      const { deliveries, next_cursor } = await load(null);
      const isNew = (row: Delivery): boolean => !deliveries.some(({ id }) => id === row.id);
      setRows((old) => (isFirst ? deliveries : [...deliveries, ...old.slice(PAGE_SIZE).filter(isNew)]));
      if (isFirst) setCursor(next_cursor);
    });
  useEffect(() => {
    refresh(true);
    const timer = setInterval(() => refresh(false), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return {
    rows,
    cursor,
    ...status,
    refresh: () => refresh(true),
    older: () => {
      setStatus({ isLoading: true, error: null });
      void run(async () => {
        const { deliveries, next_cursor } = await load(cursor);
        setRows((old) => [...old, ...deliveries]);
        setCursor(next_cursor);
      });
    },
    retry: (id: string) =>
      void run(async () => {
        const retried = await request("POST /v1/deliveries/{id}/retry", { path: [id] });
        setRows((old) => old.map((row) => (row.id === retried.id ? retried : row)));
      }),
  };
}

/** Returns true if the credential can retry the delivery: it was abandoned, or waits because an attempt failed. */
const canRetry = ({ state, last_error }: Delivery): boolean =>
  hasScope("deliveries:retry") && (state === "dead" || (state === "waiting" && last_error !== null));

function Row({ row, onRetry }: { row: Delivery; onRetry(): void }) {
  const { person, recipient, destination, channel, kind, action_id, state, last_error, attempts } = row;
  return (
    <tr>
      <td>
        <strong>{person === null ? <MarkedValue value={recipient} /> : <PrincipalName principal={person} />}</strong>{" "}
        <span class="quiet">
          <MarkedValue value={person === null ? destination.replace(recipient, "").trim() : destination} />
          {channel === null ? null : (
            <>
              {" · "}
              <MarkedValue value={channel} />
            </>
          )}
        </span>
      </td>
      <td class="part-line">
        {KINDS[kind] ?? kind}
        {action_id === null ? null : (
          <>
            {" · "}
            <a href={`#/actions/${encodeSegment(action_id)}`}>
              <ActionName id={action_id} />
            </a>
          </>
        )}
      </td>
      <td>
        <Badge value={BADGES[state] ?? ""} label={state} />
        {last_error === null ? null : <OneLine text={last_error} />}
      </td>
      <td data-label="Attempts" class="number">
        {attempts}
        {canRetry(row) ? (
          <>
            {" "}
            <button type="button" class="small" onClick={onRetry}>
              {TEXTS.retry}
            </button>
          </>
        ) : null}
      </td>
      <td>
        <When row={row} />
      </td>
    </tr>
  );
}

function When({ row: { delivered_at, next_attempt_at, updated_at } }: { row: Delivery }) {
  if (delivered_at !== null) return <Age at={delivered_at} />;
  if (next_attempt_at === null) return <Age at={updated_at} />;
  return (
    <>
      {TEXTS.next} <TimeLeft at={next_attempt_at} short />
    </>
  );
}
