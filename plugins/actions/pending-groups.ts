/**
 * Groups pending actions that the same rule decided for the same tool and operation, for the approvers' inbox. A group
 * has one sentence: the rule's preview with the values of all its actions.
 */
import { findHeadline } from "../../src/browser.ts";
import {
  type CompiledPolicySet,
  effectiveRequest,
  findPreview,
  type PreviewPart,
  redactRow,
  renderPreview,
} from "../../src/core.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { compareSortKeys, createGroupIds, RISKS, type SortKey } from "./pending-filter.ts";

/** A number, perhaps with its unit. Texts in a preview have quotation marks, so they do not match. */
const NUMBER = /^(-?\d+(?:\.\d+)?)( .{1,12})?$/;
/** Maximum number of different texts that are counted. */
const MAX_TEXTS = 100;

/** Pending actions that the same rule decided for the same tool and operation. */
export interface PendingGroup extends Pick<ActionRow, "tool" | "operation" | "policy" | "rule"> {
  id: string;
  count: number;
  /** Names of the agents, at most `MAX_TEXTS`. */
  agents: Set<string>;
  /** The highest risk; null if none is rated. */
  risk_level: string | null;
  /** The earliest deadline. Milliseconds. */
  expires_at: number;
  /** The first action in the order of the list, and its position. */
  first: { id: string; key: SortKey };
  /** The parts of the rule's preview; null without one. */
  parts: readonly PreviewPart[] | null;
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
    if (group.agents.size < MAX_TEXTS) group.agents.add(row.agent_id);
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
    const parts = findPreview(this.#set, row);
    const group: PendingGroup = {
      id,
      tool,
      operation,
      policy,
      rule,
      parts,
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

  #addValues({ parts, values }: PendingGroup, row: ActionRow): void {
    let request;
    try {
      request = effectiveRequest(redactRow(this.#set, row));
    } catch {
      // Someone altered the store. Opening the request reports it.
    }
    if (request === null || request === undefined) return;
    const action = { ...row, params: request.params, context: request.context };
    if (parts === null) values[0]?.add(findHeadline(action)?.value ?? "");
    else for (const [i, part] of parts.entries()) values[i]?.add(renderPreview([part], action));
  }
}

const rankOf = (risk: string | null): number => RISKS.indexOf(risk as (typeof RISKS)[number]);

/** The values of one member in several actions, as one text: `20 to 480`, `"EUR" or "USD"`, `"cus_1" and 13 others`. */
class MergedValue {
  readonly #texts = new Set<string>();
  #isMore = false;
  #smallest: [number, string] | null = null;
  #largest: [number, string] | null = null;
  /** The unit of all values; null if they are no numbers or differ in their units. */
  #unit: string | null | undefined;

  add(text: string): void {
    if (this.#texts.size < MAX_TEXTS) this.#texts.add(text);
    else if (!this.#texts.has(text)) this.#isMore = true;
    const [, digits, unit = ""] = NUMBER.exec(text) ?? [];
    if (digits === undefined || (this.#unit !== undefined && this.#unit !== unit)) {
      this.#unit = null;
      return;
    }
    this.#unit = unit;
    const number = Number(digits);
    if (this.#smallest === null || number < this.#smallest[0]) this.#smallest = [number, digits];
    if (this.#largest === null || number > this.#largest[0]) this.#largest = [number, digits];
  }

  toString(): string {
    const [first = "", second = ""] = this.#texts;
    if (this.#texts.size < 2) return first;
    if (typeof this.#unit === "string") return `${this.#smallest?.[1]} to ${this.#largest?.[1]}${this.#unit}`;
    if (this.#texts.size === 2) return `${first} or ${second}`;
    return `${first} and ${this.#isMore ? "more than " : ""}${this.#texts.size - 1} others`;
  }
}
