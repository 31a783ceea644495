/** Liveness and readiness, for process supervisors and load balancers. */
import { Type, type Static } from "@sinclair/typebox";
import { type CoreHost, defineCorePlugin, type PolicyState, TimeLimitError, withTimeLimit } from "../../src/core.ts";
import { defineRoute, toRfc3339 } from "../../src/plugin.ts";
import { StorageError } from "../../src/storage/index.ts";

/**
 * Lag in entries above which the detail reports that event streams are behind. Under load, some batches are always in
 * flight.
 */
const FAR_BEHIND = 10_000;
/** Time limit of each check, because a load balancer does not wait for long. Milliseconds. */
const CHECK_TIMEOUT_MS = 5_000;
/** Time after which the detail reports that entries are unsigned. Milliseconds. */
const LONG_UNSIGNED_MS = 1_000;

const Check = Type.Object({ ok: Type.Boolean(), detail: Type.String() }, { additionalProperties: false });
const FeatureCheck = Type.Object(
  { ok: Type.Boolean(), detail: Type.String(), held: Type.Integer({ description: "Number of things that hold." }) },
  { additionalProperties: false },
);
type FeatureCheck = Static<typeof FeatureCheck>;
const Ready = Type.Object(
  {
    ready: Type.Boolean(),
    storage: Check,
    migrations: Type.Object(
      { ok: Type.Boolean(), detail: Type.String(), applied: Type.Integer(), known: Type.Integer() },
      {
        additionalProperties: false,
        description: "Migrations of the store, and migrations that this version knows.",
      },
    ),
    ledger: Check,
    lag: Type.Object(
      { ok: Type.Boolean(), detail: Type.String(), entries: Type.Integer() },
      {
        additionalProperties: false,
        description:
          "Committed entries that the event streams of this process have not received yet. Does not affect readiness, because decisions are not delayed.",
      },
    ),
    replicas: Type.Object(
      { ok: Type.Boolean(), detail: Type.String(), processes: Type.Integer() },
      {
        additionalProperties: false,
        description:
          "Number of processes that share the store, including this one. A crashed process is counted for up to 15 seconds. Does not affect readiness.",
      },
    ),
    policies: Type.Object(
      {
        ok: Type.Boolean(),
        detail: Type.String(),
        active: Type.Integer({ description: "Policies in the active set." }),
        policy_set: Type.Union([Type.String(), Type.Null()]),
        source: Type.Union(
          [
            Type.Object({ kind: Type.String(), commit: Type.Optional(Type.String()) }, { additionalProperties: false }),
            Type.Null(),
          ],
          { description: "Source of the active set, with the commit if it is a git repository." },
        ),
        offers: Type.Array(
          Type.Object(
            {
              source: Type.String({ description: "Name of the source." }),
              commit: Type.Union([Type.String(), Type.Null()], {
                description: "The commit, if the source is a git repository.",
              }),
              taken: Type.Boolean({
                description:
                  "False if the policies were rejected, or were never read. The last valid policies of the source, if any, stay active.",
              }),
              applied_commit: Type.Union([Type.String(), Type.Null()], {
                description:
                  "The commit that was accepted last. Differs from `commit` while the newest commit is rejected.",
              }),
              baseline: Type.Boolean({ description: "Whether its policies are the baseline." }),
              unread_since: Type.Union([Type.String(), Type.Null()], {
                description:
                  "Time since which this process cannot read the source, for example because its server does not answer. The last valid policies of the source, if any, stay active.",
              }),
            },
            { additionalProperties: false },
          ),
          {
            description:
              "The last policies that each source provided. A commit that changes no policy is accepted but creates no new set.",
          },
        ),
        stale_since: Type.Union([Type.String(), Type.Null()], {
          description: "Time since which a source cannot be read, or provides policies that cannot be accepted.",
        }),
        faults: Type.Array(
          Type.Object(
            {
              file: Type.String(),
              line: Type.Union([Type.Integer(), Type.Null()]),
              column: Type.Union([Type.Integer(), Type.Null()]),
            },
            { additionalProperties: false },
          ),
          { description: "Locations of the first ten faults. The log of the service contains the messages." },
        ),
        unloaded: Type.Array(
          Type.Object(
            {
              source: Type.String(),
              file: Type.String(),
              reason: Type.Union([
                Type.Literal("ending"),
                Type.Literal("hidden"),
                Type.Literal("subfolder"),
                Type.Literal("beside"),
              ]),
            },
            { additionalProperties: false },
          ),
          {
            description:
              "The first ten files that look like policies and are not loaded, because of their ending, a dot before their name, or their folder. Does not affect readiness.",
          },
        ),
      },
      { additionalProperties: false },
    ),
  },
  {
    additionalProperties: FeatureCheck,
    description: "The other members are checks of features, such as `stops`. They do not affect readiness.",
  },
);

