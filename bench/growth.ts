/**
 * Measures how the CPU of a decision grows with what a store contains, on SQLite. Each shape is measured in turns with
 * a small case of the same shape. Prints the median of the ratios, and marks ratios over 1.1.
 *
 *   BENCH_SHAPES="500,000 entries;10,000 pending" BENCH_TURNS=6 BENCH_AMOUNT=3000 npm run bench:growth
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fillStore, policiesOf, prepareFolder, refundBody } from "./fill.ts";
import { ALLOWED, end, measure, median, start, type Server, type Work } from "./load.ts";
import { cpuOf } from "./meter.ts";
import { ASKED, prepareData } from "./works.ts";

const TURNS = Number(process.env["BENCH_TURNS"] ?? 6);
const AMOUNT = Number(process.env["BENCH_AMOUNT"] ?? 3_000);
const CONNECTIONS = 32;
const MARKED = 1.1;
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const [SMALL, LARGE] = [10, 10_000];

interface Shape {
  work: Work;
  /** Prepares a data folder with the policies in its folder `policies`. */
  prepare(data: string, isLarge: boolean): Promise<void> | void;
  /** Changes the running service. */
  change?(server: Server, isLarge: boolean): Promise<void>;
}

/** The default policies, and a policy with `count` rules. */
function withRules(rule: (n: number) => string): Shape {
  return {
    work: ALLOWED,
    prepare(data, isLarge) {
      const policies = prepareData(data);
      const rules = Array.from({ length: isLarge ? LARGE : SMALL }, (_, n) => `  - name: rule ${n}\n    ${rule(n)}`);
      writeFileSync(join(policies, "many.yaml"), `policy: many\nrules:\n${rules.join("\n")}\n`);
    },
  };
}

function withActions(small: number, large: number, pending: (isLarge: boolean) => number, amount: number): Shape {
  let sent = 0;
  const next = () => ({ body: JSON.stringify(refundBody(1_000_000_000 + sent++, amount)) });
  return {
    work: { path: "/v1/actions", next },
    async prepare(data, isLarge) {
      prepareFolder(data);
      const count = isLarge ? large : small;
      const last = pending(isLarge);
      const body = (n: number) => refundBody(n, n >= count - last ? 500 : 1 + (n % 100));
      await fillStore({ data, adminKey: ADMIN }, { count, last, body });
    },
  };
}

/** Sends `count` bodies by POST, 16 at a time. Calls `then` with each response. */
async function postAll(
  server: Server,
  path: string,
  count: number,
  body: (n: number) => object,
  then: (created: { id: string }) => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  await Promise.all(
    Array.from({ length: 16 }, async (_, worker) => {
      for (let n = worker; n < count; n += 16) await then(await post(server, path, body(n)));
    }),
  );
}

async function post({ url, key }: Server, path: string, body: object): Promise<{ id: string }> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} was answered with ${response.status} ${await response.text()}`);
  return (await response.json()) as { id: string };
}

/** Grants for many operations of one tool, 20 each, which is the most for one operation. None covers the request. */
const GRANTS: Shape = {
  work: { path: "/v1/actions", body: JSON.stringify({ ...granted(0), params: { order: "other" } }) },
  prepare(data) {
    const rule = "effect: require_approval\n    approval: { grants: { count: 100, for: 8h } }";
    writeFileSync(
      join(prepareData(data), "granted.yaml"),
      `policy: granted\nrules:\n  - name: asks\n    tool: granted\n    ${rule}\n`,
    );
  },
  change: (server, isLarge) =>
    postAll(server, "/v1/grants", isLarge ? 1_000 : 20, (n) => ({
      ...granted(Math.floor(n / 20)),
      for: "8h",
      count: 10,
      scope: `params.order == "o-${n}"`,
    })),
};

function granted(n: number): { agent_id: string; tool: string; operation: string } {
  return { agent_id: "support-bot", tool: "granted", operation: `operation-${n}` };
}

const SHAPES: Readonly<Record<string, Shape>> = {
  "10,000 rules spread over tools": withRules((n) => `tool: tool-${n}\n    effect: allow`),
  "10,000 rules on one tool": withRules((n) => `tool: stripe\n    operation: other-${n}\n    effect: deny`),
  "10,000 rules with globs": withRules((n) => `tool: "other-${n}-*"\n    effect: allow`),
  "500,000 entries": withActions(10_000, 500_000, () => 0, 1),
  "10,000 pending": withActions(11_000, 11_000, (isLarge) => (isLarge ? LARGE : SMALL), 500),
  "10,000 stops in the past": {
    work: ASKED,
    prepare: (data) => void prepareData(data),
    change: (server, isLarge) =>
      postAll(
        server,
        "/v1/stop",
        isLarge ? LARGE : SMALL,
        (n) => ({ tool: `tool-${n}`, reason: "benchmark" }),
        ({ id }) => post(server, `/v1/stop/${id}/lift`, {}),
      ),
  },
  "1,000 open grants of an agent": GRANTS,
  "1,000 users in 50 groups": {
    work: ASKED,
    prepare: (data) => void prepareData(data),
    change: (server, isLarge) =>
      postAll(server, "/v1/users", isLarge ? 1_000 : SMALL, (n) => ({
        name: `User ${n}`,
        roles: ["approver"],
        groups: [`group-${n % 50}`],
      })),
  },
};
const NAMES = process.env["BENCH_SHAPES"]?.split(";") ?? Object.keys(SHAPES);

async function cost(server: Server, work: Work): Promise<number> {
  const before = cpuOf(server.child.pid);
  const { requests } = await measure([server], CONNECTIONS, 0, { amount: AMOUNT, work });
  return (cpuOf(server.child.pid) - before) / requests;
}

async function measureShape(name: string, { work, prepare, change }: Shape): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "assent-bench-"));
  const servers: Server[] = [];
  try {
    for (const isLarge of [false, true]) {
      const data = join(folder, isLarge ? "large" : "small");
      mkdirSync(data);
      await prepare(data, isLarge);
      const server = await start(
        "service",
        data,
        { ASSENT_ADMIN_KEY: ADMIN, ASSENT_PUBLIC_URL: "http://localhost" },
        { policies: policiesOf(data) },
      );
      servers.push(server);
      await change?.(server, isLarge);
    }
    for (const server of servers) await cost(server, work);
    const turns: [number, number][] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const costs: [number, number] = [NaN, NaN];
      for (const i of turn % 2 === 0 ? [0, 1] : [1, 0]) costs[i] = await cost(servers[i] as Server, work);
      turns.push(costs);
    }
    const ratio = median(turns.map(([small, large]) => large / small));
    const cells = [0, 1].map((i) =>
      median(turns.map((costs) => costs[i] as number))
        .toFixed(0)
        .padStart(9),
    );
    process.stdout.write(
      `${name.padEnd(34)}${cells.join("")}${ratio.toFixed(2).padStart(8)}${ratio > MARKED ? "  <-- over 1.1" : ""}\n`,
    );
  } finally {
    await Promise.all(servers.map(end));
    rmSync(folder, { recursive: true, force: true });
  }
}

process.stdout.write(`${"CPU µs per decision".padEnd(34)}    small    large   ratio\n`);
for (const name of NAMES) {
  const shape = SHAPES[name];
  if (shape === undefined) throw new Error(`BENCH_SHAPES must name ${Object.keys(SHAPES).join("; ")}; got "${name}"`);
  await measureShape(name, shape);
}
