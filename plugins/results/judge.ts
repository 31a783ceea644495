/** Applies result rules to one output. Pure, and bounded: an output that needs too many steps is withheld. */
import {
  type ActionRequest,
  canonicalText,
  chargeSteps,
  type CompiledPolicySet,
  type CompiledResultRule,
  decodeAuthority,
  evaluateResultCondition,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  keepMembers,
  listHistoriesOf,
  matchGlob,
  matchNames,
  Meter,
  NameMatches,
  type ResultEffect,
  runMetered,
  utf8,
} from "../../src/core.ts";
import { parseJson } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { isFound, replaceFound } from "./text.ts";

/** Maximum number of steps of all rules together, because they run while other requests wait. */
const MAX_STEPS = 30_000_000;
/** Minimum length of a removed value that is also replaced in other texts of the output. */
const MIN_REPEATED = 4;

export interface AppliedRule {
  policy: string;
  rule: CompiledResultRule;
}

export interface Judgement {
  verdict: ResultEffect;
  /** The output to pass on; undefined if it is withheld. */
  output: JsonValue | undefined;
  rules: readonly AppliedRule[];
  labels: readonly string[];
  /** For the agent; null if the output is passed on unchanged. */
  reason: string | null;
}

type Names = Pick<ActionRequest, "agent_id" | "tool" | "operation">;

/** Returns the result rules that apply to the action, or would apply if an agent that gave its authority had submitted it. */
export function findResultRules(
  policies: CompiledPolicySet,
  { authority, ...names }: Names & Pick<ActionRow, "authority">,
): AppliedRule[] {
  if (policies.withResults.length === 0) return [];
  const givers = (decodeAuthority(authority)?.links ?? []).map(({ agent_id }) => agent_id);
  const found = [names.agent_id, ...givers].flatMap((agent_id) => findRulesOf(policies, { ...names, agent_id }));
  return [...new Map(found.map((each) => [each.rule, each])).values()];
}

/** Returns the paths that `keep` lists in each history that contains the action. */
export const listKeptPaths = (policies: CompiledPolicySet, action: Names): (readonly string[])[] =>
  listHistoriesOf(policies, action).flatMap(({ keep }) => keep);

/**
 * Returns the members with these paths. Reads the output itself, `structuredContent` of an MCP result, and texts that
 * consist entirely of JSON. Omits members for which these have different values.
 */
export function keepOutput(output: JsonValue | undefined, paths: readonly (readonly string[])[]): JsonObject {
  if (output === undefined || paths.length === 0) return {};
  const { content = [], structuredContent = {} } = isJsonObject(output) ? output : {};
  const texts = [output, ...(Array.isArray(content) ? content.map((item) => isJsonObject(item) && item["text"]) : [])];
  const parsed = texts.flatMap((text) => (typeof text === "string" ? (parseWholeText(text) ?? []) : []));
  const found = [...parsed, structuredContent, output].flatMap((value) => Object.entries(keepMembers(value, paths)));
  const values = new Map<string, Set<string>>();
  for (const [name, value] of found) values.set(name, (values.get(name) ?? new Set()).add(canonicalText(value)));
  return Object.fromEntries(found.filter(([name]) => values.get(name)?.size === 1));
}

/** Returns the value of a text that consists entirely of unambiguous JSON; null for any other text. */
function parseWholeText(text: string): JsonValue | null {
  try {
    return parseJson(text.trim());
  } catch {
    return null;
  }
}

function findRulesOf(policies: CompiledPolicySet, { agent_id, tool, operation }: Names): AppliedRule[] {
  const matches = new NameMatches(policies, { agent_id, tool, operation });
  return policies.withResults.flatMap((policy) => {
    const names = matches.names(policy);
    if (!matchNames(policy.tools, names.tool) || !matchNames(policy.agents, names.agent)) return [];
    return policy.results
      .filter(
        ({ tools, operations, agents }) =>
          matchNames(tools, names.tool) && matchNames(operations, names.operation) && matchNames(agents, names.agent),
      )
      .map((rule) => ({ policy: policy.name, rule }));
  });
}