type Checks = Omit<Static<typeof Ready>, "ready">;

export default defineCorePlugin({
  name: "health",
  setup: (host) => {
    let last: Checks | null = null;
    return {
      routes: [
        defineRoute({
          method: "GET",
          path: "/healthz",
          tag: "health",
          summary: "The process is alive",
          scope: null,
          exemptFromRateLimit: true,
          responses: { 200: { description: "Alive.", schema: Type.Object({ alive: Type.Literal(true) }) } },
          handle: () => ({ status: 200, json: { alive: true } }),
        }),
        defineRoute({
          method: "GET",
          path: "/readyz",
          tag: "health",
          summary: "The service can decide",
          scope: null,
          exemptFromRateLimit: true,
          description:
            "Returns 503 while the store cannot be written, its migrations differ from those of this version, the ledger is halted, no policy is active, a baseline is not loaded, or the service stops. While it stops, the details are the same as for the last request.",
          responses: {
            200: { description: "Ready.", schema: Ready },
            503: { description: "Not ready.", schema: Ready },
          },
          async handle() {
            // While the service stops, reuse the results of the last checks: a load balancer must notice the stop
            // before the port closes, even if the store is slow.
            const checks = host.stopping.aborted && last !== null ? last : (last = await runChecks(host));
            const { storage, migrations, ledger, policies } = checks;
            const ready = storage.ok && migrations.ok && ledger.ok && policies.ok && !host.stopping.aborted;
            return { status: ready ? 200 : 503, json: { ready, ...checks } };
          },
        }),
      ],
    };
  },
});

/** Runs all checks in parallel, because each can wait for the store. */
async function runChecks(host: CoreHost): Promise<Checks> {
  const [storage, ledger, progress, replicas, policies, features] = await Promise.all([
    probe(() => host.storage.ping()),
    checkLedger(host),
    progressOf(host),
    replicasOf(host),
    policiesOf(host),
    checkFeatures(host),
  ]);
  return { ...features, storage, ledger, ...progress, replicas, policies };
}

/**
 * Checks the ledger. After the database was restarted or replaced, each process first compares the database with the
 * entries that it has seen. Until this is done, nothing can be appended or signed. Reports this state without waiting,
 * because a load balancer would time out first.
 */
async function checkLedger(host: CoreHost): Promise<Checks["ledger"]> {
  let isSettled = true;
  const unsignedMs = host.ledger.unsignedMs();
  const signed = await probe(async () => {
    const { server } = await host.storage.head();
    isSettled = server?.isSettled !== false;
    if (isSettled) await host.ledger.checkpoint();
  });
  if (!signed.ok && isSettled && unsignedMs > LONG_UNSIGNED_MS)
    return {
      ok: false,
      detail: `${signed.detail}: the newest entries have been unsigned for ${Math.round(unsignedMs / 1000)} s; see the log`,
    };
  return isSettled
    ? signed
    : {
        ok: false,
        detail: "the processes have not yet agreed on the database, which was restarted or replaced; see the log",
      };
}

async function policiesOf(host: CoreHost): Promise<Checks["policies"]> {
  const { state, trouble } = await policyState(() => host.policies.state());
  const active = state.count > 0;
  const unloaded = state.offers.find(({ baseline, applied }) => baseline && applied === null);
  const unread = state.offers.filter(({ unread_since }) => unread_since !== null).map(({ name }) => name);
  const count = state.faults.length;
  const problem =
    state.stale_since === null
      ? null
      : unread.length > 0
        ? `these sources cannot be read: ${unread.join(", ")}`
        : `the newest policies have ${count} ${count === 1 ? "fault" : "faults"}`;
  return {
    ok: active && unloaded === undefined,
    detail:
      trouble !== null
        ? trouble
        : !active
          ? `no policy is active: every action is denied${problem === null ? "" : `; ${problem}`}`
          : unloaded !== undefined
            ? `the baseline of the source "${unloaded.name}" is not loaded`
            : problem === null
              ? "active"
              : `the last valid set is active; ${problem}`,
    active: state.count,
    policy_set: state.digest,
    source: sourceOf(state),
    offers: state.offers.map(
      ({ name, source: { commit = null }, accepted: taken, applied, baseline, unread_since }) => ({
        source: name,
        commit,
        taken,
        applied_commit: applied?.source["commit"] ?? null,
        baseline,
        unread_since: unread_since === null ? null : toRfc3339(unread_since),
      }),
    ),
    stale_since: state.stale_since === null ? null : toRfc3339(state.stale_since),
    faults: state.faults.slice(0, 10).map(({ file, line, column }) => ({ file: folderOfFile(file), line, column })),
    unloaded: state.unloaded
      .slice(0, 10)
      .map(({ source, file, reason }) => ({ source, file: folderOfFile(file), reason })),
  };
}

