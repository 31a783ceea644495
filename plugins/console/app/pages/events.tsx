/** The ledger as it grows, with filters. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ENTRY_TYPES } from "../../../../src/browser.ts";
import { storeActionName } from "../core/action-names.ts";
import { encodeSegment, buildUrl } from "../core/api.ts";
import { followLiveEvents, type LedgerEvent } from "../core/live-events.ts";
import { listEntryTypes, loadTexts } from "../core/parts.ts";
import { SubmitSnippet } from "../inbox/submit-snippet.tsx";
import { Age, Badge, EmptyState, StreamStatus, Page } from "../ui/elements.tsx";
import { ActionName } from "../ui/entry-step.tsx";
import { nameOfType } from "../ui/entry-texts.ts";
import { useLoad } from "../ui/hooks.ts";
import { LoadedPage } from "../ui/loaded-page.tsx";
import { JsonDisclosure } from "../ui/params.tsx";
import { EventSummary } from "./event-summary.tsx";
import { PageLink } from "../ui/page-link.tsx";

/**
 * Maximum number of events on the page. Older events are removed, so that the page stays below 2,000 nodes even if it
 * is open for weeks.
 */
const MAX_EVENTS = 100;
/** Events that arrive within this time are rendered together. Milliseconds. */
const RENDER_EVERY_MS = 500;

const TEXTS = {
  title: "Events",
  types: (chosen: readonly string[]) => `Types: ${chosen.length === 0 ? "all" : chosen.map(nameOfType).join(", ")}`,
  agent: "Agent",
  tool: "Tool",
  from: "From",
  fromNow: "now on",
  fromStart: "the beginning",
  filter: "Filter",
  pause: "Pause",
  resume: (count: number) => `Resume (${count} new)`,
  clear: "Clear",
  waiting: "Waiting for events.",
  none: "No events yet.",
  help: "Each decision, vote, execution and change appears here when it is recorded. To see earlier ones, choose “the beginning”.",
  cut: `Only the newest ${MAX_EVENTS} events are shown.`,
};

/** Returns the types of entries that the page can filter by. */
const listTypes = (): string[] => [...new Set([...ENTRY_TYPES, ...listEntryTypes()])];

/** Renders the page. The filters are in the address. */
export function Events({ query }: { query: URLSearchParams }) {
  const texts = useLoad(async () => {
    await loadTexts();
    return true;
  }, []);
  return texts.data === null ? (
    <LoadedPage title={TEXTS.title} what="events" loaded={texts}>
      {() => null}
    </LoadedPage>
  ) : (
    <Tail key={query.toString()} query={query} />
  );
}

function Tail({ query }: { query: URLSearchParams }) {
  const types = query
    .getAll("type")
    .flatMap((text) => text.split(","))
    .filter((type) => listTypes().includes(type));
  const [agent, tool, from] = ["agent_id", "tool", "after"].map((name) => query.get(name) ?? "") as [
    string,
    string,
    string,
  ];
  const { events, held, isPaused, live, togglePause, clear } = useTail({ types, agent, tool, from });
  return (
    <Page title={TEXTS.title} side={<StreamStatus {...live} />}>
      <Filters types={types} agent={agent} tool={tool} from={from} />
      <div class="row">
        <button type="button" aria-pressed={isPaused} onClick={togglePause}>
          {isPaused ? TEXTS.resume(held) : TEXTS.pause}
        </button>
        <button type="button" onClick={clear}>
          {TEXTS.clear}
        </button>
      </div>
      {events.length === 0 ? (
        <EmptyState text={live.state === "live" ? TEXTS.waiting : TEXTS.none}>
          <p>{TEXTS.help}</p>
          <SubmitSnippet />
        </EmptyState>
      ) : null}
      <ol class="events" reversed>
        {events.map(renderRow)}
      </ol>
      {events.length < MAX_EVENTS ? null : <p class="quiet">{TEXTS.cut}</p>}
    </Page>
  );
}

interface TailFilters {
  types: readonly string[];
  agent: string;
  tool: string;
  /** Sequence number after which events are displayed; empty to display only new events. */
  from: string;
}

