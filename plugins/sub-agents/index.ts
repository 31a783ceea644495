/** Sub-agents: an agent gives another agent a part of its rights. Every decision evaluates each link of the chain. */
import {
  canSeeAgent,
  type CoreHost,
  type DecisionStep,
  slicePageBySeq,
  defineCorePlugin,
  readIdempotentCall,
  REPLAYED_HEADERS,
  sameName,
} from "../../src/core.ts";
import { type Credential, defineRoute, nextLink, type StatesReader, toRfc3339 } from "../../src/plugin.ts";
import { readSession } from "../actions/api.ts";
import { authorityAuditor } from "./audit.ts";
import {
  authorityReaction,
  createAuthority,
  endAuthority,
  isGiver,
  isOfOtherUser,
  notFoundRefusal,
} from "./changes.ts";
import { AUTHORITY_ENTRY } from "./entry.ts";
import * as schema from "./schemas.ts";
import { type Authorities, type Authority, authorityState, chainOf, findEnd, resolveAuthority } from "./state.ts";

const TAG = "actions";
const LIST_NAME = "authorities";
/** Each authority stays in memory while it is open. */
const BODY_BYTES = 4096;
const { ERRORS } = schema;

const authorityStep: DecisionStep = { name: "sub-agents", resolveAuthority };

export default defineCorePlugin({
  name: "sub-agents",
  needs: ["actions"],
  errors: ERRORS,
  records: { authority: AUTHORITY_ENTRY },
  folds: [authorityState],
  auditors: [authorityAuditor],
  reactions: [authorityReaction],
  setup: (host) => ({ routes: authorityRoutes(host), steps: [authorityStep] }),
});

function authorityRoutes(host: CoreHost) {
  const response = { description: "The authority.", schema: schema.AuthorityRecord };
  return [
    defineRoute({
      method: "POST",
      path: "/v1/authorities",
      tag: TAG,
      summary: "Give another agent a part of this agent's rights",
      description:
        "The other agent names the authority in its submissions (`authority`). Such an action is allowed only if the policies allow it for the other agent, and also for this agent and each agent above it, and if it is within the authority. An authority allows nothing that the policies deny or hold. Ends at its time, and earlier if it is ended, if an authority above it ends, or if an agent of its chain is suspended or loses its key.",
      scope: "actions:submit",
      body: schema.AuthorityBody,
      bodyLimit: BODY_BYTES,
      idempotent: true,
      responses: {
        200: { ...response, description: "An earlier request with this Idempotency-Key created the authority." },
        201: response,
      },
      errors: [
        "AGENT_UNBOUND",
        "INVALID_SESSION_TOKEN",
        "IDEMPOTENCY_CONFLICT",
        ERRORS.notFound,
        ERRORS.ended,
        ERRORS.tooWide,
        ERRORS.tooMany,
      ],
      async handle({ body, headers, credential }) {
        const call = readIdempotentCall(headers, "POST /v1/authorities", body);
        const session = readSession(host, headers, credential);
        const { authority, replayed } = await createAuthority(host, credential, body, { call, session });
        const json = renderAuthority(await host.snapshot(), authority);
        return replayed ? { status: 200, json, headers: REPLAYED_HEADERS } : { status: 201, json };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/authorities",
      tag: TAG,
      summary: "List authorities, newest first",
      description: "Authorities of which this key may see the agent that has it, or an agent that gave it.",
      scope: ["actions:submit", "actions:read"],
      query: schema.AuthorityQuery,
      responses: { 200: { description: "A page.", schema: schema.AuthorityList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        const snapshot = await host.snapshot();
        const authorities = snapshot.state(authorityState);
        const { agent_id, active, root } = query;
        const found = [...authorities.all.values()].filter(
          (authority) =>
            (agent_id === undefined || [authority.agent_id, authority.from].some((name) => sameName(name, agent_id))) &&
            (root === undefined || authority.root === root) &&
            (active === undefined || active === (findEnd(authorities.all, authority, snapshot.now) === null)) &&
            canSeeAuthority(authorities, authority, credential),
        );
        const page = slicePageBySeq(LIST_NAME, found, query);
        return {
          status: 200,
          json: { authorities: page.rows.map((row) => renderAuthority(snapshot, row)), next_cursor: page.next_cursor },
          headers: nextLink("/v1/authorities", query, page.next_cursor),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/authorities/:id",
      tag: TAG,
      summary: "Read an authority",
      scope: ["actions:submit", "actions:read"],
      params: schema.AuthorityParams,
      responses: { 200: response },
      errors: [ERRORS.notFound],
      async handle({ params: { id }, credential }) {
        const snapshot = await host.snapshot();
        const authorities = snapshot.state(authorityState);
        const authority = authorities.all.get(id);
        if (authority === undefined || !canSeeAuthority(authorities, authority, credential)) throw notFoundRefusal(id);
        return { status: 200, json: renderAuthority(snapshot, authority) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/v1/authorities/:id",
      tag: TAG,
      summary: "End an authority and its descendants",
      description:
        "Takes effect on every process before the response is sent. For the agent that gave it, an agent above it, or an admin. Actions under it that wait for approval, or have not started, are cancelled.",
      scope: ["actions:submit", "admin"],
      params: schema.AuthorityParams,
      responses: { 200: response },
      errors: [ERRORS.notFound, ERRORS.ended],
      async handle({ params: { id }, credential }) {
        const authority = await endAuthority(host, credential, id, canSeeAuthority);
        return { status: 200, json: renderAuthority(await host.snapshot(), authority) };
      },
    }),
  ];
}

/**
 * Returns true if the credential can see the agent that has the authority, or an agent that gave a link of its chain.
 */
function canSeeAuthority({ all }: Authorities, authority: Authority, credential: Credential): boolean {
  const { agent_id } = credential.key;
  const chain = chainOf(all, authority);
  if (agent_id === null)
    return [authority.agent_id, ...chain.map(({ from }) => from)].some((name) => canSeeAgent(credential, name));
  const isTheirs = sameName(agent_id, authority.agent_id) && !isOfOtherUser(authority, credential);
  return isTheirs || chain.some((link) => isGiver(link, credential));
}

function renderAuthority({ state, now }: StatesReader, authority: Authority): schema.AuthorityRecord {
  const { all } = state(authorityState);
  const { id, agent_id, from, parent, tools, operations, condition, count, sum, created_at, until } = authority;
  const ended = findEnd(all, authority, now);
  return {
    id,
    status: ended === null ? "active" : "ended",
    agent_id,
    from,
    parent,
    chain: chainOf(all, authority).map((link) => ({ id: link.id, agent_id: link.from, principal: link.by.principal })),
    tools: [...tools],
    operations: [...operations],
    condition,
    limits: { count, sum },
    created_at: toRfc3339(created_at),
    until: toRfc3339(until),
    reason: authority.comment,
    ended: ended && { cause: ended.cause, at: toRfc3339(ended.at), by: ended.by?.principal ?? null },
  };
}

declare module "../../src/contract/resource.ts" {
  interface FeatureRoutes {
    "sub-agents": typeof authorityRoutes;
  }
}