export const labelsOf = (rules: readonly AppliedRule[]): string[] =>
  [...new Set(rules.flatMap(({ rule }) => rule.labels))].sort();

/** What is judged, and when. */
export interface Subject {
  request: ActionRequest;
  output: JsonValue;
  /** Media type of the output; null if the client does not know it. */
  mediaType: string | null;
  now: number;
}

/** Applies the rules. All rules that match count: the strictest effect wins. */
export function judge(rules: readonly AppliedRule[], subject: Subject): Judgement {
  const meter = new Meter(MAX_STEPS);
  try {
    return runMetered(meter, () => apply(rules, subject, meter));
  } catch (error) {
    if (!meter.exceeded && !(error instanceof RangeError)) throw error;
    return withheld(rules, "the output is too large or too complex to inspect");
  }
}

function withheld(rules: readonly AppliedRule[], reason: string): Judgement {
  return { verdict: "withhold", output: undefined, rules, labels: labelsOf(rules), reason };
}

function apply(rules: readonly AppliedRule[], subject: Subject, meter: Meter): Judgement {
  const { output } = subject;
  const texts = readTexts(
    output,
    rules.some(({ rule }) => rule.effect !== "allow" && rule.patterns.length + rule.members.length > 0),
  );
  const matched: AppliedRule[] = [];
  let unread: AppliedRule | null = null;
  for (const applied of rules) {
    const matches = test(applied.rule, subject, texts, meter);
    if (matches === null) unread ??= applied;
    if (matches !== false) matched.push(applied);
  }
  if (unread !== null)
    return withheld(matched, `the condition of rule "${unread.rule.name}" could not be evaluated for this output`);
  const withholding = matched.find(({ rule }) => rule.effect === "withhold");
  if (withholding !== undefined) return withheld(matched, reasonOf(withholding, "withheld"));
  const redacting = matched.filter(({ rule }) => rule.effect === "redact");
  const changed = redact(
    output,
    redacting.map(({ rule }) => rule),
  );
  const [first] = redacting;
  // What is spread over several texts, or is in the name of a member, cannot be replaced.
  const rest = readTexts(changed.value);
  const left = redacting.find(({ rule }) => rule.patterns.length > 0 && isFoundIn(rest, rule.patterns));
  if (left !== undefined) return withheld(matched, `what rule "${left.rule.name}" redacts could not be replaced`);
  if (rest.joined.some((text) => changed.removed.some((secret) => text.includes(secret))))
    return withheld(matched, "a redacted member occurs again and could not be replaced there");
  return {
    verdict: first === undefined ? "allow" : "redact",
    output: changed.value,
    rules: matched,
    labels: labelsOf(matched),
    reason: first === undefined ? null : reasonOf(first, "redacted"),
  };
}

const reasonOf = ({ policy, rule }: AppliedRule, verb: string): string =>
  rule.reason ?? `${verb} by rule "${rule.name}" of policy "${policy}"`;

/** Returns whether the rule matches; null if its condition fails. */
function test(rule: CompiledResultRule, { request, output, mediaType, now }: Subject, texts: Texts, meter: Meter) {
  const { patterns, largerThan, types, condition, members } = rule;
  if (largerThan !== null && sizeOf(output) <= largerThan) return false;
  if (types !== null && !types.some((type) => hasType(type, output, mediaType, texts))) return false;
  if (condition !== null) {
    const result = evaluateResultCondition(condition, request, output, now, meter);
    if ("error" in result) return null;
    if (!result.value) return false;
  }
  if (patterns.length > 0 && isFoundIn(texts, patterns)) return true;
  if (members.length > 0 && replaceMembers(output, rule).removed.length > 0) return true;
  return patterns.length === 0 && members.length === 0;
}

