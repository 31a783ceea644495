/**
 * Fills a store with actions: real decisions in the ledger's transactions, without HTTP. Each transaction has many
 * decisions, so this takes a third of the time of POST /v1/actions.
 */
import { decideSubmission, sealSubmission } from "../plugins/actions/submit.ts";
import { createLogger, createRuntime, loadConfig } from "../src/index.ts";

const PER_JOB = 250;
const AGENTS = 100;

interface Filled {
  /** Actions that are allowed. */
  allowed: number;
  /** Actions that wait for approval. */
  pending: number;
}

/** A policy under which the filled requests are decided: amounts above 100 require approval. */
export const FILL_POLICY = `policy: bench
rules:
  - name: small refunds
    tool: stripe
    operation: refund
    when: params.amount <= 100
    effect: allow
  - name: refunds
    tool: stripe
    operation: refund
    effect: require_approval
    risk: medium
    reason: Refunds above 100 need a person
    approval: { expires_in: 7d, preview: "Refund {params.amount} {params.currency} to {params.customer}" }
`;

/** The body of the request number `n`. */
export function refundBody(n: number, amount: number) {
  return {
    agent_id: `support-${n % AGENTS}`,
    tool: "stripe",
    operation: "refund",
    params: { amount, currency: n % 3 === 0 ? "EUR" : "USD", customer: `c-${n % 5000}`, order: `o-${n}` },
    context: { ticket: `T-${n % 997}` },
  };
}

/** Fills the store of a folder. @param progress called with the number of actions so far */
export async function fillStore(
  { data, policies, adminKey }: { data: string; policies: string; adminKey: string },
  { allowed, pending }: Filled,
  progress: (done: number) => void,
): Promise<void> {
  const env = { ASSENT_DATA: data, ASSENT_POLICIES: policies, ASSENT_AGENTS: "any", ASSENT_ADMIN_KEY: adminKey };
  const { config } = loadConfig({ cwd: data, env });
  const runtime = await createRuntime(config, { log: createLogger("error", () => {}) });
  await runtime.start();
  try {
    const { host } = runtime;
    const credential = await host.keys.authenticate(adminKey);
    if (credential === null) throw new Error("the admin key is not valid");
    for (let done = 0; done < allowed + pending; progress(done)) {
      const count = Math.min(PER_JOB, allowed + pending - done);
      const submissions = Array.from({ length: count }, (_, i) => {
        const n = done + i;
        const amount = n < allowed ? 1 + (n % 100) : 101 + (n % 900);
        return sealSubmission(host, refundBody(n, amount), {
          meta: {},
          idempotencyKey: null,
          join: false,
          session: null,
        });
      });
      await host.ledger.transact(async (tx) => {
        for (const submission of submissions) await decideSubmission(host, tx, credential, submission);
      });
      done += count;
    }
  } finally {
    await runtime.stop();
  }
}
