/** Serves metrics for Prometheus (text format 0.0.4). */
import { Type } from "@sinclair/typebox";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { type CoreHost, defineCorePlugin, isCoreEntry, type RecordedEntry } from "../../src/core.ts";
import { defineRoute } from "../../src/plugin.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export default defineCorePlugin({
  name: "metrics",
  setup(host) {
    const register = new Registry();
    const requests = new Histogram({
      name: "assent_http_request_duration_seconds",
      help: "Time until a response was made, including waits that clients requested.",
      labelNames: ["method", "route", "status"],
      buckets: SECONDS,
      registers: [register],
    });
    const entries = new Counter({
      name: "assent_ledger_entries_total",
      help: "Entries of the ledger that this process has recorded since it started. Add up the values of all processes.",
      labelNames: ["type"],
      registers: [register],
    });
    const decisions = new Counter({
      name: "assent_decisions_total",
      help: "Decisions that this process has recorded since it started. Add up the values of all processes.",
      labelNames: ["effect", "reason_code"],
      registers: [register],
    });
    const locked = new Histogram({
      name: "assent_ledger_lock_held_seconds",
      help: "Time for which a batch of this process held the lock of the ledger's head, with its commit.",
      buckets: [0.0005, ...SECONDS],
      registers: [register],
    });
    addCoreGauges(host, register);
    addPolicyGauges(host, register);
    addFactSourceGauges(host, register);
    let unsubscribe: (() => void)[] = [];

    function countEntries(recorded: readonly RecordedEntry[]): void {
      for (const { body } of recorded) {
        entries.inc({ type: body.type });
        if (!isCoreEntry(body) || body.type !== "decision") continue;
        const { effect, reason_code } = body.decision;
        decisions.inc({ effect, reason_code });
      }
    }

    return {
      // Use the route instead of the path as a label: clients choose paths, and the number of labels must be bounded.
      onResponse: ({ method, route, status, ms }) =>
        requests.observe({ method: route === null ? "other" : method, route: route ?? "none", status }, ms / 1000),
      routes: [
        defineRoute({
          method: "GET",
          path: "/metrics",
          tag: "health",
          summary: "Metrics for Prometheus",
          scope: "metrics:read",
          exemptFromRateLimit: true,
          responses: { 200: { description: "Metrics.", contentType: "text/plain", schema: Type.String() } },
          handle: async () => ({
            status: 200,
            headers: { "Content-Type": register.contentType },
            text: await register.metrics(),
          }),
        }),
      ],
      async start() {
        for (const { name, help, labels, read } of host.gauges)
          addGauge(
            register,
            name,
            help,
            async (gauge) => (await read()).forEach((each) => gauge.set(each.labels, each.value)),
            [...labels],
          );
        unsubscribe = [
          host.ledger.onRecorded(countEntries),
          host.ledger.onBatch((lockedMs) => locked.observe(lockedMs / 1000)),
        ];
      },
      async stop() {
        for (const stop of unsubscribe) stop();
        unsubscribe = [];
      },
    };
  },
});

/**
 * Registers a gauge that is read on each scrape. If the read fails, the scrape omits the gauge instead of repeating its
 * last value.
 */
function addGauge(
  register: Registry,
  name: string,
  help: string,
  read: (gauge: Gauge) => Promise<void> | void,
  labelNames: string[] = [],
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers: [register],
    async collect() {
      this.reset();
      try {
        await read(this);
      } catch {
        this.remove();
      }
    },
  });
}

/** Registers the gauges of fact sources. */
function addFactSourceGauges(host: CoreHost, register: Registry): void {
  const gauge = addGauge.bind(null, register);
  gauge(
    "assent_fact_source_reads",
    "Reads of each fact source since this process started, without cached values.",
    (metric) => host.factSources.counts().forEach(({ source, reads }) => metric.set({ source }, reads)),
    ["source"],
  );
  gauge(
    "assent_fact_source_failures",
    "Reads without a usable result, and reads that were not made because they got no slot.",
    (metric) => host.factSources.counts().forEach(({ source, failures }) => metric.set({ source }, failures)),
    ["source"],
  );
}

