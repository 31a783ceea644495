/** Typical parameters of an agent: ranges of numbers and the most frequent values, computed from its newest actions. */
import type { Action } from "../../console/app/kit.ts";

/** Maximum number of members per kind of action, and of values per member. */
const MAX_MEMBERS = 12;
const MAX_VALUES = 3;
/** Nested objects below this depth are omitted. */
const MAX_DEPTH = 3;
/** Longer values are shortened. */
const MAX_TEXT = 60;

interface TypicalNumber {
  kind: "number";
  name: string;
  /** Number of actions with the member. */
  count: number;
  /** 5th percentile, median and 95th percentile, by nearest rank. */
  low: number;
  middle: number;
  high: number;
}

interface TypicalText {
  kind: "text";
  name: string;
  count: number;
  /** The most frequent values, most frequent first. Empty if all values differ. */
  values: { text: string; count: number }[];
  /** Number of different values. */
  distinct: number;
}

export interface TypicalAction {
  tool: string;
  operation: string;
  count: number;
  members: (TypicalNumber | TypicalText)[];
}

type Sample = Pick<Action, "tool" | "operation" | "params">;

/** Returns what is typical for each tool and operation, the most frequent kind first. */
export function findTypicalParameters(actions: readonly Sample[]): TypicalAction[] {
  const kinds = new Map<string, Sample[]>();
  for (const action of actions) {
    const name = JSON.stringify([action.tool, action.operation]);
    kinds.set(name, [...(kinds.get(name) ?? []), action]);
  }
  return [...kinds.values()]
    .sort((a, b) => b.length - a.length)
    .map((group) => {
      const { tool, operation } = group[0] as Sample;
      return { tool, operation, count: group.length, members: describeMembers(group) };
    });
}

function describeMembers(actions: readonly Sample[]): TypicalAction["members"] {
  const members = new Map<string, unknown[]>();
  for (const { params } of actions)
    for (const [name, value] of listMembers(params, "", 1)) members.set(name, [...(members.get(name) ?? []), value]);
  return [...members]
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, MAX_MEMBERS)
    .map(([name, values]) => describeMember(name, values));
}

function listMembers(value: Readonly<Record<string, unknown>>, path: string, depth: number): [string, unknown][] {
  return Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    const at = path === "" ? name : `${path}.${name}`;
    const isObject = typeof member === "object" && member !== null && !Array.isArray(member);
    if (!isObject) return [[at, member]];
    return depth === MAX_DEPTH ? [] : listMembers(member as Record<string, unknown>, at, depth + 1);
  });
}

function describeMember(name: string, values: readonly unknown[]): TypicalNumber | TypicalText {
  const numbers = values.filter((value) => typeof value === "number");
  if (numbers.length === values.length) {
    const sorted = numbers.toSorted((a, b) => a - b);
    const rank = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
    return { kind: "number", name, count: values.length, low: rank(0.05), middle: rank(0.5), high: rank(0.95) };
  }
  const counts = new Map<string, number>();
  for (const value of values) {
    const text = (typeof value === "string" ? value : JSON.stringify(value)).slice(0, MAX_TEXT);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const frequent = [...counts].map(([text, count]) => ({ text, count })).sort((a, b) => b.count - a.count);
  const isRepeated = counts.size < values.length || counts.size === 1;
  return {
    kind: "text",
    name,
    count: values.length,
    values: isRepeated ? frequent.slice(0, MAX_VALUES) : [],
    distinct: counts.size,
  };
}
