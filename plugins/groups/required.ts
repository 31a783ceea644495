/** `GET /v1/groups/required`: whose approvals the rules require, and from whom limits of groups hide their requests. */
import {
  closed,
  type CoreHost,
  doesGlobInclude,
  doGlobsOverlap,
  foldName,
  type GroupLimits,
  type Visibility,
  orNull,
  principalOfUser,
  rightsReader,
  textSchema,
  userOfPrincipal,
  userState,
} from "../../src/core.ts";
import { defineRoute, Refusal, Type } from "../../src/plugin.ts";
import { principalOfMember } from "./members.ts";

/** Maximum number of people that one record names. */
const MAX_NAMED = 50;

const Patterns = orNull(Type.Array(Type.String()));
const RequiredRecord = Type.Object(
  {
    policy: Type.String(),
    rule: Type.String(),
    agents: Patterns,
    tools: Patterns,
    group: orNull(textSchema("The group or rota whose approval the rule requires; null for anyone.")),
    needed: Type.Integer({ description: "Number of people of the group whose approval the rule requires." }),
    members: Type.Integer({ description: "Number of people who could give it if no group had limits." }),
    able: Type.Integer({ description: "Number of them who see at least some of the rule's requests." }),
    hidden_from: Type.Array(
      Type.Object(
        {
          member: textSchema("Principal, or the configured reference if it refers to no active user."),
          hides: Type.Union([Type.Literal("all"), Type.Literal("some")], {
            description: "Whether the limits hide all of the rule's requests, or some.",
          }),
        },
        closed,
      ),
      { description: `At most ${MAX_NAMED}, those who see none first.` },
    ),
  },
  { title: "RequiredApproval", ...closed },
);

export function requiredRoute(host: CoreHost, tag: string) {
  return defineRoute({
    method: "GET",
    path: "/v1/groups/required",
    tag,
    summary: "List whose approvals rules require",
    description:
      "The enforced rules that require approvals, by policy and rule, with each group or rota that they name, and the people from whom limits of groups hide their requests. Compares the patterns of the rules with the limits. Ignores delegations. Also needs `policies:read`.",
    scope: ["users:read", "users:manage"],
    responses: {
      200: { description: "All such rules.", schema: Type.Object({ required: Type.Array(RequiredRecord) }, closed) },
    },
    async handle({ credential }) {
      if (!credential.hasScope("policies:read"))
        throw new Refusal("INSUFFICIENT_SCOPE", "the list names rules, so it also needs the scope policies:read");
      const people = await listApprovers(host);
      const { compiled } = await host.policies.current();
      const required = compiled.policies
        .filter(({ shadow }) => !shadow)
        .flatMap((policy) =>
          policy.rules.entries.flatMap(({ rule, tools: ofRule }) => {
            const [agents, tools] = [rule.agents ?? policy.agents, ofRule ?? policy.tools];
            return listRequirements(rule.approval?.plan.stages ?? []).map(([group, needed]) => {
              const members = findHidden(host, people, group, { agents, tools });
              const limited = members.filter((each): each is Limited => each.hides !== null);
              const blind = limited.filter(({ hides }) => hides === "all");
              const hidden_from = [...blind, ...limited.filter(({ hides }) => hides === "some")].slice(0, MAX_NAMED);
              const counts = { needed, members: members.length, able: members.length - blind.length };
              const patterns = { agents: agents && [...agents], tools: tools && [...tools] };
              return { policy: policy.name, rule: rule.name, ...patterns, group, ...counts, hidden_from };
            });
          }),
        );
      return { status: 200, json: { required } };
    },
  });
}

interface Stage {
  approvers: readonly { group: string | null; count: number }[];
}

/** Returns the groups whose approval the stages require, each with the number of people. */
function listRequirements(stages: readonly Stage[]): [group: string | null, needed: number][] {
  const needed = new Map<string | null, number>();
  for (const { approvers } of stages)
    for (const { group, count } of approvers) needed.set(group, Math.max(needed.get(group) ?? 0, count));
  return [...needed];
}

interface RulePatterns {
  agents: readonly string[] | null;
  tools: readonly string[] | null;
}

type Hides = "all" | "some" | null;
interface Limited {
  member: string;
  hides: "all" | "some";
}

/** A user or key that may approve, with its groups, rotas and limits. Without limits, it sees every request. */
interface Approver {
  principal: string;
  groups: readonly string[];
  limits: readonly GroupLimits[];
}

/**
 * Returns the people who can give the group's approval, each with the number of the rule's requests that limits hide
 * from them.
 */
function findHidden(host: CoreHost, people: readonly Approver[], group: string | null, rule: RulePatterns) {
  // A vote counts for a group only within the limits of this group.
  const ofGroup = group === null ? [] : limitsIn(host.groups.visibility([group]));
  return people
    .filter(({ groups }) => group === null || groups.includes(group))
    .map(({ principal: member, limits }): { member: string; hides: Hides } => {
      const both = [compare(rule, limits), compare(rule, ofGroup)];
      return { member, hides: both.includes("all") ? "all" : both.includes("some") ? "some" : null };
    });
}

/** Returns how many of the rule's requests are outside the limits. */
function compare({ agents, tools }: RulePatterns, within: readonly GroupLimits[]): Hides {
  if (within.length === 0) return null;
  const all = ["*"];
  const pairs = (agents ?? all).flatMap((agent) =>
    (tools ?? all).map((tool) => ({ agent: foldName(agent), tool: foldName(tool) })),
  );
  const isWithin = (test: (limit: string, pattern: string) => boolean) => (pair: { agent: string; tool: string }) =>
    within.some(
      (limits) =>
        (limits.agents ?? all).some((limit) => test(limit, pair.agent)) &&
        (limits.tools ?? all).some((limit) => test(limit, pair.tool)),
    );
  if (pairs.every(isWithin(doesGlobInclude))) return null;
  return pairs.some(isWithin(doGlobsOverlap)) ? "some" : "all";
}

/** Returns the active users who may approve, and the keys that groups name as members. */
async function listApprovers(host: CoreHost): Promise<Approver[]> {
  const snapshot = await host.snapshot();
  const users = snapshot.state(userState);
  const rotas = [...host.groups.rotas].map(
    ([name, { members }]) => [name, members.map((member) => principalOfMember(users, member))] as const,
  );
  const keys = Object.values(host.groups.definitions)
    .flatMap(({ members }) => members)
    .filter((member) => member.startsWith(KEY));
  const principals = [...[...users.keys()].map(principalOfUser), ...new Set(keys)];
  const reader = rightsReader(host, snapshot);
  const approvers: Approver[] = [];
  for (const principal of principals) {
    const rights = await host.keys.rightsOf(reader, userOfPrincipal(principal) ?? principal.slice(KEY.length));
    if (rights === null || !rights.hasScope("approvals:decide")) continue;
    const ofRotas = rotas.filter(([, members]) => members.includes(principal)).map(([name]) => name);
    approvers.push({ principal, groups: [...rights.groups, ...ofRotas], limits: limitsIn(rights.limits) });
  }
  return approvers;
}

const KEY = "key:";
const limitsIn = (visibility: Visibility): readonly GroupLimits[] => ("within" in visibility ? visibility.within : []);
