/** The rules of a policy as sentences. */
import { Badge, formatCounted, MarkedValue } from "../../console/app/kit.ts";

interface Terms {
  quorum?: number;
  approvers?: readonly { group?: string; count?: number }[];
  stages?: readonly { approvers: readonly { group?: string; count?: number }[] }[];
}

interface Rule {
  name: string;
  tool?: string | readonly string[];
  operation?: string | readonly string[];
  agent?: string | readonly string[];
  when?: string;
  effect?: string;
  risk?: string;
  reason?: string;
  approval?: Terms;
  count?: number;
  sum?: string;
  at_most?: number;
  per?: string;
  window?: string;
}

interface Definition {
  applies_to?: { tools?: readonly string[]; agents?: readonly string[] };
  rules?: readonly Rule[];
  limits?: readonly Rule[];
}

const EFFECTS: Readonly<Record<string, string>> = { allow: "is allowed", deny: "is denied" };

/** Returns the actions that a rule matches, such as "stripe refund of support-bot". */
function describeMatch({ tool, operation, agent }: Rule, { applies_to }: Definition): string {
  const join = (names: string | readonly string[]): string => (typeof names === "string" ? names : names.join(" or "));
  const tools = join(tool ?? applies_to?.tools ?? "every tool");
  const agents = agent ?? applies_to?.agents;
  return `${tools}${operation === undefined ? "" : ` ${join(operation)}`}${agents === undefined ? "" : ` of ${join(agents)}`}`;
}

/** Renders one sentence for each rule and limit of a definition that the service has validated. */
export function RuleSentences({ definition }: { definition: Record<string, unknown> }) {
  const policy = definition as Definition;
  const { rules = [], limits = [] } = policy;
  return (
    <ol class="rule-sentences">
      {[...rules, ...limits].map((rule) => (
        <li key={rule.name}>
          <strong>
            <MarkedValue value={rule.name} />
          </strong>
          : <MarkedValue value={describeMatch(rule, policy)} /> <EffectBadge effect={rule.effect ?? "deny"} />
          <MarkedValue value={`${describeLimit(rule)}${describeApprovers(rule)}`} />
          {rule.when === undefined ? null : (
            <>
              {" "}
              if{" "}
              <code>
                <MarkedValue value={rule.when} />
              </code>
            </>
          )}
          <span class="quiet">
            <MarkedValue
              value={["", rule.risk && `${rule.risk} risk`, rule.reason]
                .filter((each) => each !== undefined)
                .join(" · ")}
            />
          </span>
        </li>
      ))}
    </ol>
  );
}

function describeLimit({ count, sum, at_most, per, window }: Rule): string {
  if (window === undefined) return "";
  const most = sum === undefined ? formatCounted(count ?? 0, "action") : `${at_most} in total of ${sum}`;
  return ` beyond ${most} in ${window}${per === undefined ? "" : ` for each ${per}`}`;
}

function EffectBadge({ effect }: { effect: string }) {
  const label = EFFECTS[effect];
  return label === undefined ? <Badge value={effect} /> : <Badge value={effect} label={label} />;
}

const describePeople = ({ group, count = 1 }: { group?: string; count?: number }): string =>
  group === undefined ? formatCounted(count, "person", "people") : `${count} of ${group}`;

function describeApprovers({ effect, approval = {} }: Rule): string {
  if (effect !== "require_approval") return "";
  const { quorum = 1, approvers = [{ count: quorum }] } = approval;
  const stages = approval.stages ?? [{ approvers }];
  const texts = stages.map((stage) => stage.approvers.map(describePeople).join(" and "));
  return ` by ${texts.join(", then ")}`;
}