/** Returns the size in bytes: of a string, or of other output as canonical JSON. */
export const sizeOf = (output: JsonValue): number =>
  utf8(typeof output === "string" ? output : canonicalText(output)).length;

/** The texts of an output that patterns are compared with. */
interface Texts {
  /** Strings, numbers and names of members. */
  single: readonly string[];
  /** The texts of a list of content items, joined, because a text can continue in the next item. */
  joined: readonly string[];
  /** Declared media types. */
  mediaTypes: readonly string[];
}

const isFoundIn = ({ single, joined }: Texts, patterns: readonly string[]): boolean =>
  [...single, ...joined].some((text) => isFound(patterns, text));

const MEDIA_TYPE_MEMBERS = ["mimeType", "mime_type", "media_type", "mediaType"];

/** @throws RangeError if `isStrict` and a text has a member twice, of which readers choose different ones */
function readTexts(output: JsonValue, isStrict = false): Texts {
  const [single, joined, mediaTypes]: [string[], string[], string[]] = [[], [], []];
  const visit = (value: JsonValue, isInText = false): void => {
    chargeSteps(1);
    if (typeof value === "string") {
      single.push(value);
      // In a text that is JSON, escapes such as \n or \u0041 hide what its strings are.
      const parsed = parseText(value);
      if (isStrict && parsed?.fault === "DUPLICATE_KEY") throw new RangeError("a text has a member twice");
      if (parsed !== null) visit(parsed.value, true);
    } else if (typeof value === "number") single.push(String(value));
    else if (Array.isArray(value)) {
      const parts = value.flatMap(listItemTexts);
      if (parts.length > 1) joined.push(parts.join(""));
      for (const item of value) visit(item, isInText);
    } else if (isJsonObject(value))
      for (const [name, member] of Object.entries(value)) {
        single.push(name);
        if (!isInText && MEDIA_TYPE_MEMBERS.includes(name) && typeof member === "string")
          mediaTypes.push(member.toLowerCase());
        visit(member, isInText);
      }
  };
  visit(output);
  return { single, joined, mediaTypes };
}

/** Returns the texts of a content item of MCP: its own, that of an embedded resource, or those of a prompt's message. */
function listItemTexts(item: JsonValue): string[] {
  if (!isJsonObject(item)) return [];
  const { text, resource, content } = item;
  if (typeof text === "string") return [text];
  if (typeof content === "string") return [content];
  return [resource, content].flatMap((inner) => (inner === undefined ? [] : [inner].flat().flatMap(listItemTexts)));
}

function hasType(type: string, output: JsonValue, mediaType: string | null, { mediaTypes }: Texts): boolean {
  if (!type.includes("/")) {
    const kind = output === null ? "null" : Array.isArray(output) ? "array" : typeof output;
    return kind === type;
  }
  const declared = mediaType === null ? mediaTypes : [mediaType.toLowerCase(), ...mediaTypes];
  return declared.some((each) => matchGlob(type, each.split(";")[0]?.trim() ?? ""));
}

/**
 * Applies the members of all rules first and the patterns second, because a replaced match can make a text invalid
 * JSON. Also returns the values of removed members, which may not occur anywhere else.
 */
function redact(
  output: JsonValue,
  rules: readonly CompiledResultRule[],
): { value: JsonValue; removed: readonly string[] } {
  let value = output;
  const secrets = new Map<string, string>();
  for (const rule of rules) {
    const replaced = replaceMembers(value, rule);
    ({ value } = replaced);
    for (const secret of replaced.removed)
      if (secret.length >= MIN_REPEATED && !rules.some(({ replacement }) => replacement.includes(secret)))
        secrets.set(secret, rule.replacement);
  }
  // A value can be a part of another one.
  const removed = [...secrets].sort(([a], [b]) => b.length - a.length);
  const replaceIn = (text: string): string => {
    let changed = text;
    for (const { patterns, replacement } of rules)
      if (patterns.length > 0) changed = replaceFound(patterns, changed, replacement);
    for (const [secret, replacement] of removed) {
      chargeSteps(1 + (changed.length >> 4));
      changed = changed.replaceAll(secret, () => replacement);
    }
    return changed;
  };
  const replaceText = (text: string): string => {
    const changed = replaceIn(text);
    if (parseText(text) === null) return changed;
    // The text is JSON. If replacing in the text was not enough, or made it invalid, replace in the value, which also
    // finds what is behind escapes.
    if (parseText(changed) !== null && mapJsonText(changed, replaceValue) === changed) return changed;
    return replaceIn(mapJsonText(text, replaceValue));
  };
  const replaceValue = (inner: JsonValue): JsonValue => mapTexts(inner, replaceText);
  return { value: replaceValue(value), removed: removed.map(([secret]) => secret) };
}

