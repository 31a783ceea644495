/**
 * Computes narrow conditions on parameters and context that are true for all approved values. To prevent injection into CEL, a
 * condition contains values only as CEL literals, names only as identifiers or CEL literals, and patterns built from
 * `PIECES`.
 */
import {
  celLiteral,
  celMember,
  type JsonObject,
  type JsonValue,
  REQUEST_PARTS,
  type RequestPart,
} from "../../../src/core.ts";

export type Scalar = string | number | boolean | null;

/** The part of a request that conditions read. */
export type MinedRequest = Readonly<Record<RequestPart, JsonObject>>;

/** The values of a request, keyed by part and name, such as `params.amount` or `context.env`. */
export type Members = Readonly<Record<string, Scalar>>;

export interface MinedCondition {
  kind: "members" | "equality" | "membership" | "prefix" | "range" | "pattern";
  /** The member, such as `params.amount`; null for a condition on the set of names. */
  member: string | null;
  /** Source of the condition in CEL. */
  text: string;
  /** The condition for people, such as `amount is from 5 to 20`. Values are CEL literals. */
  words: string;
  holds(request: MinedRequest): boolean;
}

/** Maximum number of characters of a string for which conditions are suggested. */
const MAX_TEXT = 256;
/** Maximum number of characters of a value of a rejected request. */
const MAX_SHOWN_VALUE = 80;
const MAX_MEMBERS = 8;
/** Minimum number of occurrences of a value to be in a list of values. */
const MIN_OCCURRENCES = 2;
/** Minimum number of different values for a range or a pattern. */
const MIN_DISTINCT = 6;
const MIN_PREFIX = 3;

/**
 * Components of a character class, in the order in which they are written. None of these characters has a special
 * meaning in a shell.
 */
