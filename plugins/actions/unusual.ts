/**
 * Compares a request with earlier requests of the same agent, for its approvers. Finds the differences from the last
 * similar request, and unusual values. Two requests are similar if they have the same tool and operation. Never affects
 * a decision.
 */
import { clipText } from "../../src/browser.ts";
import { canonicalText, escapePointerToken, type JsonObject, type JsonValue, renderValue } from "../../src/core.ts";

/** A submitted request, with the id of its action. */
export interface ComparedRequest {
  id: string;
  tool: string;
  operation: string;
  params: JsonObject;
  context: JsonObject;
}

/** A member of `params` or `context` that differs. */
interface DifferingMember {
  /** JSON pointer into `{params, context}`. */
  pointer: string;
  /** Null if the earlier request lacks the member. */
  before: JsonValue;
  /** Null if the request has no such member. */
  after: JsonValue;
}

/** Result of a comparison, which approvers see in addition to the request. */
export interface RequestComparison {
  /** Number of earlier requests, of any tool, with which the request was compared. */
  compared_with: number;
  /** Sentences that are safe to display as plain text. */
  unusual: string[];
  /** The newest similar request, and the differences from it; null if there is no similar request. */
  differs_from: { action_id: string; members: DifferingMember[] } | null;
}

/** Maximum number of earlier actions that a request is compared with. */
export const MAX_COMPARED_ACTIONS = 300;
/** Maximum number of members in `differs_from`, and maximum number of sentences in `unusual`. */
export const MAX_DIFFERENCES = 16;
export const MAX_UNUSUAL_SENTENCES = 8;
/** Minimum number of earlier values with which an amount is compared. */
const MIN_VALUES = 5;
/** Minimum number of earlier values with which another value is compared. */
const MIN_COMPARED_VALUES = 3;
/** A known value is rare if at most this share of the earlier values equals it. */
const RARE_SHARE = 0.1;
const MAX_MEMBERS = 200;
const MAX_DEPTH = 8;
const MAX_ITEMS = 100;
const MAX_TEXT = 300;

/** Matches names of members whose numbers are identifiers or positions, where a large number is not unusual. */
const NO_AMOUNT =
  /(^|[_-])(id|ids|number|no|version|seq|index|offset|page|port|line|timestamp|time|date|year)$|(Id|Number)$/;
/** Names of members whose numbers are amounts and never counters, even if they grow. */
const AMOUNT = /amount|total|sum|price|cost|value|quantity/i;
/**
 * If at least this share of a member's distinct values exceeded all earlier ones, the member is a counter, such as an
 * order number.
 */
const GROWING_SHARE = 0.8;

/**
 * Compares a request with earlier requests. See `RequestComparison`.
 * @param earlier the earlier requests of the same agent, newest first
 * @example compareWithEarlier(request, earlier).unusual // ['"params.amount" 900 is above 120, the 99th percentile of 40 earlier values.']
 */
export function compareWithEarlier(request: ComparedRequest, earlier: readonly ComparedRequest[]): RequestComparison {
  const similar = earlier.filter(({ tool, operation }) => tool === request.tool && operation === request.operation);
  const [last] = similar;
  return {
    compared_with: earlier.length,
    unusual: [...findNewNames(request, earlier, similar.length), ...findUnusualValues(request, similar)].slice(
      0,
      MAX_UNUSUAL_SENTENCES,
    ),
    differs_from: last === undefined ? null : { action_id: last.id, members: listDifferences(last, request) },
  };
}

function findNewNames(
  { tool, operation }: ComparedRequest,
  earlier: readonly ComparedRequest[],
  similar: number,
): string[] {
  if (earlier.length === 0) return ["No earlier request of this agent is known."];
  if (similar > 0) return [];
  const basis = earlier.length === 1 ? "in its only earlier request" : `in its last ${earlier.length} requests`;
  if (earlier.some((each) => each.tool === tool))
    return [`The agent did not use the operation ${renderValue(operation)} of this tool ${basis}.`];
  return [`The agent did not use the tool ${renderValue(tool)} ${basis}.`];
}

function findUnusualValues({ params }: ComparedRequest, similar: readonly ComparedRequest[]): string[] {
  if (similar.length === 0) return [];
  const history = new Map<string, JsonValue[]>();
  for (const { params: values } of similar)
    for (const [pointer, value] of listMembers(values)) {
      const list = history.get(pointer);
      if (list === undefined) history.set(pointer, [value]);
      else list.push(value);
    }
  return [...listMembers(params)].flatMap(([pointer, value]) => {
    const earlier = history.get(pointer) ?? [];
    if (earlier.length === 0 && similar.length < MIN_COMPARED_VALUES) return [];
    return describeUnusual(pointer, value, earlier, similar.length) ?? [];
  });
}

