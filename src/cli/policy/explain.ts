/** `assent policy explain` explains the decision on one action. */
import { readFile } from "node:fs/promises";
import type { JsonObject } from "../../domain/json.ts";
import { buildPolicySet, compilePolicySet } from "../../domain/policy/compile/compile.ts";
import type { ConditionPart } from "../../domain/policy/condition/condition-parts.ts";
import {
  explain as explainDecision,
  type Explanation,
  type LimitExplanation,
  type MatcherExplanation,
  type PolicyExplanation,
  type RuleExplanation,
} from "../../domain/policy/decide/explain.ts";
import { findGivenFactsFault, givenRequesterFacts, withGivenInputs } from "../../domain/policy/test/given-facts.ts";
import { findGivenHistoryFault } from "../../domain/policy/test/given-history.ts";
import { findUnknownLimit } from "../../domain/policy/decide/limit-facts.ts";
import { MAX_FILE_LENGTH, parseSampleAction, type SampleAction } from "../../domain/policy/parse/parse.ts";
import { toRfc3339 } from "../../domain/time.ts";
import { loadPolicyFolder } from "../../policies/folder.ts";
import {
  CommandError,
  EXIT_CODES,
  colourText,
  parseFormat,
  parseArguments,
  toPrintable,
  usageError,
  printJson,
  type Output,
  type Subcommand,
} from "../command.ts";
import { readTextFlag } from "../remote.ts";
import { parseFuture } from "../times.ts";
import { assertNoFaults, FOLDER_OPTIONS, resolvePolicyFolder, folderOptions, printFaults } from "./folder-argument.ts";

export const explain: Subcommand = {
  summary: "explain the decision on one action, down to each part of a condition",
  help: `usage: assent policy explain [FOLDER] --action FILE|- [--now TIME] [--recursive] [--environment NAME]
                             [--format text|json]

Evaluates one action with the policies of FOLDER (./policies) and explains the decision: each policy (does it apply?), each rule (which
matcher failed?), each part of a condition with its value. The output contains values of the action, which a service
never writes into reasons. The usage of limits is zero except for what the action gives in used.

  --action FILE    the action, in JSON or YAML: agent_id, tool, operation, params, context; principal (key_id, name,
                   agent_id, owner), the key that submits it; and used, the previous usage of limits, by their names;
                   - reads standard input
  --now TIME       the clock, such as 2026-01-31T09:00:00Z, or 2h from now (now)
  --recursive      include subfolders
  --environment NAME
                   environment whose shared data applies (ASSENT_ENVIRONMENT)
  --format FORMAT  text, or json
  --json           the same as --format json

examples:
  assent policy explain --action refund.json --now 2026-01-15T10:00:00Z
  echo '{ "agent_id": "bot", "tool": "stripe", "operation": "refund", "params": { "amount": 500 } }' | assent policy explain --action -`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      action: { type: "string" },
      now: { type: "string" },
      ...FOLDER_OPTIONS,
      format: { type: "string" },
      json: { type: "boolean" },
    });
    const path = resolvePolicyFolder("explain", positionals);
    const format = parseFormat(values, ["text", "json"]);
    const now = values.now === undefined ? Date.now() : parseFuture("--now", values.now);
    if (values.action === undefined)
      throw usageError("--action FILE is needed: a file with the action, or - for standard input");
    const sample = await readAction(values.action, io);
    const { principal, agent, used = {}, session, labels, history = [], facts: givenFacts = {}, ...action } = sample;
    const folder = await loadPolicyFolder(path, folderOptions(values));
    assertNoFaults(path, folder.faults, "nothing was decided", EXIT_CODES.failure, io);
    const compiled = compilePolicySet(
      buildPolicySet(
        folder.documents.map(({ document }) => ({ policy: document.policy, version: 1, definition: document })),
      ),
    );
    const request = {
      ...action,
      params: (action.params ?? {}) as JsonObject,
      context: (action.context ?? {}) as JsonObject,
    };
    const unknownLimit = findUnknownLimit(compiled, Object.keys(used));
    if (unknownLimit !== null) throw usageError(`used: there is no limit "${unknownLimit}" in the policies of ${path}`);
    const historyFault = findGivenHistoryFault(history);
    const inputFault = historyFault ?? findGivenFactsFault(compiled, givenFacts);
    if (inputFault !== null) throw usageError(inputFault);
    // The command does not contact a service, so the usage of limits, past actions and facts come only from the file.
    const requesterFacts = givenRequesterFacts({ principal, agent, session, labels });
    const facts = withGivenInputs(compiled, request, requesterFacts, now, sample);
    const explanation = explainDecision(compiled, request, facts, now);
    if (format === "json") printJson(io, { now: toRfc3339(now), ...explanation });
    else for (const line of text(explanation, action, now, io)) io.out(line);
    return EXIT_CODES.ok;
  },
};

