/** Compiles the history that a policy declares: the past actions that its conditions read. */
import { canonicalText } from "../../canonical.ts";
import { sha256Hex, utf8 } from "../../hash.ts";
import type { JsonValue } from "../../json.ts";
import { findHistoryMembers, resultPath } from "../condition/cel-history.ts";
import { parseExpression } from "../condition/cel-parse.ts";
import { compileExpression, type NamedValues } from "../condition/condition.ts";
import { derivedSource } from "../condition/named-values.ts";
import { parseWindow } from "../decide/window.ts";
import { BASIS_DIGITS } from "../parse/bounds.ts";
import type { PolicyDocument } from "../policy-types.ts";
import type { CompiledHistory } from "./compiled-policy.ts";
import { normalizePatterns } from "./name-patterns.ts";

/** The values of `per` that are names of owners, with the expression for each owner; null for the session. */
const OWNERS: Readonly<Record<string, string | null>> = {
  agent: "agent",
  key: "principal.key_id",
  session: null,
};

type Declaring = Pick<PolicyDocument, "policy" | "case_sensitive" | "history" | "let" | "rules">;

/**
 * Returns the compiled history, or the faults of its declaration. Returns null if the policy does not declare a
 * history.
 */
export function compileHistory(
  definition: Declaring,
): { history: CompiledHistory } | { faults: { pointer: string; message: string; offset?: number }[] } | null {
  const { history, case_sensitive = false } = definition;
  if (history === undefined) return null;
  const { per, tool, operation, include_denied = false, window: span, time_zone, max, keep = [] } = history;
  const window = parseWindow(span, time_zone);
  const source = Object.hasOwn(OWNERS, per) ? (OWNERS[per] as string | null) : per;
  const compiled = source === null ? null : compileExpression(source, "expression of per");
  const faults = [
    ...(typeof window === "string" ? [{ pointer: "/history/window", message: window }] : []),
    ...(compiled === null || compiled.ok
      ? []
      : [{ pointer: "/history/per", message: compiled.message, offset: compiled.offset }]),
  ];
  if (typeof window === "string" || (compiled !== null && !compiled.ok)) return { faults };
  const members = findHistoryMembers(listSources(definition).flatMap((text) => parseOrNothing(text)));
  return {
    history: {
      per: compiled === null ? null : compiled.expression,
      ownerBasis: digest([per]),
      basis: digest([history as unknown as JsonValue, members as unknown as JsonValue, case_sensitive]),
      members,
      tools: patterns(tool, case_sensitive),
      operations: patterns(operation, case_sensitive),
      includeDenied: include_denied,
      window,
      max,
      keep: keep.map(resultPath),
      rule: {
        name: "history",
        effect: "deny",
        order: -1,
        risk: null,
        reason: null,
        operations: null,
        agents: null,
        condition: null,
        approval: null,
        obligations: [],
        effectKey: null,
        redact: [],
        show: [],
        preview: null,
      },
    },
  };
}

/** Returns the key of the fact that the conditions of the policy read; null if the policy declares no history. */
export function historyKey(
  { policy }: Pick<PolicyDocument, "policy">,
  compiled: ReturnType<typeof compileHistory>,
): NamedValues["history"] {
  return compiled === null ? null : { policy, basis: "history" in compiled ? compiled.history.basis : "" };
}

/** Returns true if the owner of the histories with this basis is an agent, a key or a session. */
export const isOwnedByName = (basis: string): boolean => NAMED_BASES.has(basis);

const digest = (value: JsonValue): string => sha256Hex(utf8(canonicalText(value))).slice(0, BASIS_DIGITS);

const NAMED_BASES: ReadonlySet<string> = new Set(Object.keys(OWNERS).map((per) => digest([per])));

function patterns(value: string | string[] | undefined, caseSensitive: boolean): readonly string[] | null {
  return value === undefined ? null : normalizePatterns([value].flat(), caseSensitive);
}

/** Returns the sources of the expressions that can read the history. */
function listSources({ rules, let: entries = {} }: Declaring): string[] {
  return [...rules.map(({ when }) => when), ...Object.values(entries).map(derivedSource)].filter(
    (source) => typeof source === "string",
  );
}

/** Returns the tree of a source; [] if the source cannot be parsed, because another check reports that. */
function parseOrNothing(source: string): ReturnType<typeof parseExpression>["expr"][] {
  try {
    return [parseExpression(source).expr];
  } catch {
    return [];
  }
}
