/** Finds requests of the same shape, and the members in which they differ. Pure. */
import { clipText, rankParameters } from "../../../../src/browser.ts";

/** A fact that a vote is about. */
interface Pin {
  policy: string;
  path: string;
  value?: unknown;
}

/** The members of an action that this module reads. */
interface Comparable {
  id: string;
  agent_id: string;
  tool: string;
  operation: string;
  params: Record<string, unknown>;
  context: Record<string, unknown>;
  /** JSON pointers of the members to display first. */
  shown_first?: readonly string[] | undefined;
  pins?: readonly Pin[] | undefined;
}

export interface RequestGroup<T extends Comparable> {
  /** A key that requests of the same shape share. */
  key: string;
  tool: string;
  operation: string;
  /** Names of the members whose values differ, in the order of `rankParameters`. */
  columns: readonly string[];
  /** Names of other members that differ and have no column. */
  moreColumns: readonly string[];
  /** Members with the same value in all requests. */
  common: readonly { name: string; text: string }[];
  /** The requests, outliers first. */
  rows: readonly GroupRow<T>[];
}

interface GroupRow<T extends Comparable> {
  action: T;
  /** Values of the columns, as strings. */
  cells: readonly { text: string; isOutlier: boolean }[];
}

const MAX_COLUMNS = 5;
const MAX_CELL = 60;
/** A number is an outlier if its distance from the median is at least this many median absolute deviations. */
const OUTLIER = 6;
/**
 * If more than half of the rows share a value, a different value is an outlier if at most this share of the rows has
 * it, or if only one row has it and at least `FEW` rows share the other value.
 */
const RARE = 0.1;
const FEW = 4;

/** Returns the shape of a request: tool, operation and the names of its members. */
function requestShape(action: Comparable): string {
  return JSON.stringify([action.tool, action.operation, ...[...membersOf(action).keys()].sort()]);
}

/** Returns parameters keyed by name, members of the context keyed as `context.name`, and pinned facts. */
function membersOf({ params, context, pins = [] }: Comparable): Map<string, unknown> {
  const named = Object.entries(context).map(([name, value]) => [`context.${name}`, value] as const);
  return new Map([...Object.entries(params), ...named, ...namePins(pins)]);
}

/** Returns the values of pinned facts, each with its path; with its policy, too, if another policy pins this path. */
function namePins(pins: readonly Pin[]): [string, unknown][] {
  return pins.map(({ policy, path, value }) => {
    const isShared = pins.some((other) => other.path === path && other.policy !== policy);
    return [isShared ? `${path} (${policy})` : path, value];
  });
}

/** Groups requests by shape, in the order of their first request. */
export function groupByShape<T extends Comparable>(actions: readonly T[]): RequestGroup<T>[] {
  const groups = new Map<string, T[]>();
  for (const action of actions) {
    const key = requestShape(action);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [action]);
    else group.push(action);
  }
  return [...groups].map(([key, members]) => toGroup(key, members));
}

function toGroup<T extends Comparable>(key: string, actions: readonly T[]): RequestGroup<T> {
  const [sample] = actions as [T];
  const members = actions.map(membersOf);
  const pinned = new Set(namePins(sample.pins ?? []).map(([name]) => name));
  const ranked = rankParameters({
    params: Object.fromEntries(membersOf(sample)),
    shown_first: (sample.shown_first ?? []).map((pointer) => pointer.replace(/^\/context\//, "/params/context.")),
  }).map(({ name }) => name);
  // A vote is about the pinned facts, so each one that differs has a column.
  const names = [...pinned, ...ranked.filter((name) => !pinned.has(name))];
  const isDifferent = (name: string): boolean => new Set(members.map((one) => textOf(one.get(name)))).size > 1;
  const different = names.filter(isDifferent);
  const columns = different.filter((name, i) => i < MAX_COLUMNS || pinned.has(name));
  const scores = columns.map((name) => scoreOutliers(members.map((one) => one.get(name))));
  const rows = actions
    .map((action, i) => ({
      score: Math.max(0, ...scores.map((column) => column[i] ?? 0)),
      row: {
        action,
        cells: columns.map((name, column) => ({
          text: clip(textOf(members[i]?.get(name))),
          isOutlier: (scores[column]?.[i] ?? 0) >= 1,
        })),
      },
    }))
    // The sort is stable, so the other rows stay in the order of the list.
    .sort((a, b) => (b.score >= 1 ? b.score : 0) - (a.score >= 1 ? a.score : 0))
    .map(({ row }) => row);
  return {
    key,
    tool: sample.tool,
    operation: sample.operation,
    columns,
    moreColumns: different.slice(columns.length),
    common: names
      .filter((name) => !isDifferent(name))
      .map((name) => ({ name, text: clip(textOf(members[0]?.get(name))) })),
    rows,
  };
}

/** Returns how unusual each value is among the others. A score of 1 or more marks an outlier. */
export function scoreOutliers(values: readonly unknown[]): number[] {
  if (values.length < 3) return values.map(() => 0);
  if (values.every((value) => typeof value === "number")) return numberScores(values as readonly number[]);
  const counts = new Map<string, number>();
  for (const value of values) counts.set(textOf(value), (counts.get(textOf(value)) ?? 0) + 1);
  // If all values differ, like ids, no value is unusual.
  const most = Math.max(...counts.values());
  if (most / values.length <= 0.5) return values.map(() => 0);
  return values.map((value) => {
    const count = counts.get(textOf(value)) ?? 0;
    return count / values.length <= RARE || (count === 1 && most >= FEW) ? 1 : 0;
  });
}

function numberScores(values: readonly number[]): number[] {
  const median = medianOf(values);
  const deviation = medianOf(values.map((value) => Math.abs(value - median)));
  return values.map((value) => {
    const distance = Math.abs(value - median);
    if (deviation === 0) return distance === 0 ? 0 : 1;
    return distance / deviation / OUTLIER;
  });
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? 0)) / 2;
}

function textOf(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns the text, shortened to fit a table cell. If it was shortened, appends the number of removed characters. */
function clip(text: string): string {
  const clipped = clipText(text, MAX_CELL);
  return text.length <= MAX_CELL ? text : `${clipped} ${(text.length - MAX_CELL).toLocaleString("en")} more characters`;
}
