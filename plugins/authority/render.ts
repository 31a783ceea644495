/** Renders the authority of an agent as text for a model. */
import { isGlob } from "../../src/core.ts";
import type { AuthorityFilter, DescribedAuthority } from "./describe.ts";
import type { AuthorityItem, AuthorityLimit, AuthorityRule } from "./schemas.ts";

const DECISION_WORDS = {
  allowed: "allowed",
  asks: "a person must approve",
  denied: "denied",
  depends: "depends",
} as const;
const PER_WORDS = {
  all: "",
  agent: " for the agent",
  key: " for the key",
  other: " for each of its subjects",
} as const;

export function renderAuthority(
  agentId: string,
  { tool, operation }: AuthorityFilter,
  { tools, limits, truncated }: DescribedAuthority,
): string {
  const isOne = tool !== undefined && operation !== undefined;
  const scope = tool === undefined ? "Everything that is not listed" : `Any other operation of ${JSON.stringify(tool)}`;
  const hasGlob = tools.some((item) => isGlob(item.tool) || isGlob(item.operation));
  return [
    `What ${JSON.stringify(agentId)} may do. The decision about a request counts, not this list.`,
    ...(isOne ? [] : [truncated ? "The list is not complete; ask for one tool and operation." : `${scope} is denied.`]),
    "In a line, the first case that matches counts, and of several lists the strictest answer. Limits count in addition. A request is also denied if a value that its rules need is missing or cannot be read.",
    ...(hasGlob
      ? [
          "A name with * or ? stands for several names, and of several such lines the most specific counts. Ask for one tool and operation to know about stops of it, and whether its name is accepted.",
        ]
      : []),
    ...tools.map(renderItem),
    ...limits.map(renderLimit),
  ].join("\n");
}

function renderItem({ tool, operation, decision, note, rules = [], truncated }: AuthorityItem): string {
  const lists = rules.map((list) => list.map(renderCase).join("; "));
  const [only] = rules;
  const isOpen = rules.length === 1 && only?.at(-1)?.when !== undefined && truncated === undefined;
  const cases = lists.length < 2 ? lists : lists.map((list, i) => `(${i + 1}) ${list}`);
  const detail = [
    ...(cases.length === 0 ? [DECISION_WORDS[decision]] : [cases.join(" ")]),
    ...(isOpen ? ["otherwise denied"] : []),
    ...(truncated === true ? ["and more rules"] : []),
  ].join("; ");
  return `- ${tool} ${operation}: ${detail}${note === undefined ? "" : ` (${note})`}`;
}

function renderCase({ decision, when }: AuthorityRule, i: number): string {
  const condition = when === undefined ? (i === 0 ? "" : "otherwise ") : `if ${when} `;
  return `${condition}${DECISION_WORDS[decision]}`;
}

function renderLimit({ tools, operations, count, at_most, sum, per, window, beyond }: AuthorityLimit): string {
  const amount =
    count === undefined ? `a sum of ${at_most}${sum === undefined ? "" : ` of ${sum}`}` : `${count} actions`;
  const names = `${tools.join(", ")}${operations === undefined ? "" : ` ${operations.join(", ")}`}`;
  return `- limit on ${names}: ${amount}${PER_WORDS[per]} in ${window}, then ${DECISION_WORDS[beyond]}`;
}