async function progressOf(host: CoreHost): Promise<Pick<Checks, "migrations" | "lag">> {
  try {
    const [{ applied, known: newest }, entries] = await withinLimit(
      Promise.all([host.storage.schema(), host.ledger.lag()]),
    );
    return {
      migrations: {
        ok: applied === newest,
        detail:
          applied === newest
            ? "ok"
            : applied > newest
              ? "a newer version migrated the store; update this process"
              : "migrations wait",
        applied,
        known: newest,
      },
      lag: {
        ok: entries < FAR_BEHIND,
        detail: entries < FAR_BEHIND ? "ok" : "event streams of this process are behind",
        entries,
      },
    };
  } catch (error) {
    const detail = describeError(error);
    return { migrations: { ok: false, detail, applied: 0, known: 0 }, lag: { ok: false, detail, entries: 0 } };
  }
}

async function replicasOf(host: CoreHost): Promise<Checks["replicas"]> {
  try {
    const { count, duties } = await withinLimit(host.processes.list());
    const localDuties = duties.filter((duty) => duty.here).map(({ name }) => name);
    return {
      ok: true,
      detail:
        count === 1 && duties.length === 0
          ? "ok"
          : localDuties.length === 0
            ? "others do the shared jobs"
            : `this one does ${localDuties.join(", ")}`,
      processes: count,
    };
  } catch (error) {
    return { ok: false, detail: describeError(error), processes: 0 };
  }
}

/** Runs the checks of features. */
async function checkFeatures(host: CoreHost): Promise<Record<string, FeatureCheck>> {
  const results = host.checks.map(async ({ name, read }): Promise<[string, FeatureCheck]> => {
    try {
      return [name, await withinLimit(read())];
    } catch (error) {
      return [name, { ok: false, detail: describeError(error), held: 0 }];
    }
  });
  return Object.fromEntries(await Promise.all(results));
}

async function policyState(read: () => Promise<PolicyState>): Promise<{ state: PolicyState; trouble: string | null }> {
  let state: PolicyState = {
    digest: null,
    count: 0,
    faults: [],
    stale_since: null,
    source: null,
    offers: [],
    unloaded: [],
  };
  const { ok, detail } = await probe(async () => {
    state = await read();
  });
  return { state, trouble: ok ? null : detail };
}

/**
 * Returns the location of a fault within its source, without the URL or path of the source.
 */
function folderOfFile(file: string): string {
  return file.startsWith("/") || /[:\\]/.test(file) ? "(the source)" : file;
}

/**
 * Returns the kind and commit of the active set's source. Omits URLs and paths, which only the service's log contains.
 */
function sourceOf({ source }: PolicyState): { kind: string; commit?: string } | null {
  const { kind, commit } = source ?? {};
  return kind === undefined ? null : { kind, ...(commit === undefined ? {} : { commit }) };
}

/** Runs a check. */
async function probe(work: () => Promise<void>): Promise<{ ok: boolean; detail: string }> {
  try {
    await withinLimit(work());
    return { ok: true, detail: "ok" };
  } catch (error) {
    return { ok: false, detail: describeError(error) };
  }
}

function withinLimit<T>(work: Promise<T>): Promise<T> {
  return withTimeLimit(work, CHECK_TIMEOUT_MS, `no response within ${CHECK_TIMEOUT_MS / 1000} s`);
}

/** Returns only the kind of an error, because its message may contain paths and hosts. */
function describeError(error: unknown): string {
  if (error instanceof TimeLimitError) return error.message;
  return error instanceof StorageError ? error.kind : "failed";
}
