/**
 * Renders a mined rule as a policy with tests. Every name is fixed or a digest. Values of requests are quoted strings,
 * or numbers, booleans and null as in JSON.
 */
import {
  canonicalText,
  type JsonObject,
  type JsonValue,
  type PolicyDocument,
  sha256Hex,
  utf8,
} from "../../../src/core.ts";
import { toRfc3339 } from "../../../src/plugin.ts";
import type { MinedRule } from "./mine.ts";
import type { PastRequest } from "./past-request.ts";

const RULE_NAME = "as people decided";
const NAME_DIGITS = 12;

/** Returns the policy that the rule forms. Its name is a digest of the rule. */
export function toPolicyDocument(
  { group: { asked, tool, operation }, agents, text }: MinedRule,
  mode: "shadow" | "enforce",
): PolicyDocument {
  const rule = { tool, operation, agent: agents, when: text };
  const digest = sha256Hex(utf8(canonicalText({ asked, ...rule } as unknown as JsonValue)));
  return {
    policy: `suggested-${digest.slice(0, NAME_DIGITS)}`,
    mode,
    suggested: { in_place_of: asked },
    rules: [{ name: RULE_NAME, ...rule, effect: "allow" }],
  };
}

/**
 * Returns the policy as YAML.
 * @param comment a comment of one line for readers
 */
export function renderPolicyYaml({ policy, mode, suggested, rules }: PolicyDocument, comment: string): string {
  const [rule] = rules;
  const { in_place_of } = suggested ?? { in_place_of: { policy: "", rule: "" } };
  return [
    `policy: ${policy}`,
    `description: ${quote(comment)}`,
    `mode: ${mode ?? "enforce"}`,
    "suggested:",
    `  in_place_of: { policy: ${quote(in_place_of.policy)}, rule: ${quote(in_place_of.rule)} }`,
    "rules:",
    `  - name: ${RULE_NAME}`,
    `    tool: ${quote(String(rule?.tool))}`,
    `    operation: ${quote(String(rule?.operation))}`,
    `    agent: [${[rule?.agent ?? []].flat().map(quote).join(", ")}]`,
    `    when: ${quote(rule?.when ?? "true")}`,
    "    effect: allow",
    "",
  ].join("\n");
}

/** A past request, with the answers of the policies to it while the suggested policy is in shadow mode. */
export interface TestCase {
  name: string;
  request: PastRequest;
  effect: string;
  /** Answer of the suggested policy; null if it has no answer. */
  shadow: string | null;
}

/** Returns tests of the policy in shadow mode. */
export function renderTestsYaml(policy: string, inPlaceOf: string, cases: readonly TestCase[]): string {
  const [first] = cases;
  return [
    `now: ${toRfc3339(first?.request.at ?? 0)}`,
    `policies: [${[inPlaceOf, policy].map(quote).join(", ")}]`,
    "cases:",
    ...cases.flatMap(({ name, request, effect, shadow }) => {
      const { agent_id, tool, operation, params, context, at } = request;
      const action = { agent_id, tool, operation, params, context };
      return [
        `  - name: ${quote(name)}`,
        `    now: ${toRfc3339(at)}`,
        `    action: ${yamlJson(action)}`,
        `    expect: { effect: ${effect}${shadow === null ? "" : `, shadow: { ${quote(policy)}: ${shadow} }`} }`,
      ];
    }),
    "",
  ].join("\n");
}

/** Returns JSON that YAML parses as the same value, because all names and strings are double-quoted. */
function yamlJson(value: JsonObject): string {
  return escapeInvisible(JSON.stringify(value));
}

function quote(text: string): string {
  return escapeInvisible(JSON.stringify(text));
}

function escapeInvisible(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
