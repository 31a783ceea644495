/** `assent erase` against a running service: it counts first, erases with --yes, and rejects probable mistakes. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { EXIT_CODES } from "../../../src/cli/command.ts";
import { serve, type RunningServer } from "../../../src/serve/index.ts";
import { assentInProcess, type Run } from "../../support/cli.ts";
import { startService, type Service } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let service: Service;
let server: RunningServer;
let folder = "";
before(async () => {
  folder = temporaryFolder("assent-erase-");
  service = await startService();
  server = await serve((request, info) => service.runtime.fetch(request, info), { host: "127.0.0.1", port: 0 });
  process.env["ASSENT_URL"] = server.url;
});
after(async () => {
  await server.stop(500);
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

function as(key: string, ...args: string[]): Promise<Run> {
  process.env["ASSENT_API_KEY"] = key;
  return assentInProcess(...args);
}

async function submitted(tool: string, operation: string, params: object): Promise<string> {
  const flags = ["--agent", "support-bot", "--tool", tool, "--operation", operation];
  const { out } = await as(service.agent, "submit", ...flags, "--params", JSON.stringify(params), "--json");
  return (JSON.parse(out) as { id: string }).id;
}

test("one action is shown, and erased with --yes and a reason", async () => {
  const id = await submitted("unknown", "x", { to: "Ben" });
  const looked = await as(service.admin, "erase", id);
  assert.deepEqual(
    [looked.code, looked.err],
    [EXIT_CODES.ok, "nothing was erased; add --yes to erase its parameters, context and result\n"],
  );
  assert.match(looked.out, / {2}parameters\n {4}to: Ben/);
  assert.match((await as(service.agent, "erase", id, "--reason", "r", "--yes")).err, /INSUFFICIENT_SCOPE/);
  assert.match((await as(service.admin, "actions", id)).out, /Ben/);
  const erased = await as(service.admin, "erase", id, "--reason", "request 4711", "--yes");
  assert.equal(erased.code, EXIT_CODES.ok);
  assert.match(erased.out, / {2}erased {4}\d{4}-/);
  assert.ok(!erased.out.includes("params"));

  const open = await submitted("stripe", "refund", { amount: 50, currency: "USD" });
  const refused = await as(service.admin, "erase", open, "--reason", "r", "--yes");
  assert.equal(refused.code, EXIT_CODES.failure);
  assert.match(refused.err, /ACTION_OPEN/);
});

test("assent hold keeps an action from being erased, is listed with its id, and is released with a reason", async () => {
  const id = await submitted("unknown", "x", { to: "Cleo" });
  const placed = await as(service.admin, "hold", "--action", id, "--reason", "case 7");
  assert.equal(placed.code, EXIT_CODES.ok, placed.err);
  const hold = / {2}id {8}(\S+)/.exec(placed.out)?.[1] ?? "";
  assert.match(placed.out, new RegExp(`^active {2}action ${id}\n`));
  const refused = await as(service.admin, "erase", id, "--reason", "r", "--yes");
  assert.equal(refused.code, EXIT_CODES.failure);
  assert.ok(refused.err.includes("ACTION_HELD") && refused.err.includes(hold), refused.err);
  const search = await as(service.admin, "erase", "--value", "Cleo", "--reason", "r", "--yes");
  assert.equal(search.code, EXIT_CODES.failure);
  assert.match(search.out, new RegExp(`1 of them are under legal hold and were not erased: ${hold}; 0 were erased`));
  assert.match((await as(service.admin, "hold", "--list")).out, /reason {4}case 7/);
  assert.match((await as(service.admin, "hold", "--release", hold, "--reason", "over")).out, /^released {2}action/);
  assert.equal((await as(service.admin, "hold", "--list")).out, "no legal hold is active\n");
  for (const args of [
    [],
    ["--agent", "a"],
    ["--agent", "a", "--action", "b", "--reason", "r"],
    ["--list", "--agent", "a"],
  ])
    assert.equal((await as("none", "hold", ...args)).code, EXIT_CODES.usage, args.join(" "));
  assert.equal((await as(service.admin, "erase", id, "--reason", "r", "--yes")).code, EXIT_CODES.ok);
});

test("matching actions are counted, and erased with --yes and a reason", async () => {
  const ids = [
    await submitted("unknown", "x", { to: { email: "anna@example.org" } }),
    await submitted("unknown", "x", {}),
  ];
  const file = join(folder, "value");
  writeFileSync(file, "anna@example.org\n");
  const which = ["erase", "--value", `@${file}`, "--at", "/params/to/email"];
  const counted = await as(service.admin, ...which);
  assert.match(counted.out, /^1 of \d+ actions match; nothing was erased; add --reason and --yes to erase them\n$/);
  const erased = await as(service.admin, ...which, "--reason", "request 4711", "--yes", "--json");
  const { matched, erased: done, dry_run } = JSON.parse(erased.out) as Record<string, unknown>;
  assert.deepEqual([erased.code, matched, done, dry_run], [EXIT_CODES.ok, 1, 1, false]);
  assert.match((await as(service.admin, "actions", ids[0] as string)).out, / {2}erased /);
  assert.match((await as(service.admin, "actions", ids[1] as string)).out, / {2}parameters\n/);
  assert.match(
    (await as(service.admin, "erase", "--older-than", "1d")).out,
    /^0 of 0 actions match; nothing was erased/,
  );
});

test("probable mistakes are rejected before the confirmation", async () => {
  for (const [args, words] of [
    [[], /select actions with/],
    [["--reason", "r", "--yes"], /select actions with/],
    [["--yes", "--value", "x"], /--reason is needed/],
    [["id", "--yes"], /--reason is needed/],
    [["id", "--value", "x"], /not both/],
    [["id", "id2"], /one action id/],
    [["--older-than", "soon"], /a duration such as 90d/],
    [["--older-than", "0d"], /a duration such as 90d/],
    [["--until", "yesterday"], /must be a time/],
    [["--older-than", "1d", "--until", "2026-01-01T00:00:00Z"], /either/],
    [["--value", "x", "--number", "7"], /either/],
    [["--number", "many"], /must be a number/],
    [["--at", "/params/a", "--agent", "a"], /goes with/],
  ] as [string[], RegExp][]) {
    const { code, err } = await as("none", "erase", ...args);
    assert.equal(code, EXIT_CODES.usage, args.join(" "));
    assert.match(err, words);
  }
});
