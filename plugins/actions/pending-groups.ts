/**
 * Groups pending actions that the same rule decided for the same tool and operation, for the approvers' inbox. A group
 * has one sentence: the rule's preview with the values of all its actions.
 */
import { RISKS } from "./pending-filter.ts";
import { NOT_GIVEN, type PendingAction } from "./pending-index.ts";

/** A number as JSON renders it, perhaps with its unit. Texts in a preview have quotation marks, so they do not match. */
const NUMBER = /^(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)( [\p{L}%°²³/]{1,12})?$/u;
/** Maximum number of different values that are counted. */
const MAX_VALUES = 100;
/** Maximum number of agents that are counted. */
const MAX_AGENTS = 100;
/** Maximum number of ranges in a sentence, one for each unit. */
const MAX_RANGES = 3;

/** Pending actions that the same rule decided for the same tool and operation. */
export interface PendingGroup extends Pick<PendingAction, "tool" | "operation" | "policy" | "rule" | "hasPreview"> {
  id: string;
  count: number;
  /** Names of the agents, at most `MAX_AGENTS`. */
  agents: Set<string>;
  /** The highest risk; null if none is rated. */
  risk_level: string | null;
  /** The earliest deadline. Milliseconds. */
  expires_at: number;
  /** Id of the first action in the order of the list. */
  first: string;
  /** The values of the preview, one for each part, or the headline's value if there is no preview. */
  values: readonly MergedValue[];
}

/**
 * Collects actions into groups, keyed by id.
 * @param actions in the order of the list, which is also the order of the groups by their first actions
 * @param groups the groups of earlier actions
 */
export function collectGroups(actions: readonly PendingAction[], groups: Map<string, PendingGroup>): void {
  for (const action of actions) {
    let group = groups.get(action.group);
    if (group === undefined) groups.set(action.group, (group = createGroup(action)));
    group.count += 1;
    if (group.agents.size < MAX_AGENTS) group.agents.add(action.agent_id);
    if (action.risk_level !== group.risk_level && rankOf(action.risk_level) > rankOf(group.risk_level))
      group.risk_level = action.risk_level;
    group.expires_at = Math.min(group.expires_at, action.expires_at ?? Infinity);
    for (let i = 0; i < action.values.length; i++) group.values[i]?.add(action.values[i] as string);
  }
}

function createGroup({ id, group, tool, operation, policy, rule, hasPreview, values }: PendingAction): PendingGroup {
  return {
    id: group,
    tool,
    operation,
    policy,
    rule,
    hasPreview,
    count: 0,
    agents: new Set(),
    risk_level: null,
    expires_at: Infinity,
    first: id,
    values: values.map(() => new MergedValue()),
  };
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
  #last: string | null = null;

  add(text: string): void {
    // Many actions have the same value, and all have the same text between the values.
    if (text === this.#last) return;
    this.#last = text;
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
