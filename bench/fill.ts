/**
 * Fills a store with actions: real decisions in the ledger's transactions, without HTTP. Each transaction has many
 * decisions, so this takes a third of the time of POST /v1/actions.
 */
import { recordSubmission, prepareSubmission } from "../plugins/actions/submit.ts";
import { createLogger, createRuntime, loadConfig } from "../src/index.ts";

/** Actions in one transaction. Deciding them must take less than 2.5 s, after which Postgres ends a silent transaction. */
const PER_JOB = 500;
const AGENTS = 100;

interface Requests {
  /** Number of the first request. */
  from: number;
  /** Number after the last request. */
  to: number;
  /** Returns the body of a request. */
  body(n: number): Parameters<typeof prepareSubmission>[1];
}

interface Place {
  data: string;
  policies: string;
  adminKey: string;
  /** Null or absent for the SQLite store in `data`. */
  database?: string | null;
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

/**
 * Submits the requests to the store of a folder or a database.
 * @param progress called with the number after the last recorded one
 */
export async function fillStore(
  { data, policies, adminKey, database = null }: Place,
  { from, to, body }: Requests,
  progress: (done: number) => void = () => {},
): Promise<void> {
  const env = {
    ASSENT_DATA: data,
    ASSENT_POLICIES: policies,
    ASSENT_AGENTS: "any",
    ASSENT_ADMIN_KEY: adminKey,
    ...(database === null ? {} : { DATABASE_URL: database }),
  };
  const { config } = loadConfig({ cwd: data, env });
  const runtime = await createRuntime(config, { log: createLogger("error", () => {}) });
  await runtime.start();
  try {
    const { host } = runtime;
    const credential = await host.keys.authenticate(adminKey);
    if (credential === null) throw new Error("the admin key is not valid");
    for (let done = from; done < to; progress(done)) {
      const end = Math.min(to, done + PER_JOB);
      const submissions = Array.from({ length: end - done }, (_, i) =>
        prepareSubmission(host, body(done + i), { meta: {}, idempotencyKey: null, join: false, session: null }),
      );
      await host.ledger.transact(async (tx) => {
        for (const submission of submissions) await recordSubmission(host, tx, credential, submission);
      });
      done = end;
    }
  } finally {
    await runtime.stop();
  }
}
