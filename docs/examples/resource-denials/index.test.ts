/** Tests the plugin in a service whose store is in memory. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createRuntime, defaultConfig } from "assent";
import { auditStore, memoryStorage } from "assent/testing";

test("counts the denials by agent and rule", async () => {
  // The service keeps its secrets in the data folder.
  const folder = mkdtempSync(join(tmpdir(), "resource-denials-"));
  const policies = join(folder, "policies");
  mkdirSync(policies);
  const rule = "{ name: no deletion, tool: crm, operation: delete_customer, effect: deny }";
  writeFileSync(join(policies, "crm.yaml"), `policy: crm\nrules: [${rule}]\n`);

  const config = defaultConfig({ data: folder, policies });
  config.plugins = ["built-in", fileURLToPath(new URL("index.ts", import.meta.url))];
  config.log.level = "silent";
  const storage = memoryStorage();
  const runtime = await createRuntime(config, { storage });
  try {
    await runtime.start();
    let keys = { admin: "", agent: "" };
    await runtime.createFirstKeys((created) => (keys = created));
    const call = async (key: string, path: string, body?: object): Promise<unknown> => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const request = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
      return (await runtime.fetch(new Request(`http://assent.test${path}`, request))).json();
    };

    const action = { agent_id: "support-bot", tool: "crm", operation: "delete_customer" };
    for (let i = 0; i < 2; i++) await call(keys.agent, "/v1/actions", action);
    assert.deepEqual(await call(keys.admin, "/v1/denials?hours=1"), {
      hours: 1,
      denials: [{ agent_id: "support-bot", policy: "crm", rule: "no deletion", reason_code: "POLICY_RULE", count: 2 }],
    });
    assert.deepEqual((await auditStore(storage)).faults, []);
  } finally {
    await runtime.stop();
    rmSync(folder, { recursive: true });
  }
});
