/** Places and lifts stops. Each change is an urgent transaction that does not evaluate policies. */
import {
  canAdministerAgent,
  canSeeAgent,
  confirmCredential,
  type CoreHost,
  findCreatedResource,
  type IdempotentCall,
  matchesAnyName,
  parseRfc3339,
  recordCreatedResource,
  toActor,
  type UrgentJob,
} from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import { countPeople, isNewPerson, principalsBehindVote } from "../actions/api.ts";
import type { StopEntry } from "./entry.ts";
import { ERRORS } from "./errors.ts";
import type { StopBody } from "./schemas.ts";
import { coverageOf, isStopActive, listActiveStops, type Stop, type StopHistory, stopState } from "./state.ts";

/** Maximum number of active stops, because every decision checks each of them. */
const MAX_ACTIVE = 100;

type Tx = Parameters<UrgentJob<unknown>>[0];

export function placeStop(
  host: CoreHost,
  credential: Credential,
  body: StopBody,
  call: IdempotentCall | null,
): Promise<{ stop: Stop; replayed: boolean }> {
  const { reason, agent = null, tool = null, policy = null } = body;
  const until = body.until === undefined ? null : parseRfc3339(body.until);
  const id = host.newId();
  return host.ledger.transactFirst(async (tx) => {
    const caller = await confirmWriter(tx, credential);
    const earlier = await findCreatedResource(tx, caller, call);
    if (earlier !== null) return { stop: findStop(tx.state(stopState), earlier), replayed: true };
    if (until !== null && until <= tx.now)
      throw new Refusal(
        "VALIDATION_FAILED",
        `until must be in the future; got ${body.until}, and the current time is ${toRfc3339(tx.now)}`,
        {
          errors: [{ pointer: "/until", detail: "a time in the future" }],
        },
      );
    // Accept a stop that covers everything even if the maximum is reached.
    const narrow = agent !== null || tool !== null || policy !== null;
    if (narrow && listActiveStops(tx.state(stopState), tx.now).length >= MAX_ACTIVE)
      throw new Refusal(
        ERRORS.tooMany,
        `${MAX_ACTIVE} stops are active, which is the limit; lift some, or place a stop without a selector`,
      );
    // Reject an unknown policy, because a stop with a mistyped name would have no effect.
    const named = policy === null ? null : await tx.policyByName(policy);
    if (policy !== null && (named === null || named.deleted_at !== null))
      throw new Refusal("POLICY_NOT_FOUND", `there is no policy "${policy}", so nothing was stopped`);
    const entry = record(tx, {
      change: "placed",
      stop: { id, agent, tool, policy, reason, until: until === null ? null : toRfc3339(until) },
      comment: null,
      approvals: 0,
      needed: 0,
      by: toActor(caller.key, caller.principal),
    });
    const { by } = entry;
    for (const reaction of host.reactions) reaction.barPlaced?.(tx, { id, reason, by, covers: coverageOf(entry.stop) });
    await recordCreatedResource(tx, caller, call, id);
    return { stop: findStop(tx.state(stopState), id), replayed: false };
  });
}

/** Returns true if the stop can affect agents that the caller sees. */
export function canSeeStop(credential: Credential, stop: Pick<Stop, "agent">): boolean {
  const { visibility } = credential;
  if (stop.agent !== null && "agent_id" in visibility) return matchesAnyName([stop.agent], visibility.agent_id);
  const agent = namedAgent(stop);
  return agent === null || canSeeAgent(credential, agent);
}

/** Returns the agent that the stop names; null for all agents or a pattern, which can cover agents of every caller. */
function namedAgent({ agent }: Pick<Stop, "agent">): string | null {
  return agent === null || agent.includes("*") || agent.includes("?") ? null : agent;
}

/** Records the caller's request to lift the stop, and lifts it once `needed` people have requested that. */
export function liftStop(
  host: CoreHost,
  needed: number,
  credential: Credential,
  id: string,
  comment: string | null,
): Promise<Stop> {
  return host.ledger.transactFirst(async (tx) => {
    const caller = await confirmWriter(tx, credential);
    const before = findStop(tx.state(stopState), id);
    const named = namedAgent(before);
    if (named !== null && !canAdministerAgent(caller, named)) throw stopNotFoundRefusal(id);
    if (!isStopActive(before, tx.now)) throw new Refusal(ERRORS.over, `the stop ${id} was already lifted or has ended`);
    const by = toActor(caller.key, caller.principal);
    const people = before.lifts.map((lift) => principalsBehindVote(host, lift.by));
    const lifter = principalsBehindVote(host, by);
    const approvals = countPeople([...people, lifter]);
    if (!isNewPerson(people, lifter) && approvals < needed)
      throw new Refusal(
        "ALREADY_VOTED",
        `you, or a person who shares your vote through a key, have already requested to lift the stop; ${needed} people are needed`,
      );
    const { agent, tool, policy, reason, until } = before;
    record(tx, {
      change: approvals >= needed ? "lifted" : "lift_asked",
      stop: { id, agent, tool, policy, reason, until: until === null ? null : toRfc3339(until) },
      comment,
      approvals,
      needed,
      by,
    });
    return findStop(tx.state(stopState), id);
  });
}

export function findStop({ all }: StopHistory, id: string): Stop {
  const stop = all.get(id);
  if (stop === undefined) throw stopNotFoundRefusal(id);
  return stop;
}

export function stopNotFoundRefusal(id: string): Refusal {
  return new Refusal(ERRORS.notFound, `there is no stop "${id}" that this key may see`);
}

function record(tx: Tx, change: Omit<StopEntry, "type" | "v" | "at">): StopEntry {
  const entry: StopEntry = { type: "stop", v: 1, at: toRfc3339(tx.now), ...change };
  tx.record(entry);
  return entry;
}

/** Confirms the key under the lock. A key that is bound to an agent must not place or lift stops. */
async function confirmWriter(tx: Tx, credential: Credential): Promise<Credential> {
  const caller = await confirmCredential(tx, credential, "stop:write");
  if (caller.key.agent_id !== null)
    throw new Refusal(
      "AGENT_MISMATCH",
      `the key "${caller.key.name}" is bound to the agent "${caller.key.agent_id}"; stops are placed and lifted with a key that is bound to none`,
    );
  return caller;
}