function describeUnusual(
  pointer: string,
  value: JsonValue,
  earlier: readonly JsonValue[],
  similar: number,
): string | null {
  const name = pointer.split("/").at(-1) ?? "";
  const member = renderValue(pointer.slice(1).replaceAll("/", "."));
  if (earlier.length === 0) return `${member} is new: none of ${countOf(similar, "similar request")} had it.`;
  const amount = NO_AMOUNT.test(name) ? null : toAmount(value);
  if (amount !== null) {
    const amounts = earlier.flatMap((each) => toAmount(each) ?? []);
    // A negative refund takes money from the customer.
    if (amount < 0 && amounts.length >= MIN_COMPARED_VALUES && amounts.every((each) => each >= 0))
      return `${member} ${renderValue(value)} is below zero, unlike ${countOf(amounts.length, "earlier value")}.`;
    const top = percentile99(amounts);
    if (top === null || amount <= top || (!AMOUNT.test(name) && isCounter(amounts))) return null;
    return `${member} ${renderValue(value)} is above ${top}, the 99th percentile of ${countOf(amounts.length, "earlier value")}.`;
  }
  const counts = countValues(earlier);
  const distinct = new Set(counts.keys());
  const knownValues = new Set([...distinct, ...earlier.flatMap((each) => itemsOf(each).map(canonicalText))]);
  const values = itemsOf(value).filter((each) => !knownValues.has(canonicalText(each)));
  if (values.length === 0) return describeRare(member, value, counts, earlier.length);
  // A member that often has a new value, such as an order, a customer or free text, is not informative.
  if (earlier.length < MIN_COMPARED_VALUES || distinct.size * 2 > earlier.length) return null;
  return `${member} ${renderValue(values[0])} is new among ${countOf(earlier.length, "earlier value")}.`;
}

/** Describes a known value that earlier requests rarely had, if most of them share another value. */
function describeRare(
  member: string,
  value: JsonValue,
  counts: ReadonlyMap<string, number>,
  total: number,
): string | null {
  const [count, most] = [counts.get(canonicalText(value)) ?? 0, Math.max(...counts.values())];
  const isRare = count / total <= RARE_SHARE || (count === 1 && most >= MIN_COMPARED_VALUES);
  if (count === 0 || most * 2 <= total || !isRare) return null;
  return `${member} ${renderValue(value)} is rare: ${count} of ${countOf(total, "earlier value")}.`;
}

function countValues(values: readonly JsonValue[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of values.map(canonicalText)) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** Returns the items of a list. A longer list counts as one value, so that an agent cannot make the comparison slow. */
function itemsOf(value: JsonValue): readonly JsonValue[] {
  return Array.isArray(value) && value.length <= MAX_ITEMS ? value : [value];
}

/** Converts a JSON number, or a decimal string such as "120.50", to a number. Returns null for any other value. */
function toAmount(value: JsonValue): number | null {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d{1,15}\.\d{1,6}$/.test(value) ? Number(value) : null;
}

/**
 * Returns true if the numbers grow with time, as order numbers do. Of such numbers, the next is usually the largest.
 * @param amounts newest first
 */
function isCounter(amounts: readonly number[]): boolean {
  let [largest, records] = [-Infinity, 0];
  for (const amount of amounts.toReversed()) {
    if (amount > largest) records += 1;
    largest = Math.max(largest, amount);
  }
  return amounts.every(Number.isInteger) && records >= GROWING_SHARE * new Set(amounts).size;
}

/** Returns the 99th percentile by nearest rank; null if there are too few values. */
function percentile99(values: readonly number[]): number | null {
  if (values.length < MIN_VALUES) return null;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? null;
}

/** Returns the members that do not contain other members, keyed by JSON pointer. Does not look into lists. */
function listMembers(params: JsonObject): Map<string, JsonValue> {
  const members = new Map<string, JsonValue>();
  collectMembers("/params", params, members, 0);
  return members;
}

function collectMembers(pointer: string, value: JsonValue, members: Map<string, JsonValue>, depth: number): void {
  if (members.size >= MAX_MEMBERS) return;
  if (typeof value !== "object" || value === null || Array.isArray(value) || depth >= MAX_DEPTH) {
    members.set(pointer, value);
    return;
  }
  for (const [name, member] of Object.entries(value as JsonObject))
    collectMembers(`${pointer}/${escapePointerToken(name)}`, member, members, depth + 1);
}

function listDifferences(before: ComparedRequest, after: ComparedRequest): DifferingMember[] {
  const differences: DifferingMember[] = [];
  const [old, now] = [membersOf(before), membersOf(after)];
  for (const pointer of new Set([...now.keys(), ...old.keys()])) {
    if (differences.length === MAX_DIFFERENCES) break;
    const [earlier, later] = [old.get(pointer), now.get(pointer)];
    const isSame = earlier !== undefined && later !== undefined && canonicalText(earlier) === canonicalText(later);
    if (!isSame) differences.push({ pointer, before: clipValue(earlier), after: clipValue(later) });
  }
  return differences;
}

function membersOf({ params, context }: ComparedRequest): Map<string, JsonValue> {
  const members = listMembers(params);
  collectMembers("/context", context, members, 0);
  return members;
}

/** Shortens long values, so that the response stays small. */
function clipValue(value: JsonValue | undefined): JsonValue {
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : canonicalText(value);
  return text.length <= MAX_TEXT ? value : clipText(text, MAX_TEXT);
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
