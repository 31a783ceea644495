/**
 * What features add to the console. A folder `plugins/<name>/page` exports one `ConsolePart`, which the build finds; the
 * console uses it if the service has loaded the plugin with this name.
 */
import type { ComponentChildren, ComponentType } from "preact";
import type { IconName } from "../ui/icons.tsx";
import type { Action } from "./api-types.ts";
import { ApiError } from "./api.ts";
import type { Me } from "./me.ts";

/** Sections of the menu, in order. The first has no heading. */
export const SECTIONS = ["Work", "Control", "People", "Record", "Service"] as const;
export type Section = (typeof SECTIONS)[number];

/** A page. Its address is `#/<name>/<id>?<query>`. */
export interface PageEntry {
  /** Name of the page in the address. */
  name: string;
  /** Label in the menu. */
  title: string;
  icon: IconName;
  /** Null for a page that is not in the menu. Other pages link to it. */
  section: Section | null;
  /** Position in the section, in ascending order. */
  order: number;
  /** A credential with any of these scopes can open the page. If empty, no scope is needed. */
  scopes: readonly string[];
  /**
   * Forms of the page that the command palette opens, if the credential has the scope: the path follows the page's name
   * in the address. See `useAddressedForm`.
   */
  forms?: readonly { title: string; path: string; scope: string }[];
  /** Imports the page's module, which the browser loads only once. */
  load(): Promise<ComponentType<{ id: string | null; query: URLSearchParams }>>;
}

/** A command, which is at the end of the menu and in the command palette. It opens a dialog. */
export interface Command {
  title: string;
  icon: IconName;
  /** Whether the menu shows it in red. */
  isUrgent?: boolean;
  /** Returns whether the signed-in credential can use the command. */
  isOffered(me: Me): boolean;
  load(): Promise<ComponentType<{ onClose(): void }>>;
}

/** An object that the command palette found. */
export interface FoundObject {
  /** Address of its page. */
  address: string;
  title: string;
  /** Kind of object, such as "agent". */
  kind: string;
}

/** Finds objects of a feature by text, for the command palette. */
export interface Finder {
  icon: IconName;
  /** As for pages. */
  scopes: readonly string[];
  /**
   * Imports the search. It is called with a text that is not empty, in lower case. The palette displays the first few
   * of the objects that it returns.
   */
  load(): Promise<(text: string, signal: AbortSignal) => Promise<readonly FoundObject[]>>;
}

/** The places of pages to which a feature can add panels, with the properties of their panels. */
export interface Places {
  /** Above every page. */
  banner: object;
  /** On the page on which no one is signed in: a way to sign in. */
  "sign-in": object;
  /** To the right of the title of the page about an agent. */
  "agent-title": { agent: string };
  /** Cards above those of the agent's actions. */
  "agent-summary": { agent: string };
  /** Cards below those of the agent's actions. `actions` are its newest actions, and empty until they are loaded. */
  agent: { agent: string; actions: readonly Action[] };
  /** Below the status on the page about an action. `onChanged` reads the action again. */
  "action-outcome": { action: Action; onChanged(): void };
  /** Cards of the page about an action. */
  action: { action: Action };
  /** Above the request on the page about an action: what allowed the action without a vote. */
  "action-allowed": { action: Action; entries: readonly object[]; onChange(message: string): void };
  /** Next to what is still possible with an action that someone let through, in the inbox and on its page. */
  settled: { action: Action };
  /** After the agent in a row of the inbox; text only. */
  "request-row": { action: Action };
  /** Below the first line of a request that is pending. */
  request: { action: Action };
  /** Below the questions about a request that is open. `onChanged` displays the changed action. */
  "request-questions": { action: Action; onChanged(action: Action): void };
  /** In the open request, below its content. */
  "request-changes": { action: Action; onChanged(action: Action): void };
  /** Above the vote buttons of a request. */
  vote: { id: string; terms: VoteTerms; onChoose(addition: VoteAddition | null): void };
  /** Where a voter adds a grant to an approval. `onName` receives the title of the task to start, or null for no task. */
  "grant-offer": { onName(title: string | null): void };
  /** Above the vote on a plan. */
  plan: { plan: { id: string; digest: string; agent_id: string; actions: readonly Action[] } };
  /** Below why the person cannot approve a pending request: other ways to vote. */
  "other-votes": {
    action: Action;
    /** Resolves to null, or to the error if the vote was not recorded. */
    castVote(vote: { approve: boolean; reason: string; break_glass?: boolean }): Promise<Error | null>;
  };
  /** Below the outcome of a test request in the inbox. */
  "test-request": { action: Action };
  /** Next to a policy that is not active: what it would change. */
  "policy-candidate": {
    /** Unique on the page. */
    name: string;
    candidate: { yaml: string } | { policy: Record<string, unknown> };
    /** Whether the panel starts without a click. */
    startsItself?: boolean;
    /**
     * Called with the error of a request. Returns true if the editor displays the error, so that the panel does not.
     */
    onRefused?: (error: unknown) => boolean;
  };
  /** Cards of the page about the service. */
  system: object;
  /** Cards of the page about a user. */
  person: { user: string };
}

/** What the rules allow with a vote. */
export type VoteTerms = NonNullable<Action["approval_terms"]>;

/** An addition to an approval, such as a grant. A panel lets the voter choose it. */
export interface VoteAddition {
  /** Member `grant` of the vote's body, and of the statement that the voter signs. */
  body: object;
  signed: Readonly<Record<string, unknown>>;
  /** Label of the approve button. */
  label: string;
}

