/** What an agent and an operator see while an issuer of tokens is down, never answers, or answers garbage. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import workloadIdentity from "../../../plugins/workload-identity/index.ts";
import type { Plugin } from "../../../src/plugin.ts";
import { serve } from "../../../src/serve/index.ts";
import { assentInProcessWithEnv, type Run } from "../../support/cli.ts";
import { startService, type Service } from "../../support/service.ts";
import { startTokenIssuer } from "../../support/token-issuer.ts";
import { until } from "../../support/wait.ts";

const ISSUER = "https://ci.example.com";
const AUDIENCE = "https://assent.example.com";

const start = (keys: string): Promise<Service> =>
  startService({
    plugins: [
      {
        plugin: workloadIdentity as Plugin,
        options: {
          issuers: [
            {
              id: "ci",
              platform: "github-actions",
              issuer: ISSUER,
              keys,
              audience: AUDIENCE,
              algorithms: ["RS256"],
              workloads: [{ id: "web", agent: "deployer", subject: "repo:acme/web" }],
            },
          ],
        },
        origin: "workload-identity",
        core: true,
      },
    ],
  });

const doctor = async (service: Service): Promise<Run> => {
  const listening = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  try {
    return await assentInProcessWithEnv({ ASSENT_URL: listening.url, ASSENT_API_KEY: service.admin }, "doctor");
  } finally {
    await listening.stop(0);
  }
};

test("doctor reports an issuer whose keys cannot be read, and not the reason, and a service that has its keys as ok", async () => {
  const issuer = await startTokenIssuer();
  issuer.answer = { status: 503, body: "a secret of the network" };
  const service = await start(issuer.jwks);
  const readiness = async () => (await service.call("GET", "/readyz")).body;
  await until("the keys were requested", async () => (await readiness()).workload_identity.ok === false);
  const { ready, workload_identity: check } = await readiness();
  assert.equal(ready, true);
  assert.doesNotMatch(JSON.stringify(check), /503|secret/);
  const failing = await doctor(service);
  assert.equal(failing.code, 1);
  assert.match(failing.out, /^problem +workload_identity +the keys of "ci" cannot be read/m);
  issuer.answer = null;
  service.clock.now += 31_000;
  await until("the keys are known", async () => (await readiness()).workload_identity.ok);
  assert.doesNotMatch((await doctor(service)).out, /workload_identity/);
  await service.close();
  await issuer.close();
});

test("an issuer that accepts connections and never answers delays no health check, and its tokens get 503", async () => {
  const issuer = await startTokenIssuer();
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const service = await start(`http://127.0.0.1:${(silent.address() as AddressInfo).port}/keys`);
  const now = Math.floor((Date.now() + service.clock.now) / 1000);
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: "repo:acme/web", iat: now, exp: now + 300 };
  const key = await issuer.sign(claims, { typ: "JWT" });
  let isRefused = false;
  const refused = service.call("GET", "/v1/me", { key }).finally(() => (isRefused = true));
  assert.equal((await service.call("GET", "/readyz")).status, 200);
  assert.equal(isRefused, false);
  const { status, body } = await refused;
  assert.deepEqual([status, body.code], [503, "WORKLOAD_IDENTITY_KEYS_UNAVAILABLE"]);
  await service.close();
  silent.close();
  await issuer.close();
});
