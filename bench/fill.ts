/**
 * Fills a new store with actions of the last 30 days. The service decides the first actions. The actions that follow
 * copy those decisions (`bulk.ts`). The service also decides the last ones, which can require approval.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { recordSubmission, requestFromBody, prepareSubmission } from "../plugins/actions/submit.ts";
import { postgresStorage } from "../plugins/storage-postgres/index.ts";
import { sqliteStorage } from "../plugins/storage-sqlite/index.ts";
import type { Storage } from "../src/contract/storage.ts";
import { TILE_WIDTH } from "../src/domain/tiles.ts";
import { createRowSeals } from "../src/identity/row-seals.ts";
import { openVault } from "../src/identity/vault.ts";
import { createLogger, createRuntime, loadConfig, type Config } from "../src/index.ts";
import { appendBulk } from "./bulk.ts";
import { openPostgresWriter, openSqliteWriter } from "./bulk-writers.ts";

/** Actions in one transaction. Deciding them must take less than 2.5 s, after which Postgres ends a silent transaction. */
const PER_TRANSACTION = 500;
/** Actions whose sums are computed in one transaction. */
const PER_UPKEEP = 50_000;
/** Computing the sums of many actions takes longer than a service allows its own transactions. */
const PATIENT = { silenceTimeoutMs: 60_000, statementTimeoutMs: 600_000 };
const AGENTS = 100;
const DAYS_MS = 30 * 86_400_000;

interface Requests {
  /** Number of actions. */
  count: number;
  /** Number of the last actions, which the service decides. Only they can require approval. */
  last: number;
  /** Returns the body of a request. The first 256 have every tool and operation that occurs. */
  body(n: number): Parameters<typeof prepareSubmission>[1];
}

interface Place {
  /** A folder that `prepareFolder` prepared. */
  data: string;
  adminKey: string;
  /** Null or absent for the SQLite store in `data`. */
  database?: string | null;
}

/** A policy under which the filled requests are decided: amounts above 100 require approval. */
const POLICY = `policy: bench
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

/** Returns the folder with the policies of a data folder. */
export const policiesOf = (data: string): string => join(data, "policies");

/** Writes the policies and the configuration into a data folder. */
export function prepareFolder(data: string): void {
  mkdirSync(policiesOf(data), { recursive: true });
  writeFileSync(join(policiesOf(data), "bench.yaml"), POLICY);
  writeFileSync(
    join(data, "assent.yaml"),
    "approvals: { max_pending_per_key: 1000000, trust_key_makers: true }\nthrottle: { times: 0 }\n",
  );
}

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
 * Submits the requests to a new store, in `data` or in the database.
 * @param progress called with the number of recorded actions
 */
export async function fillStore(
  place: Place,
  { count, last, body }: Requests,
  progress: (done: number) => void = () => {},
): Promise<void> {
  const { data, adminKey, database = null } = place;
  const env = {
    ASSENT_DATA: data,
    ASSENT_POLICIES: policiesOf(data),
    ASSENT_AGENTS: "any",
    ASSENT_ADMIN_KEY: adminKey,
  };
  const { config } = loadConfig({
    cwd: data,
    env: { ...env, ...(database === null ? {} : { DATABASE_URL: database }) },
  });
  const until = Date.now();
  let done = 0;
  const submit = async (ends: (size: number) => number, clock: () => number): Promise<void> => {
    done = await submitUpTo(config, adminKey, done, body, ends, clock, progress);
  };
  // Fill the tile that has the entries of keys and policies, and one more.
  await submit(
    (size) => 2 * TILE_WIDTH - (size % TILE_WIDTH),
    () => until - DAYS_MS,
  );
  const storage =
    database === null
      ? sqliteStorage({ path: join(data, "assent.db"), unbundledEntries: 0 })
      : postgresStorage({ url: database, unbundledEntries: 0, ...PATIENT });
  const tiles = Math.floor((count - last - done) / TILE_WIDTH);
  if (tiles > 0) {
    await withStorage(storage, keepUp);
    const writer = await (database === null ? openSqliteWriter(data) : openPostgresWriter(database));
    const first = done;
    const request = (n: number) => requestFromBody(body(first + n));
    const options = { writer, tiles, request, until, progress: (more: number) => progress(first + more) };
    await withStorage(storage, async () => void (done += await appendBulk({ ...options, storage })), true);
    await writer.end();
    await withStorage(storage, (open) => sealHead(open, config));
  }
  await submit(() => count - done, Date.now);
  await withStorage(storage, keepUp);
}

async function withStorage(
  storage: Storage,
  work: (storage: Storage) => Promise<void>,
  readOnly = false,
): Promise<void> {
  await storage.open({ readOnly });
  try {
    await work(storage);
  } finally {
    await storage.close();
  }
}

/** Seals the head, as the service does. */
async function sealHead(storage: Storage, config: Config): Promise<void> {
  const log = createLogger("error");
  const seals = createRowSeals(openVault(config, log), log);
  const head = await storage.head();
  await storage.write((tx) => tx.append([], [], { ...head, seal: seals.sealHead(head) }));
}

/** Brings sums and bundles up to date. */
async function keepUp(storage: Storage): Promise<void> {
  while (((await storage.upkeep?.(PER_UPKEEP)) ?? 0) >= PER_UPKEEP);
}

/**
 * Starts the service, and submits requests from number `from` on.
 * @param countOf returns the number of requests for a ledger of this size
 */
async function submitUpTo(
  config: Config,
  adminKey: string,
  from: number,
  body: Requests["body"],
  countOf: (size: number) => number,
  clock: () => number,
  progress: (done: number) => void,
): Promise<number> {
  const runtime = await createRuntime(config, { clock, log: createLogger("error") });
  await runtime.start();
  try {
    const { host } = runtime;
    const credential = await host.keys.authenticate(adminKey);
    if (credential === null) throw new Error("the admin key is not valid");
    const to = from + countOf((await host.ledger.checkpoint()).size);
    for (let done = from; done < to; progress(done)) {
      const end = Math.min(to, done + PER_TRANSACTION);
      const submissions = Array.from({ length: end - done }, (_, i) =>
        prepareSubmission(host, body(done + i), { meta: {}, idempotencyKey: null, join: false, session: null }),
      );
      await host.ledger.transact(async (tx) => {
        for (const submission of submissions) await recordSubmission(host, tx, credential, submission);
      });
      done = end;
    }
    return Math.max(from, to);
  } finally {
    await runtime.stop();
  }
}
