/** An agent can know its rules, and propose a change, which only a person can make. */
import { canAdministerAgent, type CoreHost, defineCorePlugin, findFreeMembers } from "../../src/core.ts";
import { type Credential, defineRoute, Refusal } from "../../src/plugin.ts";
import { proposalAuditor } from "./audit.ts";
import { describeAuthority } from "./describe.ts";
import { PROPOSAL_ENTRY } from "./entry.ts";
import {
  canSeeProposal,
  conditionOf,
  dismiss,
  ERRORS,
  listProposals,
  type Proposal,
  proposalState,
  propose,
  renderRule,
} from "./proposals.ts";
import { renderAuthority } from "./render.ts";
import * as schema from "./schemas.ts";

const TAG = "authority";
const BODY_BYTES = 8192;

export default defineCorePlugin({
  name: "authority",
  errors: ERRORS,
  records: { rule_proposal: PROPOSAL_ENTRY },
  folds: [proposalState],
  auditors: [proposalAuditor],
  setup: (host) => ({ routes: routes(host) }),
});

function routes(host: CoreHost) {
  const response = { description: "The proposal.", schema: schema.ProposalRecord };
  return [
    defineRoute({
      method: "GET",
      path: "/v1/authority",
      tag: TAG,
      summary: "Describe what the key's agent may do",
      scope: "actions:submit",
      query: schema.AuthorityQuery,
      queued: true,
      description:
        "For each tool and operation with rules for the agent: allowed, needs approval, denied, or depends on the request. Contains no rules of other agents and no conditions except comparisons of parameters with numbers. It is a description: only the decision about a request counts.",
      responses: { 200: { description: "The authority.", schema: schema.Authority } },
      errors: ["AGENT_MISMATCH", "AGENT_UNBOUND"],
      async handle({ credential, query }) {
        const agentId = agentOf(host, credential, query.agent_id);
        const { compiled, digest } = await host.policies.current();
        const snapshot = await host.snapshot();
        const facts = await host.agents.facts(agentId);
        const barsOf = (tool: string) => snapshot.barFacts({ agent_id: agentId, tool }).bars ?? [];
        const { agent_id: _, ...filter } = query;
        if (filter.operation !== undefined && filter.tool === undefined)
          throw new Refusal("VALIDATION_FAILED", "`operation` without `tool` is not a filter; send both");
        const described = await describeAuthority({ compiled, agentId, facts, barsOf }, filter);
        const text = renderAuthority(agentId, filter, described);
        return { status: 200, json: { agent_id: agentId, policy_hash: digest, ...described, text } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/authority/proposals",
      tag: TAG,
      summary: "Propose a rule",
      scope: "actions:submit",
      body: schema.ProposalBody,
      bodyLimit: BODY_BYTES,
      queued: true,
      confirmsCredential: true,
      description:
        "A person sees the proposal with its evidence, and can write the rule. Nothing applies it. The same proposal again returns the open one.",
      responses: {
        200: { ...response, description: "The same proposal is open." },
        201: { ...response, description: "The new proposal." },
      },
      errors: ["AGENT_MISMATCH", "AGENT_UNBOUND", ERRORS.tooMany],
      async handle({ credential, body: { agent_id, most = null, ...terms } }) {
        const agentId = agentOf(host, credential, agent_id);
        const { proposal, isNew } = await propose(host, credential, agentId, { ...terms, most });
        return { status: isNew ? 201 : 200, json: render(proposal) };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/authority/proposals",
      tag: TAG,
      summary: "List proposed rules, open ones first",
      scope: "policies:read",
      responses: {
        200: { description: "At most 200 proposals: open ones first, then the newest.", schema: schema.ProposalList },
      },
      async handle({ credential }) {
        const visible = listProposals(await host.state(proposalState)).filter((each) =>
          canSeeProposal(credential, each),
        );
        return { status: 200, json: { proposals: visible.slice(0, 200).map(render) } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/authority/proposals/:id/dismiss",
      tag: TAG,
      summary: "Dismiss a proposed rule",
      scope: "policies:write",
      params: schema.ProposalParams,
      body: schema.DismissBody,
      bodyLimit: BODY_BYTES,
      confirmsCredential: true,
      responses: { 200: response },
      errors: [ERRORS.notFound],
      async handle({ credential, params: { id }, body }) {
        return { status: 200, json: render(await dismiss(host, credential, id, body.reason ?? null)) };
      },
    }),
  ];
}

/** Returns the agent of the request. Throws as a submission does if the key may not act for it. */
function agentOf({ config }: CoreHost, credential: Credential, named: string | undefined): string {
  const { key } = credential;
  if (key.agent_id !== null && (named === undefined || named === key.agent_id)) return key.agent_id;
  if (key.agent_id !== null)
    throw new Refusal(
      "AGENT_MISMATCH",
      `the key "${key.name}" is bound to the agent "${key.agent_id}"; got "${named}"`,
    );
  if (named !== undefined && config.agents === "any") {
    if (canAdministerAgent(credential, named)) return named;
    throw new Refusal("AGENT_MISMATCH", `the groups of this key or user do not cover the agent "${named}"`);
  }
  throw new Refusal(
    "AGENT_UNBOUND",
    named === undefined
      ? `the key "${key.name}" is bound to no agent; send \`agent_id\``
      : `the key "${key.name}" is bound to no agent; create a key with \`agent_id\`, or set \`agents: any\` in the configuration`,
  );
}

function render(proposal: Proposal) {
  const { id, agent_id, terms, evidence, proposed_at, dismissed } = proposal;
  const { tool, operation, most, reason } = terms;
  const ended = {
    dismissed_at: dismissed?.at ?? null,
    dismissed_by: dismissed?.by ?? null,
    comment: dismissed?.comment ?? null,
  };
  const rule = renderRule(proposal);
  const free = findFreeMembers(conditionOf(terms), null);
  return { id, agent_id, tool, operation, most, reason, rule, free, evidence, proposed_at, ...ended };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    authority: typeof routes;
  }
}
