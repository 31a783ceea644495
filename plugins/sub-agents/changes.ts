/** Creates authorities, and ends them with their descendants. */
import {
  type Actor,
  type AgentFacts,
  confirmCredential,
  type CoreHost,
  doesGlobInclude,
  findAgentBar,
  findCreatedResource,
  findScopeFault,
  findSumFault,
  foldName,
  type IdempotentCall,
  type LedgerTransaction,
  parseDuration,
  principalOfUser,
  type Reaction,
  type ReactionTransaction,
  recordCreatedResource,
  sameName,
  type SessionFact,
  toActor,
  utf8,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { AuthorityEntry } from "./entry.ts";
import { type AuthorityBody, ERRORS } from "./schemas.ts";
import {
  type Authorities,
  type Authority,
  authorityState,
  chainOf,
  findEnd,
  listBelow,
  MAX_DEPTH,
  resolveAuthority,
  toTerms,
} from "./state.ts";

/** Longest time of an authority. Milliseconds. */
const MAX_MS = 168 * 3_600_000;
/** Maximum number of open children of one authority, and of open authorities without a parent that one agent gave. */
export const MAX_CHILDREN = 32;
/** Maximum number of open authorities of one tree, including the root. */
export const MAX_OF_ROOT = 64;
/** Maximum size in bytes of the names in a chain, so that the chain fits into a permit. */
const MAX_NAME_BYTES = 1500;

/** Creates an authority. A repeated request returns the authority that the first request created. */
export function createAuthority(
  host: CoreHost,
  credential: Credential,
  body: AuthorityBody,
  { call, session }: { call: IdempotentCall | null; session: SessionFact | null },
): Promise<{ authority: Authority; replayed: boolean }> {
  const id = host.newId();
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "actions:submit");
    const from = caller.key.agent_id;
    if (from === null)
      throw new Refusal(
        "AGENT_UNBOUND",
        `the key "${caller.key.name}" is bound to no agent; an agent gives authorities with a key that is bound to it`,
      );
    const earlier = await findCreatedResource(tx, caller, call);
    if (earlier !== null) return { authority: findKnown(tx, earlier), replayed: true };
    const parent = body.parent === undefined ? null : findParent(tx, body.parent, from);
    const until = readEnd(body.for, parent, tx.now);
    const { tools, operations = ["*"], condition = null, limits = {}, reason = null } = body;
    const { count = null, sum = null } = limits;
    const terms = { tools, operations, condition, count, sum, until };
    assertNames(tx, body.agent_id, from, parent);
    const facts = await tx.agentFacts(from);
    assertMayGive(from, facts);
    assertWithin(facts.agent?.allowed_tools ?? null, parent, terms);
    assertExpressions(tx, body.agent_id, terms);
    assertCounts(tx.state(authorityState), from, parent, tx.now);
    tx.record({
      type: "authority",
      v: 1,
      at: toRfc3339(tx.now),
      change: "created",
      agent_id: body.agent_id,
      authority: { id, parent: parent?.id ?? null, from, ...terms, until: toRfc3339(until), session },
      cause: null,
      comment: reason,
      by: toActor(caller.key, caller.principal),
    });
    await recordCreatedResource(tx, caller, call, id);
    return { authority: tx.state(authorityState).all.get(id) as Authority, replayed: false };
  });
}

function findKnown(tx: LedgerTransaction, id: string): Authority {
  const authority = tx.state(authorityState).all.get(id);
  if (authority === undefined) throw notFoundRefusal(id);
  return authority;
}

/**
 * Returns the parent authority, under which the agent gives a new one. Throws unless it was given to this agent and is
 * in force.
 */
function findParent(tx: LedgerTransaction, id: string, agentId: string): Authority {
  const { fault } = resolveAuthority(tx, id, agentId);
  if (fault?.code === "AUTHORITY_UNKNOWN") throw notFoundRefusal(id);
  if (fault !== null) throw new Refusal(ERRORS.ended, fault.reason);
  return tx.state(authorityState).all.get(id) as Authority;
}

function readEnd(text: string | undefined, parent: Authority | null, now: number): number {
  if (text === undefined && parent !== null) return parent.until;
  if (text === undefined) throw invalidRefusal("/for", "it is required without `parent`");
  const ms = parseDuration(text) ?? 0;
  if (ms >= 1000 && ms <= MAX_MS) return now + ms;
  throw invalidRefusal("/for", `"${text}" is not a duration from 1m to 168h, such as 30m or 2h`);
}

