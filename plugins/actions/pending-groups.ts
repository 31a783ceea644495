/**
 * Groups pending actions that the same rule decided for the same tool and operation, for the approvers' inbox. A group
 * has one sentence: the rule's preview with the values of all its actions.
 */
import { findHeadline } from "../../src/browser.ts";
import {
  type CompiledPolicySet,
  effectiveRequest,
  findPresentation,
  type PreviewPart,
  redactRow,
  renderPreview,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { compareSortKeys, createGroupIds, RISKS, type SortKey } from "./pending-filter.ts";

/** A number as JSON renders it, perhaps with its unit. Texts in a preview have quotation marks, so they do not match. */
const NUMBER = /^(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)( [\p{L}%°²³/]{1,12})?$/u;
/** Maximum number of different values that are counted. */
const MAX_VALUES = 100;
/** Maximum number of agents that are counted. */
const MAX_AGENTS = 100;
/** Maximum number of ranges in a sentence, one for each unit. */
const MAX_RANGES = 3;
/** Stand for a value that an action does not have, and for a request that cannot be read. */
const [NOT_GIVEN, UNREADABLE] = ["(not given)", "(cannot be read)"];

/** Pending actions that the same rule decided for the same tool and operation. */
export interface PendingGroup extends Pick<ActionRow, "tool" | "operation" | "policy" | "rule"> {
  id: string;
  count: number;
  /** Names of the agents, at most `MAX_AGENTS`. */
  agents: Set<string>;
  /** The highest risk; null if none is rated. */
  risk_level: string | null;
  /** The earliest deadline. Milliseconds. */
  expires_at: number;
  /** The first action in the order of the list, and its position. */
  first: { id: string; key: SortKey };
  /** The parts of the rule's preview; null without one. */
  parts: readonly PreviewPart[] | null;
  /** JSON pointers of the members that determine the headline. */
  shownFirst: readonly string[];
  /** The values of the preview, one for each part, or the headline's value if there is no preview. */
  values: readonly MergedValue[];
}

/** Collects actions into groups. */
export class PendingGroups {
  readonly #groups = new Map<string, PendingGroup>();
  readonly #idOf = createGroupIds();

  readonly #set: CompiledPolicySet;

  /** @param set the active policies, whose rules have the previews */
  constructor(set: CompiledPolicySet) {
    this.#set = set;
  }

  /** @param key the action's position in the order of the list */
  add(row: ActionRow, key: SortKey): void {
    const id = this.#idOf(row);
    const group = this.#groups.get(id) ?? this.#create(id, row, key);
    group.count += 1;
    if (group.agents.size < MAX_AGENTS) group.agents.add(row.agent_id);
    if (rankOf(row.risk_level) > rankOf(group.risk_level)) group.risk_level = row.risk_level;
    group.expires_at = Math.min(group.expires_at, row.expires_at ?? Infinity);
    if (compareSortKeys(key, group.first.key) < 0) group.first = { id: row.id, key };
    this.#addValues(group, row);
  }

  /** Returns the groups in the order of their first actions. */
  list(): PendingGroup[] {
    return [...this.#groups.values()].sort((a, b) => compareSortKeys(a.first.key, b.first.key));
  }

  #create(id: string, row: ActionRow, key: SortKey): PendingGroup {
    const { tool, operation, policy, rule } = row;
    const { preview: parts, shown_first: shownFirst } = findPresentation(this.#set, row);
    const group: PendingGroup = {
      id,
      tool,
      operation,
      policy,
      rule,
      parts,
      shownFirst,
      count: 0,
      agents: new Set(),
      risk_level: null,
      expires_at: Infinity,
      first: { id: row.id, key },
      values: (parts ?? [null]).map(() => new MergedValue()),
    };
    this.#groups.set(id, group);
    return group;
  }

  #addValues({ parts, shownFirst, values }: PendingGroup, row: ActionRow): void {
    const request = this.#readRequest(row);
    if (parts === null) {
      const headline = request === null ? null : findHeadline({ ...request, shown_first: shownFirst });
      values[0]?.add(request === null ? UNREADABLE : (headline?.value ?? NOT_GIVEN));
      return;
    }
    for (const [i, part] of parts.entries()) {
      if ("text" in part) values[i]?.add(part.text);
      else values[i]?.add(request === null ? UNREADABLE : renderPreview([part], { ...row, ...request }));
    }
  }

  /** Returns the redacted request; null if someone altered the store. Opening the request reports that. */
  #readRequest(row: ActionRow) {
    try {
      return effectiveRequest(redactRow(this.#set, row));
    } catch {
      return null;
    }
  }
}

const rankOf = (risk: string | null): number => RISKS.indexOf(risk as (typeof RISKS)[number]);

/** The numbers of one unit. The texts are as the requests have them. */
interface Range {
  smallest: { number: number; text: string };
  largest: { number: number; text: string };
  /** Whether there are other numbers between them. */
  hasMore: boolean;
}

/**
 * The values of one member in several actions, as one text: `20 or 480`, `20 to 480` if there are others between, `"EUR" or "USD"`, `"cus_1" and 13 others`.
 * Numbers come first, as one range for each unit, so that neither a text nor another unit hides the largest amount.
 */
class MergedValue {
  /** Keyed by unit. */
  readonly #ranges = new Map<string, Range>();
  readonly #texts = new Set<string>();
  #isMore = false;

  add(text: string): void {
    const [, digits, unit = ""] = NUMBER.exec(text) ?? [];
    const range = this.#ranges.get(unit);
    if (digits === undefined) return this.#addText(text);
    const value = { number: Number(digits), text: digits };
    if (range === undefined) {
      if (this.#hasRoom()) this.#ranges.set(unit, { smallest: value, largest: value, hasMore: false });
      else this.#isMore = true;
      return;
    }
    const { smallest, largest } = range;
    const isNew = value.number !== smallest.number && value.number !== largest.number;
    range.hasMore ||= isNew && smallest.number !== largest.number;
    if (value.number < smallest.number) range.smallest = value;
    else if (value.number > largest.number) range.largest = value;
    // Digits that `Number` cannot distinguish, such as those of two long account numbers.
    else if ([smallest, largest].some(({ number, text: other }) => number === value.number && other !== digits))
      this.#addText(text);
  }

  /** Whether there is no value. */
  get isEmpty(): boolean {
    return this.#ranges.size === 0 && [...this.#texts].every((text) => text === NOT_GIVEN);
  }

  toString(): string {
    const values = [...[...this.#ranges].map(renderRange), ...this.#texts];
    const shown = Math.min(Math.max(this.#ranges.size, 1), MAX_RANGES);
    const left = values.length - shown;
    if (left <= 1 && !this.#isMore) return values.join(" or ");
    return `${values.slice(0, shown).join(" or ")} and ${this.#isMore ? "more than " : ""}${left} others`;
  }

  #addText(text: string): void {
    if (this.#hasRoom()) this.#texts.add(text);
    else if (!this.#texts.has(text)) this.#isMore = true;
  }

  #hasRoom(): boolean {
    return this.#ranges.size + this.#texts.size < MAX_VALUES;
  }
}

function renderRange([unit, { smallest, largest, hasMore }]: [string, Range]): string {
  if (smallest.number === largest.number) return `${smallest.text}${unit}`;
  return `${smallest.text} ${hasMore ? "to" : "or"} ${largest.text}${unit}`;
}