/**
 * Changes a text that is JSON by its value. Returns any other text, and a text whose value does not change, as it is.
 */
function mapJsonText(text: string, change: (value: JsonValue) => JsonValue): string {
  const parsed = parseText(text);
  if (parsed === null) return text;
  const before = JSON.stringify(parsed.value);
  const after = JSON.stringify(change(parsed.value));
  if (before === after) return text;
  if (parsed.fault !== null) throw new RangeError(`a text of the output cannot be changed exactly: ${parsed.fault}`);
  return after;
}

function mapTexts(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === "string") return change(value);
  if (typeof value === "number") {
    const changed = change(String(value));
    return changed === String(value) ? value : changed;
  }
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, mapTexts(member, change)]));
}

/**
 * Replaces the members of a rule, in the output, in `structuredContent` of an MCP result, and in texts that are JSON.
 * Returns the removed values as texts.
 */
function replaceMembers(
  output: JsonValue,
  { members, replacement }: CompiledResultRule,
): { value: JsonValue; removed: string[] } {
  const removed: string[] = [];
  if (members.length === 0) return { value: output, removed };
  const remove = (value: JsonValue): JsonValue => {
    collectTexts(value, removed);
    return replacement;
  };
  const inValue = (value: JsonValue): JsonValue =>
    members.reduce<JsonValue>((changed, path) => replaceMember(changed, path, remove), value);
  const inText = (text: string): string => mapJsonText(text, (parsed) => mapTexts(inValue(parsed), inText));
  let value = inValue(output);
  if (isJsonObject(value) && value["structuredContent"] !== undefined)
    value = { ...value, structuredContent: inValue(value["structuredContent"]) };
  value = mapTexts(value, inText);
  return { value, removed };
}

/** Returns the value of a text that is a JSON object or array, and what is wrong with it; null for any other text. */
function parseText(text: string): { value: JsonValue; fault: string | null } | null {
  if (!/^\s*[[{]/.test(text)) return null;
  chargeSteps(1 + (text.length >> 3));
  let value: JsonValue;
  try {
    value = JSON.parse(text.trim()) as JsonValue;
  } catch {
    return null;
  }
  try {
    parseJson(text.trim());
    return { value, fault: null };
  } catch (error) {
    return { value, fault: String((error as { code?: unknown }).code) };
  }
}

/** Adds the texts of a removed value. */
function collectTexts(value: JsonValue, texts: string[]): void {
  if (Array.isArray(value)) value.forEach((item) => collectTexts(item, texts));
  else if (isJsonObject(value)) Object.values(value).forEach((item) => collectTexts(item, texts));
  // Occurrences of true, false and null elsewhere say nothing.
  else texts.push(typeof value === "string" || typeof value === "number" ? String(value) : "");
}

function replaceMember(value: JsonValue, path: readonly string[], remove: (value: JsonValue) => JsonValue): JsonValue {
  chargeSteps(1);
  const [name, ...rest] = path;
  if (name === undefined) return remove(value);
  if (Array.isArray(value)) return name === "*" ? value.map((item) => replaceMember(item, rest, remove)) : value;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([each, member]) => [
      each,
      name === "*" || name === each ? replaceMember(member, rest, remove) : member,
    ]),
  );
}
