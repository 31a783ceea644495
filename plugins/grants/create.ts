/** Creates grants: together with an approving vote, or without a vote. */
import {
  canSee,
  type CompiledPolicySet,
  confirmCredential,
  type CoreHost,
  effectiveRequest,
  Evaluation,
  findCreatedResource,
  findScopeFault,
  findSumFault,
  foldName,
  type Grantor,
  type GrantTerms,
  type IdempotentCall,
  type LedgerTransaction,
  matchGrant,
  parseDuration,
  recordCreatedResource,
  SELF_RELATION_REASONS,
  toActor,
  type VotedGrant,
  type VoteGrantTerms,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { findSelfApproval } from "../actions/api.ts";
import { ERRORS } from "./errors.ts";
import type { GrantBody, GrantTermsBody } from "./schemas.ts";
import { findOpenGrants, type Grant, grantState, type GrantTarget } from "./state.ts";

/** Maximum number of open grants for one agent, tool and operation, because a decision tries each of them. */
const MAX_OPEN = 20;

/** Creates a grant without a vote. A repeated request returns the grant that the first request created. */
export async function createGrant(
  host: CoreHost,
  credential: Credential,
  body: GrantBody,
  call: IdempotentCall | null,
): Promise<{ grant: Grant; replayed: boolean }> {
  const id = host.newId();
  await assertNotOwnAgent(host, credential, body);
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "grants:write");
    const earlier = await findCreatedResource(tx, caller, call);
    if (earlier !== null) {
      const existing = tx.state(grantState).all.get(earlier);
      if (existing === undefined) throw new Refusal(ERRORS.notFound, `the grant "${earlier}" ended long ago`);
      return { grant: existing, replayed: true };
    }
    const grant = recordGrantAlone(tx, caller, id, body);
    await recordCreatedResource(tx, caller, call, id);
    return { grant, replayed: false };
  });
}

/**
 * Records a grant without a vote. Throws unless the caller may create it and the rules allow its terms.
 * @param pointer the pointer of the grant in the body of the request
 * @param uses total uses of all grants for the operation in the request, which the rules must allow
 */
export function recordGrantAlone(
  tx: LedgerTransaction,
  caller: Credential,
  id: string,
  body: GrantBody,
  { pointer = "", uses = body.count }: { pointer?: string; uses?: number } = {},
): Grant {
  const largest = findLargestGrantTerms(tx.activePolicies.compiled, body);
  const [terms, comment] = [readGrantTerms(body, pointer), body.reason ?? null];
  const grant = { id, target: body, terms, uses, largest, comment, grantedWith: null, passkey: null, pointer };
  recordGrant(tx, caller, grant);
  return tx.state(grantState).all.get(id) as Grant;
}

/** Returns the terms in the form that is recorded and signed. Throws VALIDATION_FAILED for a malformed duration. */
export function readGrantTerms(
  { count, for: text, scope, sum, ends_on_failure = false, task }: GrantTermsBody,
  pointer = "/grant",
): VoteGrantTerms {
  const for_ms = parseDuration(text);
  if (for_ms === null || for_ms < 1000)
    throw invalidTermsRefusal(`${pointer}/for`, `"${text}" is not a duration such as 30m or 8h`);
  const named = task === undefined ? {} : { task };
  return { count, ends_on_failure, for_ms, scope: scope ?? null, sum: sum ?? null, ...named };
}

/** Creates the grant that comes with an approving vote, and starts a task if the terms name one. */
export function recordGrantWithVote(
  host: CoreHost,
  tx: LedgerTransaction,
  caller: Grantor,
  row: ActionRow,
  { id, terms, largest, facts, reason, passkey }: VotedGrant,
): void {
  const request = effectiveRequest(row);
  if (request === null) throw new Error(`the request of ${row.id} is missing`);
  recordGrant(
    tx,
    caller,
    {
      id,
      target: row,
      terms,
      uses: terms.count,
      largest,
      comment: reason,
      grantedWith: row.id,
      passkey,
      pointer: "/grant",
    },
    () => {
      const { scope, sum } = terms;
      const evaluation = new Evaluation(tx.activePolicies.compiled, request, facts, tx.now);
      if (matchGrant({ id, scope, sum }, evaluation) === null)
        throw invalidTermsRefusal("/grant/scope", "the scope or the sum does not cover the action that you approve");
    },
  );
  const { task } = terms;
  if (task === undefined) return;
  const grant = tx.state(grantState).all.get(id) as Grant;
  if (!host.reactions.some((each) => each.grantNamed?.(host, tx, grant, task) === true))
    throw invalidTermsRefusal("/grant/task", "the service has no tasks, because the plugin `tasks` is not loaded");
}

interface NewGrant {
  id: string;
  target: GrantTarget;
  terms: VoteGrantTerms;
  /** The uses that the rules have to allow. */
  uses: number;
  largest: GrantTerms | null;
  comment: string | null;
  grantedWith: string | null;
  passkey: string | null;
  /** The pointer of the grant in the body of the request. */
  pointer: string;
}

