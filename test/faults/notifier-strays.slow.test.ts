/**
 * An unhandled rejection of a notifier does not stop the service. An unhandled rejection of the service itself does.
 */
import assert from "node:assert/strict";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT, startProcess, stopProcess } from "../support/process.ts";
import { ASKED, FEW_POLICIES } from "../support/service.ts";
import { until } from "../support/wait.ts";

const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const PLUGIN = `import { definePlugin } from "assent/plugin";
import { EventEmitter } from "node:events";
export default definePlugin({
  name: "careless",
  setup: () => ({
    notifiers: [{ name: "careless", async deliver() {
      setTimeout(() => { throw new Error("thrown in a timer"); }, 10);
      setTimeout(() => { void Promise.reject(new Error("rejected, and nobody looks")); }, 20);
      const socket = new EventEmitter();
      setTimeout(() => socket.emit("error", new Error("an event without a listener")), 30);
    } }],
    routes: [{ method: "POST", path: "/v1/break", tag: "x", summary: "x", scope: null, responses: { 200: { description: "x" } }, errors: [], handle() { setTimeout(() => { throw new Error("the service's own fault"); }, 10); return { status: 200, json: {} }; } }],
  }),
});
`;

test("the service continues despite a failing notifier, and the log says which notifier failed", async () => {
  const folder = temporaryFolder("assent-strays-");
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules", "assent"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "careless.ts"), PLUGIN);
  writeFileSync(
    join(folder, "assent.yaml"),
    "plugins: [built-in, ./careless.ts]\nchannels:\n  finance: { notifier: careless, places: [{ to: anna }] }\n",
  );
  const service = await startProcess(
    { ASSENT_POLICIES: FEW_POLICIES, ASSENT_DATA: join(folder, "data"), ASSENT_ADMIN_KEY: ADMIN },
    ["--config", join(folder, "assent.yaml")],
  );
  try {
    const submit = async (): Promise<number> =>
      (
        await fetch(`${service.url}/v1/actions`, {
          method: "POST",
          headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
          body: JSON.stringify(ASKED),
        })
      ).status;
    assert.equal(await submit(), 202);
    const words = ["thrown in a timer", "rejected, and nobody looks", "an event without a listener"];
    await until(
      () => `all three are told: ${service.output().slice(-1500)}`,
      () => words.every((word) => service.output().includes(word)),
    );
    for (const word of words)
      assert.ok(
        service
          .output()
          .split("\n")
          .some((line) => line.includes(word) && line.includes('"notifier":"careless"')),
        `${word}: ${service.output().slice(-1500)}`,
      );
    assert.equal(await submit(), 202);
    await fetch(`${service.url}/v1/break`, { method: "POST" });
    assert.equal(await service.ended, 1);
    assert.match(service.output(), /the service's own fault/);
  } finally {
    await stopProcess(service, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});