/** A piece of a page that belongs to another feature. */
export type Panel = {
  [P in keyof Places]: {
    place: P;
    /** Position in the place, in ascending order. Default: 0. */
    order?: number;
    /** As for pages. Default: no scope is needed. */
    scopes?: readonly string[];
    load(): Promise<ComponentType<Places[P]>>;
  };
}[keyof Places];

/** Where people vote on an action that they cannot approve alone. */
export interface VoteElsewhere {
  /** Code of the error of a vote on such an action alone. */
  code: string;
  /** Returns whether the action is one of these. */
  includes(action: Action): boolean;
  /** Imports what the inbox displays instead of the vote buttons. */
  load(): Promise<ComponentType<{ action: Action }>>;
}

/** Timelines that show changes of the whole service. */
export type TimelineName = "person" | "system";

export interface EntryTexts {
  /** Returns the line of an entry in the list of events. */
  summarize(entry: Record<string, unknown>): ComponentChildren;
  /** Returns what an entry is about; timelines show it after the type. */
  describe(entry: Record<string, unknown>): ComponentChildren;
  /** Colours of the marks in timelines, keyed by the entry's `change`. */
  marks?: Readonly<Record<string, "good" | "bad" | "busy">>;
}

/** Texts that pages of other features show. */
export interface PartTexts {
  /** Texts of the feature's ledger entries, keyed by type. */
  entries?: Readonly<Record<string, EntryTexts>>;
  /** What each scope permits. */
  scopes?: Readonly<Record<string, string>>;
}

/**
 * The contribution of a feature to the console. It is part of the first script, so everything else is imported by
 * `load`.
 */
export interface ConsolePart {
  pages?: readonly PageEntry[];
  commands?: readonly Command[];
  finders?: readonly Finder[];
  panels?: readonly Panel[];
  votesElsewhere?: readonly VoteElsewhere[];
  /** Types of the feature's ledger entries, with the timelines that show them. */
  entries?: Readonly<Record<string, readonly TimelineName[]>>;
  /** Imports the texts, before the first list that needs them is displayed. */
  texts?(): Promise<PartTexts>;
}

let parts: readonly ConsolePart[] = [];
let pages: readonly PageEntry[] = [];
let texts: Promise<void> | null = null;
const entryTexts = new Map<string, EntryTexts>();
const textsOfScopes = new Map<string, string>();

/** Sets the parts of the loaded plugins, once, before the console is displayed. */
export function setParts(loaded: readonly ConsolePart[]): void {
  parts = loaded;
  pages = loaded
    .flatMap((part) => part.pages ?? [])
    .sort(
      (a, b) =>
        SECTIONS.indexOf(a.section ?? "Service") - SECTIONS.indexOf(b.section ?? "Service") || a.order - b.order,
    );
}

/** Returns the pages in the order of the menu. */
export function listPages(): readonly PageEntry[] {
  return pages;
}

/** Returns whether a feature has the page with this name. The credential might not have the scope for it. */
export function hasPage(name: string): boolean {
  return pages.some((page) => page.name === name);
}

export function listCommands(me: Me): Command[] {
  return parts.flatMap(({ commands = [] }) => commands).filter((command) => command.isOffered(me));
}

/** Returns the finders. That of actions is the last, because the text of an action contains the names of other objects. */
export function listFinders(): Finder[] {
  return parts.flatMap(({ finders = [] }) => finders).reverse();
}

export function listPanels(place: keyof Places): Panel[] {
  return parts
    .flatMap(({ panels = [] }) => panels)
    .filter((panel) => panel.place === place)
    .sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
}

/** Returns where people vote on the action, if they cannot approve it alone; else null. */
export function findVoteElsewhere(action: Action): VoteElsewhere | null {
  return parts.flatMap(({ votesElsewhere = [] }) => votesElsewhere).find(({ includes }) => includes(action)) ?? null;
}

/** Returns whether a feature adds a panel to the place. */
export function hasPanels(place: keyof Places): boolean {
  return listPanels(place).length > 0;
}

/** Returns the types of features' ledger entries, or only those that a timeline shows. */
export function listEntryTypes(timeline?: TimelineName): string[] {
  return parts.flatMap(({ entries = {} }) =>
    Object.entries(entries).flatMap(([type, timelines]) =>
      timeline === undefined || timelines.includes(timeline) ? [type] : [],
    ),
  );
}

/** Loads the texts of all features. Await it before `entryTextsOf` or `scopeTexts`. */
export function loadTexts(): Promise<void> {
  texts ??= (async () => {
    for (const { entries = {}, scopes = {} } of await loadModule(() =>
      Promise.all(parts.map(async (part): Promise<PartTexts> => (await part.texts?.()) ?? {})),
    )) {
      for (const [type, found] of Object.entries(entries)) entryTexts.set(type, found);
      for (const [scope, text] of Object.entries(scopes)) textsOfScopes.set(scope, text);
    }
  })();
  texts.catch(() => (texts = null));
  return texts;
}

export function entryTextsOf(type: string): EntryTexts | undefined {
  return entryTexts.get(type);
}

/** Returns what each scope of a feature permits, keyed by scope. */
export function scopeTexts(): Readonly<Record<string, string>> {
  return Object.fromEntries(textsOfScopes);
}

/** Imports a module with `load`. Throws `ApiError` if the service does not return it. */
export async function loadModule<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch {
    const detail = "a part of this page could not be loaded; if the service was updated, reload the console";
    throw new ApiError({ status: 0, code: "UNREACHABLE", detail });
  }
}