function recordGrant(
  tx: LedgerTransaction,
  caller: Grantor,
  { id, target, terms, uses, largest, comment, grantedWith, passkey, pointer }: NewGrant,
  assertCovers: () => void = () => undefined,
): void {
  const { agent_id, tool, operation } = target;
  const { count, scope, sum, ends_on_failure, for_ms } = terms;
  assertMayGrant(caller, target);
  assertWithin(target, { for_ms, count: uses }, largest);
  assertExpressions(tx, target, terms, pointer);
  if (findOpenGrants(tx.state(grantState), target, tx.placedBar, tx.now).length >= MAX_OPEN)
    throw new Refusal(
      ERRORS.tooMany,
      `${MAX_OPEN} grants for the agent's ${tool} ${operation} are open, which is the limit; revoke one first`,
    );
  assertCovers();
  tx.record({
    type: "grant",
    v: 1,
    at: toRfc3339(tx.now),
    change: "granted",
    agent_id,
    grant: { id, tool, operation, scope, count, sum, until: toRfc3339(tx.now + for_ms), ends_on_failure, passkey },
    cause: null,
    related_action: grantedWith,
    comment,
    by: toActor(caller.key, caller.principal),
  });
}

/**
 * Returns the largest caps of the rules that could require approval for this agent, tool and operation with any
 * parameters; null if no rule allows grants. This is only an upper bound, because each use is decided by the rules that
 * match it.
 */
function findLargestGrantTerms(
  compiled: CompiledPolicySet,
  { agent_id, tool, operation }: GrantTarget,
): GrantTerms | null {
  const request = { agent_id, tool, operation, params: {}, context: {} };
  const principal = { key_id: "", name: "", agent_id: null, owner: null };
  const evaluation = new Evaluation(compiled, request, { principal }, 0);
  const possible = evaluation
    .applicablePolicies()
    .filter(({ shadow }) => !shadow)
    .flatMap((policy) => evaluation.rules(policy).flatMap((rule) => rule.approval?.grants ?? []));
  if (possible.length === 0) return null;
  return {
    count: Math.max(...possible.map(({ count }) => count)),
    for_ms: Math.max(...possible.map(({ for_ms }) => for_ms)),
  };
}

/** Throws unless the credential may vote and grant, for this agent and tool. */
function assertMayGrant(caller: Grantor, { agent_id, tool }: GrantTarget): void {
  for (const scope of ["approvals:decide", "grants:write"] as const)
    if (!caller.hasScope(scope))
      throw new Refusal("INSUFFICIENT_SCOPE", `the key "${caller.key.name}" lacks the scope ${scope}`);
  if (caller.key.agent_id !== null)
    throw new Refusal(
      "AGENT_MISMATCH",
      `the key "${caller.key.name}" is bound to the agent "${caller.key.agent_id}"; create grants with a key that is bound to no agent`,
    );
  if (!canSee(caller.session?.visibility ?? caller.visibility, { agent_id, tool, submitted_by: null }))
    throw new Refusal("APPROVER_NOT_ELIGIBLE", "your groups do not cover this agent and tool");
}

/** Throws GRANT_NOT_ALLOWED if the terms exceed what the rules allow. */
function assertWithin(
  { tool, operation }: GrantTarget,
  { for_ms, count }: Pick<VoteGrantTerms, "for_ms" | "count">,
  largest: GrantTerms | null,
): void {
  if (largest === null)
    throw new Refusal(
      ERRORS.notAllowed,
      `no active rule allows grants for ${tool} ${operation} (approval.grants), or the rules require more than one approver; approve each action separately`,
    );
  if (for_ms > largest.for_ms || count > largest.count)
    throw new Refusal(
      ERRORS.notAllowed,
      `the rules allow grants for ${tool} ${operation} for up to ${largest.for_ms / 60_000} minutes and ${largest.count} uses; got ${for_ms / 60_000} minutes and ${count} uses`,
    );
}

function assertExpressions(tx: LedgerTransaction, target: GrantTarget, terms: VoteGrantTerms, at: string): void {
  const { compiled } = tx.activePolicies;
  const { scope, sum } = terms;
  const inScope = scope === null ? null : findScopeFault(compiled, target, scope, "condition");
  if (inScope !== null) throw invalidTermsRefusal(`${at}/scope`, inScope);
  const inSum = sum === null ? null : findSumFault(compiled, target, sum);
  if (inSum !== null) throw invalidTermsRefusal(`${at}/sum/of`, inSum);
}

function invalidTermsRefusal(pointer: string, detail: string): Refusal {
  return new Refusal("VALIDATION_FAILED", `the grant is not valid: ${detail}`, { errors: [{ pointer, detail }] });
}

/**
 * Throws SELF_APPROVAL if a live key of the agent belongs, or might belong, to the caller. Only an early report: each
 * use of the grant is checked again, against the key that submits the action.
 */
export async function assertNotOwnAgent(host: CoreHost, caller: Credential, target: GrantTarget): Promise<void> {
  const { agent_id, tool, operation } = target;
  const now = host.clock();
  for (const key of await host.storage.keys()) {
    if (key.agent_id === null || key.revoked_at !== null || (key.expires_at ?? Infinity) <= now) continue;
    const submitter = { submitted_by: key.id, submitted_agent: key.agent_id, submitted_owner: key.owner };
    const isAgents = foldName(key.agent_id) === foldName(agent_id);
    const self = isAgents ? findSelfApproval(host, { agent_id, tool, operation, ...submitter }, caller) : null;
    if (self !== null)
      throw new Refusal(
        "SELF_APPROVAL",
        `the key "${key.name}" of the agent would submit the actions, and ${SELF_RELATION_REASONS[self]}; someone else must grant them`,
      );
  }
}