/** Registers the gauges of policies and their sources. */
function addPolicyGauges(host: CoreHost, register: Registry): void {
  const gauge = addGauge.bind(null, register);
  gauge("assent_policies_active", "Policies in the active set.", async (metric) =>
    metric.set((await host.policies.state()).count),
  );
  gauge(
    "assent_policy_set_info",
    "Digest of the active policy set, as a label.",
    async (metric) => metric.set({ policy_set: (await host.policies.state()).digest ?? "none" }, 1),
    ["policy_set"],
  );
  gauge(
    "assent_policy_source_stale",
    "1 while a policy source provides policies that cannot be accepted.",
    async (metric) => metric.set((await host.policies.state()).stale_since === null ? 0 : 1),
  );
  gauge(
    "assent_policy_source_stale_since_seconds",
    "Unix time since which a policy source provides policies that cannot be accepted; absent if there is none.",
    async (metric) => {
      const since = (await host.policies.state()).stale_since;
      if (since === null) metric.remove();
      else metric.set(since / 1000);
    },
  );
  gauge(
    "assent_policy_source_fault",
    "1 for each fault in policies that cannot be accepted.",
    async (metric) => {
      for (const { file, line, column } of (await host.policies.state()).faults.slice(0, 20))
        metric.set({ file, line: line ?? "", column: column ?? "" }, 1);
    },
    ["file", "line", "column"],
  );
}

/** Registers the gauges of requests, the ledger, approvals, deliveries and the process. */
function addCoreGauges(host: CoreHost, register: Registry): void {
  const gauge = addGauge.bind(null, register);
  gauge("assent_http_body_bytes", "Bytes of request bodies in memory. Limit: server.max_bytes_in_flight.", (metric) =>
    metric.set(host.load.bodyBytes()),
  );
  gauge(
    "assent_http_response_bytes",
    "Bytes of large responses in memory that are being built or not read yet. Limit: server.max_response_bytes.",
    (metric) => metric.set(host.load.responseBytes()),
  );
  gauge(
    "assent_ledger_queue_requests",
    "Requests of agents that wait for the ledger. Limit: ledger.max_queue.",
    (metric) => metric.set(host.load.queued()),
  );
  gauge("assent_ledger_size", "Entries in the ledger.", async (metric) => metric.set((await host.ledger.head()).size));
  gauge(
    "assent_ledger_lag_entries",
    "Committed entries that the event streams of this process have not received yet.",
    async (metric) => metric.set(await host.ledger.lag()),
  );
  gauge(
    "assent_ledger_clock_ahead_seconds",
    "Seconds by which the last entry is ahead of this machine's clock; 0 if it is not.",
    (metric) => metric.set(host.ledger.clockAhead() / 1000),
  );
  gauge(
    "assent_ledger_unsigned_seconds",
    "Seconds since this process committed the first entry that no signed checkpoint covers; 0 if there is no such entry.",
    (metric) => metric.set(host.ledger.unsignedMs() / 1000),
  );
  const age = (since: number): number => Math.max(0, host.clock() - since) / 1000;
  gauge("assent_approvals_pending", "Pending actions that have not expired.", async (metric) =>
    metric.set(await host.storage.pendingCount({ all: true }, host.clock())),
  );
  gauge(
    "assent_approvals_pending_oldest_age_seconds",
    "Age of the oldest pending action; absent if there is none.",
    async (metric) => {
      const since = await host.storage.oldestPending(host.clock());
      if (since === null) metric.remove();
      else metric.set(age(since));
    },
  );
  gauge(
    "assent_deliveries",
    "Deliveries by state: created for a later time (scheduled), to be attempted (waiting), or failed permanently (dead).",
    async (metric) => {
      for (const [state, { count }] of Object.entries(await host.storage.deliveryBacklog()))
        metric.set({ state }, count);
    },
    ["state"],
  );
  gauge(
    "assent_deliveries_oldest_age_seconds",
    "Age of the oldest of these deliveries; absent if there is none.",
    async (metric) => {
      for (const [state, { oldest }] of Object.entries(await host.storage.deliveryBacklog()))
        if (oldest !== null) metric.set({ state }, age(oldest));
    },
    ["state"],
  );
  gauge("assent_process_resident_memory_bytes", "Resident memory of the process.", (metric) =>
    metric.set(process.memoryUsage().rss),
  );
  gauge("assent_process_start_time_seconds", "When the process started, as a Unix time.", (metric) =>
    metric.set(Math.round(Date.now() / 1000 - process.uptime())),
  );
}