async function readAction(file: string, io: Output): Promise<SampleAction> {
  let content: string;
  try {
    content = file === "-" ? await readTextFlag("-", (value) => value) : await readFile(file, "utf8");
  } catch (error) {
    throw usageError(`--action: ${file} cannot be read: ${(error as Error).message}`);
  }
  const name = file === "-" ? "standard input" : file;
  if (content.length > MAX_FILE_LENGTH)
    throw usageError(`--action: ${name} has more than ${MAX_FILE_LENGTH} characters`);
  const { action, faults } = parseSampleAction(content, name);
  if (action !== null) return action;
  printFaults(faults, io);
  throw new CommandError("--action contains no action that can be decided", EXIT_CODES.usage);
}

const TINTS = { allow: "green", require_approval: "yellow", deny: "red" } as const;

function text(
  { decision, policies }: Explanation,
  { agent_id, tool, operation }: SampleAction,
  now: number,
  io: Output,
): string[] {
  const by =
    decision.policy === null
      ? decision.reason_code
      : `${decision.policy}, rule "${decision.rule ?? ""}"${decision.reason_code === "POLICY_RULE" ? "" : `, ${decision.reason_code}`}`;
  const { approval } = decision;
  return [
    `${colourText(io, TINTS[decision.effect], decision.effect)}  ${toPrintable(`${tool} ${operation} by ${agent_id}, at ${toRfc3339(now)}`)}`,
    `  decided by  ${toPrintable(by)}`,
    `  reason      ${toPrintable(decision.reason)}`,
    ...(decision.risk_level === null ? [] : [`  risk        ${decision.risk_level}`]),
    ...(decision.obligations ?? []).map(
      ({ path, min, max, set }) =>
        `  obligation  ${path} ${toPrintable(set === undefined ? `from ${min ?? "any"} to ${max ?? "any"}` : `is ${JSON.stringify(set)}`)}`,
    ),
    ...(approval === null
      ? []
      : [
          ...(approval.grants === undefined
            ? []
            : [`  grants      for up to ${spanOf(approval.grants.for_ms)} and ${approval.grants.count} uses`]),
          `  approval    ${approval.quorum} ${approval.quorum === 1 ? "person" : "people"}, within ${spanOf(approval.expires_in_ms)}, then valid for ${spanOf(approval.valid_for_ms)}, a rejection ${approval.rejection_holds_ms === 0 ? "does not block later requests" : `blocks the same request for ${spanOf(approval.rejection_holds_ms)}`}${approval.notify.length === 0 ? "" : toPrintable(`, notifies ${approval.notify.join(", ")}`)}`,
        ]),
    ...policies.flatMap((policy) => policyText(policy, io)),
  ];
}

/** Formats a duration in the format of policies, such as 1d12h. */
function spanOf(ms: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ] as const;
  let left = ms;
  return units
    .map(([unit, size]) => {
      const count = Math.floor(left / size);
      left -= count * size;
      return count === 0 ? "" : `${count}${unit}`;
    })
    .join("");
}