const PIECES: readonly (readonly [piece: string, pattern: RegExp, words: string])[] = [
  ["a-z", /[a-z]/, "small letters"],
  ["A-Z", /[A-Z]/, "capital letters"],
  ["0-9", /[0-9]/, "digits"],
  ["_", /_/, "_"],
  [".", /\./, "."],
  ["@", /@/, "@"],
  ["/", /\//, "/"],
  [":", /:/, ":"],
  ["-", /-/, "-"],
];

/**
 * Returns the parameters and the context if each value is a string of at most 256 UTF-16 code units, a number from
 * -(2^53 - 1) to 2^53 - 1, a boolean or null. Otherwise returns null.
 */
export function scalarMembers(request: MinedRequest): Members | null {
  const members: Record<string, Scalar> = {};
  for (const part of REQUEST_PARTS)
    for (const [name, value] of Object.entries(request[part])) {
      if (!isScalar(value)) return null;
      members[`${part}.${name}`] = value;
    }
  return members;
}

/** Returns the part and the name of a key of `Members`. */
function splitMember(member: string): { part: RequestPart; name: string } {
  const dot = member.indexOf(".");
  return { part: member.slice(0, dot) as RequestPart, name: member.slice(dot + 1) };
}

function isScalar(value: JsonValue): value is Scalar {
  if (typeof value === "string") return value.length <= MAX_TEXT;
  if (typeof value === "number") return Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return value === null || typeof value === "boolean";
}

/** Returns the value of a member; undefined if the request lacks it. */
export function readMember(request: MinedRequest, member: string): JsonValue | undefined {
  const { part, name } = splitMember(member);
  return Object.hasOwn(request[part], name) ? request[part][name] : undefined;
}

/** Returns the member's name for people: without `params.`, which most members have. */
const nameInWords = (member: string): string => member.replace(/^params\./, "");

/** Describes, for people, how the request differs from the condition, such as `amount is 25`. */
export function describeMismatch({ member, words }: MinedCondition, request: MinedRequest): string {
  if (member === null) return `not: ${words}`;
  const value = readMember(request, member);
  const text = JSON.stringify(value) ?? "absent";
  return `${nameInWords(member)} is ${text.length > MAX_SHOWN_VALUE ? `${text.slice(0, MAX_SHOWN_VALUE)}…` : text}`;
}

/** An approved request, and the agent that submitted it. */
export interface ApprovedMembers {
  agent_id: string;
  members: Members;
}

/**
 * Returns the narrowest conditions for the approved requests: one on the names of the parameters, one on the names in
 * the context, and one for each of these members. Returns null if a member, such as free text, has no condition,
 * because the rule would then allow any value.
 *
 * The conditions allow only combinations that people approved. If the requests have several agents, or members with
 * several values, every combination must have an approved request, and ranges, prefixes and patterns must fit the
 * requests of each combination. So the conditions can exclude some of the requests.
 */
export function findNarrowestConditions(approved: readonly ApprovedMembers[]): MinedCondition[] | null {
  const names = [...new Set(approved.flatMap(({ members }) => Object.keys(members)))].sort();
  const discrete = new Map(
    names.flatMap((name) => {
      const core = fitDiscrete(name, valuesOf(name, approved));
      return core === null ? [] : [[name, core] as const];
    }),
  );
  const combinations = listCombinations(approved, names, discrete);
  if (combinations === null) return null;
  const conditions = REQUEST_PARTS.map((part) =>
    knownNames(
      part,
      names.map(splitMember).flatMap((member) => (member.part === part ? [member.name] : [])),
    ),
  );
  for (const name of names) {
    const having = combinations.map((each) => valuesOf(name, each)).filter((values) => values.length > 0);
    const core = discrete.get(name) ?? fitOpen(name, having);
    if (core === null) return null;
    conditions.push(withPresence(name, core, valuesOf(name, approved).length === approved.length));
  }
  return conditions;
}

export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** Returns the values of a member in the requests that have it. */
function valuesOf(name: string, approved: readonly ApprovedMembers[]): Scalar[] {
  return approved.flatMap(({ members }) => (Object.hasOwn(members, name) ? [members[name] as Scalar] : []));
}

/**
 * Groups the requests by the agent, the values of the discrete members, and the presence of the others. Returns null if
 * a combination of these is in no request, because no one approved it.
 */
function listCombinations(
  approved: readonly ApprovedMembers[],
  names: readonly string[],
  discrete: ReadonlyMap<string, Core>,
): ApprovedMembers[][] | null {
  const partsOf = ({ agent_id, members }: ApprovedMembers): Scalar[][] => [
    [agent_id],
    ...names.map((name): Scalar[] =>
      !Object.hasOwn(members, name) ? [] : discrete.has(name) ? [members[name] as Scalar] : [true],
    ),
  ];
  const combinations = groupBy(approved, (each) => JSON.stringify(partsOf(each)));
  const seen = Array.from({ length: names.length + 1 }, () => new Set<string>());
  for (const each of approved) partsOf(each).forEach((part, i) => seen[i]?.add(JSON.stringify(part)));
  const possible = seen.reduce((product, { size }) => product * size, 1);
  return combinations.size === possible ? [...combinations.values()] : null;
}

/**
 * Returns a condition on the names of the parameters or of the context. It excludes requests with a member that no
 * approved request has, because an unknown member might change the meaning of the others.
 */
function knownNames(part: RequestPart, names: readonly string[]): MinedCondition {
  const known = new Set(names);
  return {
    kind: "members",
    member: null,
    text:
      names.length === 0 ? `size(${part}) == 0` : `${part}.all(name, name in [${names.map(celLiteral).join(", ")}])`,
    words: `no ${part === "params" ? "parameters" : part}${names.length === 0 ? "" : ` except ${names.join(", ")}`}`,
    holds: (request) => Object.keys(request[part]).every((name) => known.has(name)),
  };
}

type Core = Pick<MinedCondition, "kind" | "text" | "words"> & { test(value: JsonValue): boolean };

function withPresence(member: string, { kind, text, words, test }: Core, isRequired: boolean): MinedCondition {
  const { part, name } = splitMember(member);
  const has = celHasMember(part, name);
  return {
    kind,
    member,
    text: isRequired ? `${has} && ${text}` : `(!(${has}) || (${text}))`,
    words: `${nameInWords(member)} ${isRequired ? "" : "is absent or "}${words}`,
    holds: (request) => {
      const value = readMember(request, member);
      return value === undefined ? !isRequired : test(value);
    },
  };
}

/** Returns the condition that a member has one of a few values; null if it has more values. */
function fitDiscrete(member: string, values: readonly Scalar[]): Core | null {
  const counts = new Map<Scalar, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const distinct = [...counts.keys()];
  const { part, name } = splitMember(member);
  const expression = celMember(part, name);
  if (distinct.length === 1) return equalityCondition(expression, distinct[0] as Scalar);
  const areRepeated = [...counts.values()].every((count) => count >= MIN_OCCURRENCES);
  return distinct.length <= MAX_MEMBERS && areRepeated ? membershipCondition(expression, distinct) : null;
}

/**
 * Returns a condition that allows values in the range, or with the pattern, of the approved ones; null if there is
 * none.
 *
 * @param combinations the values of each combination
 */
function fitOpen(member: string, combinations: readonly (readonly Scalar[])[]): Core | null {
  const { part, name } = splitMember(member);
  const expression = celMember(part, name);
  const values = combinations.flat();
  if (new Set(values).size < MIN_DISTINCT) return null;
  if (values.every((value) => typeof value === "number")) return range(expression, combinations as number[][]);
  if (!values.every((value) => typeof value === "string")) return null;
  const texts = combinations as string[][];
  return prefix(expression, texts) ?? mailDomain(expression, texts) ?? pattern(expression, texts);
}

function equalityCondition(expression: string, value: Scalar): Core {
  const literal = celLiteral(value);
  return {
    kind: "equality",
    text: `${expression} == ${literal}`,
    words: `is ${literal}`,
    test: (other) => other === value,
  };
}

function membershipCondition(expression: string, values: readonly Scalar[]): Core {
  const sorted = values.map((value) => [celLiteral(value), value] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  const approvedValues = new Set<JsonValue>(values);
  return {
    kind: "membership",
    text: `${expression} in [${sorted.map(([text]) => text).join(", ")}]`,
    words: `is one of ${sorted.map(([text]) => text).join(", ")}`,
    test: (value) => approvedValues.has(value),
  };
}

/** Returns a condition that requires a number between the smallest and the largest one of each combination. */
function range(expression: string, combinations: readonly (readonly number[])[]): Core | null {
  const low = Math.max(...combinations.map((values) => Math.min(...values)));
  const high = Math.min(...combinations.map((values) => Math.max(...values)));
  if (low > high) return null;
  const text = `type(${expression}) in [int, double] && ${expression} >= ${celLiteral(low)} && ${expression} <= ${celLiteral(high)}`;
  const words = `is from ${low} to ${high}`;
  return { kind: "range", text, words, test: (value) => typeof value === "number" && value >= low && value <= high };
}

/**
 * Returns a condition that requires a common prefix that ends at a separator, followed by a string that matches a
 * common pattern. The common prefix of each combination must be the same.
 */
function prefix(expression: string, combinations: readonly (readonly string[])[]): Core | null {
  const start = cutAtSeparator(commonStart(combinations.flat()));
  const points = Array.from(start).length;
  if (points < MIN_PREFIX || combinations.flat().some((value) => value === start)) return null;
  // The prefix must contain the whole host of a URL, so that the host cannot vary.
  if (/:\/\/[^/]*$/.test(start)) return null;
  const rest = characterPattern(combinations, (value) => value.slice(start.length));
  if (rest === null) return null;
  const text = `type(${expression}) == string && ${expression}.startsWith(${celLiteral(start)}) && ${expression}.substring(${points}).matches("${rest.source}")${rest.text(expression)}`;
  return {
    kind: "prefix",
    text,
    words: `is ${celLiteral(start)}, then ${rest.words}`,
    test: (value) => typeof value === "string" && value.startsWith(start) && rest.test(value),
  };
}

function pattern(expression: string, combinations: readonly (readonly string[])[]): Core | null {
  const whole = characterPattern(combinations, (value) => value);
  if (whole === null) return null;
  return {
    kind: "pattern",
    text: `type(${expression}) == string && ${expression}.matches("${whole.source}")${whole.text(expression)}`,
    words: `has only ${whole.words}`,
    test: (value) => typeof value === "string" && whole.test(value),
  };
}

/** Returns a condition that requires an e-mail address of one domain. */
function mailDomain(expression: string, combinations: readonly (readonly string[])[]): Core | null {
  const domains = new Set(combinations.flat().map((value) => /^[^@]+(@[a-z0-9.-]+)$/.exec(value)?.[1]));
  const [domain] = domains;
  if (domain === undefined || domains.size > 1) return null;
  const local = characterPattern(combinations, (value) => value.split("@", 1)[0] ?? "", domain);
  if (local === null) return null;
  const source = local.source.replace(/\$$/, "@[a-z0-9.-]+$");
  const tested = new RegExp(source);
  return {
    kind: "pattern",
    text: `type(${expression}) == string && ${expression}.matches("${source}")${local.text(expression)}`,
    words: `is an address of ${celLiteral(domain)} with ${local.words}`,
    test: (value) => typeof value === "string" && tested.test(value) && local.isSafe(value),
  };
}

interface CharacterPattern {
  source: string;
  /** The pattern for people: the kinds of characters, the common start and end, the maximum length. */
  words: string;
  /** Returns the other clauses in CEL: the common start and end, the maximum length, and no `..` if dots are allowed. */
  text(expression: string): string;
  isSafe(whole: string): boolean;
  test(whole: string): boolean;
}

/**
 * Returns a pattern for strings like those of each combination:
 * - The string has only kinds of characters that the strings of each combination have.
 * - The string has their common start and end, up to a separator (`.example.com`).
 * - The string is no longer than the longest string of each combination.
 * - The string does not contain `..`, which can lead to a different folder.
 * - The string does not begin with `-`, which can mark an option, unless approved strings begin with it.
 *
 * Returns null in these cases:
 * - The combinations have no common pattern, or a different start or end.
 * - An approved string contains `..`, or a character that is not in `PIECES`, such as a space or a quote.
 * - The host of a mail address or of a URL would vary.
 * @param partOf returns the part of a string to which the pattern applies
 * @param after the text that follows this part in all strings
 */
function characterPattern(
  combinations: readonly (readonly string[])[],
  partOf: (text: string) => string,
  after = "",
): CharacterPattern | null {
  const values = combinations.map((texts) => texts.map(partOf));
  if (values.flat().some((value) => value === "" || /[^a-zA-Z0-9_.@/:-]/.test(value))) return null;
  if (combinations.flat().some((text) => text.includes(".."))) return null;
  const start = cutAtSeparator(commonStart(values.flat()));
  const end = commonEnd(values.flat());
  if (values.some((texts) => cutAtSeparator(commonStart(texts)) !== start || commonEnd(texts) !== end)) return null;
  const chunks = (parts: readonly (readonly string[])[]): string =>
    PIECES.filter(([, each]) => parts.every((texts) => texts.some((part) => each.test(part))))
      .map(([piece]) => piece)
      .join("");
  const first = chunks(values.map((texts) => texts.map((value) => value.charAt(0))));
  const all = chunks(values);
  // Otherwise a rule could allow data to go to a host that no one approved.
  if (first === "" || all.includes("@") || values.flat().some((value) => value.includes("://"))) return null;
  // Count code points, as CEL does. The length is a separate condition, because a bounded repetition in the pattern
  // would use many steps.
  const longest = Math.min(...combinations.map((texts) => Math.max(...texts.map((text) => Array.from(text).length))));
  const source = `^[${first}][${all}]*$`;
  const tested = new RegExp(source);
  const mayHaveDots = all.includes(".");
  const isSafe = (whole: string): boolean =>
    Array.from(whole).length <= longest &&
    !(mayHaveDots && whole.includes("..")) &&
    partOf(whole).startsWith(start) &&
    whole.endsWith(end + after);
  const kinds = PIECES.filter(([, each]) => values.every((texts) => texts.some((text) => each.test(text))));
  return {
    source,
    words:
      kinds.map(([, , kind]) => kind).join(" or ") +
      (start === "" ? "" : `, begins with ${celLiteral(start)}`) +
      (end + after === "" ? "" : `, ends with ${celLiteral(end + after)}`) +
      `, at most ${longest} characters`,
    text: (expression) =>
      (start === "" ? "" : ` && ${expression}.startsWith(${celLiteral(start)})`) +
      (end + after === "" ? "" : ` && ${expression}.endsWith(${celLiteral(end + after)})`) +
      `${mayHaveDots ? ` && !${expression}.contains("..")` : ""} && size(${expression}) <= ${longest}`,
    isSafe,
    test: (whole) => tested.test(partOf(whole)) && isSafe(whole),
  };
}

function commonStart(values: readonly string[]): string {
  let start = values[0] ?? "";
  for (const value of values) {
    let length = 0;
    while (length < start.length && start[length] === value[length]) length++;
    start = start.slice(0, length);
  }
  // Do not cut a surrogate pair.
  return start.replace(/[\uD800-\uDBFF]$/, "");
}

/** Returns the common end of ASCII strings from its first character that is neither a letter nor a digit. */
function commonEnd(values: readonly string[]): string {
  const [first = ""] = values;
  let length = 0;
  while (length < first.length && values.every((value) => value.at(-1 - length) === first.at(-1 - length))) length++;
  return /[^a-zA-Z0-9].*$/.exec(first.slice(first.length - length))?.[0] ?? "";
}

/** Returns the prefix up to its last character that is neither a letter nor a digit. */
function cutAtSeparator(start: string): string {
  return /^.*[^\p{L}\p{N}]/su.exec(start)?.[0] ?? "";
}

/** Returns a CEL expression that is true if the member is present. */
function celHasMember(part: RequestPart, name: string): string {
  const member = celMember(part, name);
  return member === `${part}.${name}` ? `has(${member})` : `${celLiteral(name)} in ${part}`;
}