/** Follows the ledger. While the user has paused the list, collects new events in `held` instead of showing them. */
function useTail({ types, agent, tool, from }: TailFilters) {
  // Pass functions to `setTail`, so that an event that arrives during rendering is not lost.
  const [tail, setTail] = useState<{ events: LedgerEvent[]; held: LedgerEvent[]; isPaused: boolean }>({
    events: [],
    held: [],
    isPaused: false,
  });
  const [live, setLive] = useState({ state: "starting", why: "" });
  useEffect(() => {
    const over = new AbortController();
    let arrived: LedgerEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const render = (): void => {
      timer = undefined;
      const newest = arrived;
      arrived = [];
      setTail((old) =>
        old.isPaused
          ? { ...old, held: [...newest, ...old.held].slice(0, MAX_EVENTS) }
          : { ...old, events: [...newest, ...old.events].slice(0, MAX_EVENTS) },
      );
    };
    followLiveEvents({
      filters: {
        ...(types.length === 0 ? {} : { type: types.join(",") }),
        ...(agent === "" ? {} : { agent_id: agent }),
        ...(tool === "" ? {} : { tool }),
      },
      ...(/^(-1|\d{1,15})$/.test(from) ? { after: Number(from) } : {}),
      signal: over.signal,
      onEvent(event) {
        arrived.unshift(event);
        // The page shows at most `MAX_EVENTS` events, so drop older events now.
        if (arrived.length > MAX_EVENTS) arrived.length = MAX_EVENTS;
        timer ??= setTimeout(render, RENDER_EVERY_MS);
      },
      onState: (state, why) => setLive({ state, why }),
    });
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }, []);
  return {
    events: tail.events,
    held: tail.held.length,
    isPaused: tail.isPaused,
    live,
    togglePause: () =>
      setTail((old) =>
        old.isPaused
          ? { events: [...old.held, ...old.events].slice(0, MAX_EVENTS), held: [], isPaused: false }
          : { ...old, isPaused: true },
      ),
    clear: () => setTail((old) => ({ ...old, events: [] })),
  };
}

function Filters({ types, agent, tool, from }: TailFilters) {
  const apply = (form: HTMLFormElement): void => {
    const fields = new FormData(form);
    const text = (name: string): string => (fields.get(name) as string).trim();
    location.hash = buildUrl("#/events", {
      type: (fields.getAll("type") as string[]).join(","),
      agent_id: text("agent_id"),
      tool: text("tool"),
      after: text("after"),
    });
  };
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        apply(event.currentTarget);
      }}
    >
      <details class="types">
        <summary>{TEXTS.types(types)}</summary>
        {listTypes().map((type) => (
          <label class="check" key={type}>
            <input type="checkbox" name="type" value={type} defaultChecked={types.includes(type)} /> {nameOfType(type)}
          </label>
        ))}
      </details>
      <div class="field">
        <label for="e-agent">{TEXTS.agent}</label>
        <input id="e-agent" name="agent_id" defaultValue={agent} autocomplete="off" spellcheck={false} />
      </div>
      <div class="field">
        <label for="e-tool">{TEXTS.tool}</label>
        <input id="e-tool" name="tool" defaultValue={tool} autocomplete="off" spellcheck={false} />
      </div>
      <div class="field">
        <label for="e-after">{TEXTS.from}</label>
        <select id="e-after" name="after">
          <option value="">{TEXTS.fromNow}</option>
          <option value="-1" selected={from === "-1"}>
            {TEXTS.fromStart}
          </option>
        </select>
      </div>
      <button type="submit" class="primary">
        {TEXTS.filter}
      </button>
    </form>
  );
}

/**
 * The rendered element of each event. Preact skips the comparison if an element is the same object as in the previous
 * rendering.
 */
const rendered = new WeakMap<LedgerEvent, VNode>();

function renderRow(event: LedgerEvent): VNode {
  const known = rendered.get(event);
  if (known !== undefined) return known;
  const { tool, operation } = event.entry as { tool?: string; operation?: string };
  if (event.action_id !== null && tool !== undefined) storeActionName(event.action_id, `${tool} ${operation ?? ""}`);
  const row = (
    <li key={event.seq} class="card">
      <div class="row">
        <PageLink href={`#/provenance/${encodeSegment(event.hash)}`}>#{event.seq}</PageLink>
        <Badge value={event.type} label={nameOfType(event.type)} /> <EventSummary event={event} />{" "}
        {event.action_id === null || event.type === "decision" ? null : (
          <a href={`#/actions/${encodeSegment(event.action_id)}`}>
            <ActionName id={event.action_id} />
          </a>
        )}
      </div>
      <Age at={event.at} />
      <JsonDisclosure value={event.entry} label={`Entry ${event.seq}`} summary="Entry" />
    </li>
  );
  rendered.set(event, row);
  return row;
}