function policyText(policy: PolicyExplanation, io: Output): string[] {
  const { applies, answer, matchers, decides, mode, limits } = policy;
  const answers = [
    ...(answer === null
      ? []
      : [
          `${answer.effect} by rule "${answer.rule}"${answer.reason_code === "POLICY_RULE" ? "" : `, ${answer.reason_code}`}`,
        ]),
    ...limits
      .filter((limit) => limit.answer !== null)
      .map(
        (limit) =>
          `${limit.answer?.effect ?? ""} by limit "${limit.limit}"${limit.answer?.reason_code === "LIMIT_EXCEEDED" ? "" : `, ${limit.answer?.reason_code ?? ""}`}`,
      ),
  ];
  const outcome = !applies
    ? `does not apply: ${mismatches(matchers)}`
    : answers.length === 0
      ? "has no answer"
      : answers.join("; ");
  const head = `${policy.policy}${mode === "shadow" ? " (shadow)" : ""}: ${outcome}${decides ? "  <- decides" : ""}`;
  return [
    "",
    applies ? toPrintable(head) : colourText(io, "dim", toPrintable(head)),
    ...policy.rules.flatMap((rule) => ruleText(rule, io)),
    ...policy.limits.map((limit) => limitText(limit, io)),
  ];
}

const SIGNS: Readonly<Record<RuleExplanation["outcome"], string>> = {
  matched: "=>",
  failed: "!!",
  passed: " -",
  not_reached: "  ",
};

function ruleText({ rule, effect, outcome, matchers, condition }: RuleExplanation, io: Output): string[] {
  const reason =
    outcome === "not_reached"
      ? "not reached: an earlier rule decided"
      : outcome === "matched"
        ? "matches"
        : outcome === "failed"
          ? `its condition fails (${condition?.error?.code ?? ""}): ${condition?.error?.message ?? ""}`
          : condition === null
            ? mismatches(matchers)
            : "its condition is false";
  const head = `  ${SIGNS[outcome]} ${toPrintable(`${rule} (${effect}): ${reason}`)}`;
  const isDimmed = outcome === "not_reached" || (outcome === "passed" && condition === null);
  const parts = condition?.parts ?? [];
  return [
    isDimmed ? colourText(io, "dim", head) : head,
    ...parts.map((part) => partText(part, condition?.error !== null)),
  ];
}

function limitText({ limit, effect, outcome, subject, used, most, error }: LimitExplanation, io: Output): string {
  const reason =
    outcome === "aside"
      ? "the action does not count"
      : outcome === "failed"
        ? `it fails: ${error ?? ""}`
        : `${outcome === "within" ? "the action stays within it" : "the action goes beyond it"}, ${used ?? 0} of ${most} used before${subject === "" || subject === null ? "" : ` for ${subject}`}`;
  const line = `  ${outcome === "exceeded" ? "=>" : outcome === "failed" ? "!!" : " -"} ${toPrintable(`limit ${limit} (${effect}): ${reason}`)}`;
  return outcome === "aside" ? colourText(io, "dim", line) : line;
}

function mismatches(matchers: readonly MatcherExplanation[]): string {
  return matchers
    .filter(({ matches }) => !matches)
    .map(({ field, value, patterns }) => `the ${field} "${value}" matches none of ${patterns.join(", ")}`)
    .join("; ");
}

/**
 * Renders one part of a condition.
 *
 * @param failed whether the whole condition failed. If not, an error in a part had no effect, because the other operand
 *   of `&&` or `||` determined the result
 */
function partText({ expression, depth, element, value, error }: ConditionPart, failed: boolean): string {
  const where = `${"  ".repeat(depth)}${element === null ? "" : `[${element}] `}${expression}`;
  return `       ${toPrintable(error === null ? `${where} = ${value ?? ""}` : `${where}: ${failed ? "error" : "no value"}: ${error}`)}`;
}
