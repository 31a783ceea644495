import type { Host } from "../../src/contract/host.ts";
import type { Reply } from "../../src/contract/resource.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { decide } from "../../src/domain/policy/decide.ts";
import { assumingUnused } from "../../src/domain/policy/limits.ts";
import type { Decision, Facts } from "../../src/domain/policy/types.ts";
import { parseRfc3339 } from "../../src/domain/time.ts";
import { candidatesOf, withCandidates } from "../../src/toolkit/candidates.ts";
import type { DryRunBody } from "./schemas.ts";

/** Sample actions under the active set and under the set with the candidates. Nothing is recorded. */
export async function dryRun(host: Host, body: DryRunBody): Promise<Reply> {
  const { compiled: active } = await host.policies.current();
  const candidate = withCandidates(active, candidatesOf(body), body.alone === true);
  const now = (body.now === undefined ? null : parseRfc3339(body.now)) ?? host.clock();
  const { key_id, name, agent_id, owner } = body.principal ?? {};
  const facts: Facts = { principal: { key_id: key_id ?? "test", name: name ?? "test", agent_id: agent_id ?? null, owner: owner ?? null } };
  const results = body.actions.map((action) => {
    const request = { ...action, params: (action.params ?? {}) as JsonObject, context: (action.context ?? {}) as JsonObject };
    const before = decide(active, request, assumingUnused(active, request, facts, now), now);
    const after = decide(candidate, request, assumingUnused(candidate, request, facts, now), now);
    return { current: before, candidate: after, changed: outcomeOf(before) !== outcomeOf(after) };
  });
  return { status: 200, json: { policy_set: candidate.digest, results } };
}

function outcomeOf({ effect, approval }: Decision): string {
  return JSON.stringify([effect, approval?.quorum, approval?.expires_in_ms, approval?.notify]);
}
