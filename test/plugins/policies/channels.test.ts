/** Warnings about channels that policies name and the configuration lacks, wherever a policy is loaded. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { POLICIES, startService, type Service, person } from "../../support/service.ts";
import { testNotifier } from "../../support/notifier.ts";

let service: Service;
afterEach(() => service.close());

const asks = (policy: string, ...notify: string[]): object => ({
  policy,
  rules: [{ name: "r", tool: policy, effect: "require_approval", approval: { notify } }],
});

test("storing, importing, activating and loading from a folder warn of channels that are not configured", async () => {
  service = await startService({
    policies: POLICIES,
    plugins: [testNotifier().plugin],
    change(config) {
      config.channels = {
        finance: { notifier: "pigeon", people: [{ owner: person("anna"), to: "anna@example.com" }] },
      };
    },
  });
  const call = async (method: string, path: string, body?: object): Promise<{ status: number; warnings: string[] }> => {
    const answer = await service.call(method, path, { key: service.admin, ...(body === undefined ? {} : { body }) });
    return { status: answer.status, warnings: answer.body.warnings as string[] };
  };
  const unknown = /^"r" of the policy "odd" notifies the channel "finanec".*did you mean "finance"\?$/;

  assert.deepEqual(await call("POST", "/v1/policies", asks("good", "finance")), { status: 201, warnings: [] });
  const stored = await call("POST", "/v1/policies", asks("odd", "finance", "finanec"));
  assert.equal(stored.status, 201, "a warning refuses nothing");
  assert.equal(stored.warnings.length, 1);
  assert.match(stored.warnings[0] ?? "", unknown);
  const activated = await call("POST", "/v1/policies/odd/activate", {});
  assert.deepEqual([activated.status, activated.warnings], [200, stored.warnings]);
  const imported = await call("POST", "/v1/policies/import-yaml", { yaml: JSON.stringify(asks("odd", "finanec")) });
  assert.deepEqual([imported.status, imported.warnings], [200, stored.warnings]);

  const logged = service.logged.find((line) => line.includes("policies name channels that are not configured"));
  assert.ok(
    logged !== undefined && ["engineering", "security", "support"].every((name) => logged.includes(name)),
    "of the default set",
  );
});