function assertNames(tx: LedgerTransaction, agentId: string, from: string, parent: Authority | null): void {
  if (sameName(agentId, from))
    throw invalidRefusal("/agent_id", "an agent gives authorities to other agents, not to itself");
  const { all } = tx.state(authorityState);
  const above = parent === null ? [] : chainOf(all, parent);
  if (above.length >= MAX_DEPTH)
    throw new Refusal(
      ERRORS.tooMany,
      `a chain has at most ${MAX_DEPTH} authorities; the agent that starts it can give more`,
    );
  const bytes = [...above.map((link) => link.from), from, agentId].reduce((sum, name) => sum + utf8(name).length, 0);
  if (bytes > MAX_NAME_BYTES)
    throw invalidRefusal(
      "/agent_id",
      `the names of all agents in the chain have ${bytes} bytes; at most ${MAX_NAME_BYTES}`,
    );
}

/** Throws AUTHORITY_TOO_WIDE if every action under the authority would be denied because of the agent that gives it. */
function assertMayGive(from: string, facts: AgentFacts): void {
  // The tools are checked separately.
  const bar = findAgentBar(
    { agent_id: from, tool: "" },
    facts.agent ? { agent: { ...facts.agent, allowed_tools: null } } : facts,
  );
  if (bar !== null) throw new Refusal(ERRORS.tooWide, `${bar.reason}, so it has no rights to give`);
}

type Terms = Pick<Authority, "tools" | "operations" | "condition" | "count" | "sum" | "until">;

/**
 * Throws AUTHORITY_TOO_WIDE if the new authority is provably wider than the agent's own tools or the authority above.
 * Other limits, such as conditions, cannot be compared. Every decision enforces them, because it evaluates each link.
 */
function assertWithin(allowedTools: readonly string[] | null, parent: Authority | null, terms: Terms): void {
  const refuse = (pointer: string, detail: string): Refusal =>
    new Refusal(ERRORS.tooWide, `the authority would be wider than what the agent has: ${detail}`, {
      errors: [{ pointer, detail }],
    });
  for (const [list, own, pointer] of [
    [terms.tools, allowedTools, "/tools"],
    [terms.tools, parent?.tools, "/tools"],
    [terms.operations, parent?.operations, "/operations"],
  ] as const)
    for (const [i, pattern] of list.entries())
      if (own !== null && own !== undefined && !isWithin(pattern, own))
        throw refuse(`${pointer}/${i}`, `"${pattern}" is not within ${own.join(", ")}`);
  if (parent === null) return;
  if (terms.until > parent.until) throw refuse("/for", `the authority above it ends at ${toRfc3339(parent.until)}`);
  if (terms.count !== null && parent.count !== null && terms.count > parent.count)
    throw refuse("/limits/count", `the authority above it covers ${parent.count} actions`);
  const { sum: own } = parent;
  if (terms.sum !== null && own !== null && terms.sum.of === own.of && terms.sum.at_most > own.at_most)
    throw refuse("/limits/sum/at_most", `the authority above it covers ${own.at_most}`);
}

/** Returns true if one of the patterns covers every name that the pattern covers. */
const isWithin = (pattern: string, others: readonly string[]): boolean =>
  others.some((other) => doesGlobInclude(foldName(other), foldName(pattern)));

/** Throws unless the expressions are valid for the tools and operations, and read no parameter that a policy redacts. */
function assertExpressions(
  tx: LedgerTransaction,
  agent_id: string,
  { tools, operations, condition, sum }: Terms,
): void {
  const { compiled } = tx.activePolicies;
  const targets = tools.map((tool, i) => ({ agent_id, tool, operation: operations[i] ?? operations[0] ?? "*" }));
  for (const target of targets) {
    const inCondition = condition === null ? null : findScopeFault(compiled, target, condition, "condition");
    if (inCondition !== null) throw invalidRefusal("/condition", inCondition);
    const inSum = sum === null ? null : findSumFault(compiled, target, sum);
    if (inSum !== null) throw invalidRefusal("/limits/sum/of", inSum);
  }
}

function assertCounts({ all, open }: Authorities, from: string, parent: Authority | null, now: number): void {
  // Compare cheap members first, because the agents of a service can have thousands of open authorities.
  const near = open.filter((other) =>
    parent === null ? other.parent === null && sameName(other.from, from) : other.root === parent.root,
  );
  const inForce = near.filter((other) => findEnd(all, other, now) === null);
  const children = inForce.filter((other) => other.parent === (parent?.id ?? null));
  if (children.length >= MAX_CHILDREN)
    throw new Refusal(
      ERRORS.tooMany,
      `${MAX_CHILDREN} authorities of the agent "${from}" are open here, which is the limit; end one first`,
    );
  if (parent !== null && inForce.length >= MAX_OF_ROOT)
    throw new Refusal(
      ERRORS.tooMany,
      `${MAX_OF_ROOT} authorities of the tree of ${parent.root} are open, which is the limit; end one first`,
    );
}

