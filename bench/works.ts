/** Requests that the measurements send. */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../test/support/runtimes.ts";
import { POLICIES, type Work } from "./load.ts";
import sample from "./sample.json" with { type: "json" };

const OWN = `${ROOT}bench/policies`;

interface Change {
  agent_id?: string;
  tool?: string;
  params?: Record<string, string | number>;
}

const body = ({ params, ...names }: Change): string =>
  JSON.stringify({ ...sample, ...names, params: { ...sample.params, ...params } });
const path = "/v1/actions";
let n = 0;

/** The default policies allow 50, require approval for 500 and deny 50,000. */
export const DENIED: Work = { path, body: body({ params: { amount: 50_000 } }) };
export const ASKED: Work = { path, body: body({ params: { amount: 500 } }) };

const allowed = body({});
export const KEYED: Work = {
  path,
  next: () => ({ body: allowed, headers: { "idempotency-key": `${process.pid}-${n++}` } }),
};

/** Most charges are refunded once, some several times. */
export const LIMITED: Work = {
  path,
  next: () => ({ body: body({ tool: "limited", params: { charge: `ch_${Math.floor(Math.random() * 100_000)}` } }) }),
};

const MANY = Array.from({ length: 600 }, (_, i) =>
  body({ agent_id: `agent-${i % 20}`, tool: `desk-${Math.floor(i / 20)}` }),
);
export const VARIED: Work = { path, next: () => ({ body: MANY[(n++ * 7) % MANY.length] as string }) };

/**
 * Copies the default policies, those of this folder, and a configuration for a large approval queue into a data folder.
 * Returns the folder of the policies.
 */
export function prepareData(data: string): string {
  const policies = join(data, "policies");
  for (const from of [POLICIES, OWN]) cpSync(from, policies, { recursive: true });
  writeFileSync(join(data, "assent.yaml"), "approvals: { max_pending_per_key: 1000000 }\n");
  return policies;
}