const invalidRefusal = (pointer: string, detail: string): Refusal =>
  new Refusal("VALIDATION_FAILED", `the authority is not valid: ${detail}`, { errors: [{ pointer, detail }] });

export const notFoundRefusal = (id: string): Refusal =>
  new Refusal(ERRORS.notFound, `there is no authority "${id}" that this key may see`);

/**
 * Returns true if the credential belongs to an agent that acts for one user, and an agent of another user gave the
 * authority.
 */
export function isOfOtherUser({ by }: Authority, { key, workload }: Credential): boolean {
  const actsForUser = typeof workload?.user_id === "string";
  return actsForUser && by.key_id !== key.id && by.owner === principalOfUser(by.key_id);
}

/**
 * Returns true if the credential belongs to the agent that gave the authority. If the agent acted for a user, the
 * credential must act for the same user.
 */
export function isGiver({ from, by }: Authority, { key, workload }: Credential): boolean {
  const isSame = typeof workload?.user_id !== "string" || by.key_id === key.id;
  return isSame && key.agent_id !== null && sameName(from, key.agent_id);
}

/**
 * Ends an authority and its descendants in one transaction, for an admin or for an agent that gave a link of its chain.
 * Then cancels the open actions under them, in as many transactions as needed. Such actions cannot be approved or
 * started in any case.
 */
export async function endAuthority(
  host: CoreHost,
  credential: Credential,
  id: string,
  isVisible: (authorities: Authorities, authority: Authority, caller: Credential) => boolean,
): Promise<Authority> {
  const { authority, ended, by } = await host.ledger.transact(async (tx) => {
    const caller = await tx.confirm(credential);
    const before = tx.state(authorityState);
    const found = before.all.get(id);
    if (found === undefined || !isVisible(before, found, caller)) throw notFoundRefusal(id);
    const hasGiven = chainOf(before.all, found).some((link) => isGiver(link, caller));
    if (!caller.hasScope("admin") && !(hasGiven && caller.hasScope("actions:submit")))
      throw new Refusal("INSUFFICIENT_SCOPE", "only an agent that gave the authority, or an admin, can end it");
    const end = findEnd(before.all, found, tx.now);
    if (end !== null) throw new Refusal(ERRORS.ended, `the authority ${id} ended at ${toRfc3339(end.at)}`);
    const actor = toActor(caller.key, caller.principal);
    const list = endTree(tx, found, { cause: "revoked", comment: null, by: actor });
    return { authority: tx.state(authorityState).all.get(id) as Authority, ended: list, by: actor };
  });
  for (const { id: authority, agent_id } of ended) {
    const reason = { by, comment: `the authority ${authority} ended` };
    const owner = { agent_id, authority };
    while (await host.ledger.transact((tx) => host.openActionCanceller.cancelPage(tx, owner, reason)));
  }
  return authority;
}

/**
 * When a person suspends an agent, ends the authorities that it gave or has. When a key ends, ends those that it gave.
 */
export const authorityReaction: Reaction = {
  agentSuspended(tx, agentId, by) {
    const end = { cause: "suspension", comment: null, by } as const;
    endWhere(tx, ({ agent_id, from }) => sameName(agent_id, agentId) || sameName(from, agentId), end);
  },
  userDeactivated(tx, { id, name }, keyIds, by) {
    const comment = `the user "${name}", whose agent gave it, was deactivated`;
    const end = { cause: "deactivation", comment, by } as const;
    endWhere(tx, (authority) => [id, ...keyIds].includes(authority.by.key_id), end);
  },
};

type End = Pick<AuthorityEntry, "comment"> & { cause: NonNullable<AuthorityEntry["cause"]>; by: Actor };

function endWhere(tx: ReactionTransaction, matches: (authority: Authority) => boolean, end: End): void {
  for (const authority of tx.state(authorityState).open) {
    const { all } = tx.state(authorityState);
    const current = all.get(authority.id) as Authority;
    if (matches(current) && findEnd(all, current, tx.now) === null) endTree(tx, current, end);
  }
}

/** Records the end of an authority and of its descendants. Returns them. */
function endTree(tx: Pick<ReactionTransaction, "record" | "now" | "state">, top: Authority, end: End): Authority[] {
  const below = listBelow(tx.state(authorityState), top, tx.now);
  recordEnd(tx, top, end);
  const comment = `the authority ${top.id}, an ancestor, ended`;
  for (const authority of below) recordEnd(tx, authority, { cause: "parent", comment, by: end.by });
  return [top, ...below];
}

function recordEnd(tx: Pick<ReactionTransaction, "record" | "now">, authority: Authority, end: End): void {
  const { agent_id, ...terms } = toTerms(authority);
  tx.record({ type: "authority", v: 1, at: toRfc3339(tx.now), change: "ended", agent_id, authority: terms, ...end });
}
