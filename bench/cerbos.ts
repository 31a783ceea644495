/**
 * Starts Cerbos with its decision log, for comparison, because it is the most similar product. Cerbos writes the log in
 * the background, so a response does not wait for the disk, and the log cannot be proved. Its policy is one rule.
 */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { freePort } from "../test/support/postgres.ts";
import { until } from "../test/support/wait.ts";
import type { Server, Work } from "./load.ts";

const POLICY = `apiVersion: api.cerbos.dev/v1
resourcePolicy:
  resource: payment
  version: default
  rules:
    - actions: [refund]
      roles: [agent]
      effect: EFFECT_ALLOW
      condition:
        match:
          expr: R.attr.amount <= 100 && R.attr.currency == "USD"
`;

export const CHECK: Work = {
  path: "/api/check/resources",
  body: JSON.stringify({
    principal: { id: "support-bot", roles: ["agent"] },
    resources: [
      {
        actions: ["refund"],
        resource: {
          kind: "payment",
          id: "ch_3P2x9",
          attr: { amount: 50, currency: "USD", charge: "ch_3P2x9", reason: "duplicate charge" },
        },
      },
    ],
  }),
};

/** Returns the path of the program, or null if its package does not support this platform. */
function programOf(): string | null {
  const name = `cerbos-${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`@cerbos/${name}/${name}`);
  } catch {
    return null;
  }
}

/** Starts Cerbos. If it cannot run, prints the reason to standard error and returns null. */
export async function startCerbos(data: string): Promise<Server | null> {
  const program = programOf();
  if (program === null) {
    process.stderr.write("no Cerbos for this platform in node_modules: measured without it\n");
    return null;
  }
  const policies = join(data, "policies");
  mkdirSync(policies);
  writeFileSync(join(policies, "payment.yaml"), POLICY);
  const [http, grpc] = [await freePort(), await freePort()];
  const config = {
    server: { httpListenAddr: `127.0.0.1:${http}`, grpcListenAddr: `127.0.0.1:${grpc}` },
    storage: { driver: "disk", disk: { directory: policies, watchForChanges: false } },
    audit: {
      enabled: true,
      backend: "local",
      decisionLogsEnabled: true,
      accessLogsEnabled: false,
      local: { storagePath: join(data, "audit") },
    },
    telemetry: { disabled: true },
  };
  // JSON is YAML.
  writeFileSync(join(data, "config.yaml"), JSON.stringify(config));
  const child = spawn(program, ["server", "--config", join(data, "config.yaml"), "--log-level", "error"], {
    stdio: "ignore",
  });
  const url = `http://127.0.0.1:${http}`;
  await until("Cerbos answers", () =>
    fetch(`${url}/_cerbos/health`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  const answer = await fetch(`${url}${CHECK.path}`, { method: "POST", body: CHECK.body as string });
  if (!(await answer.text()).includes("EFFECT_ALLOW")) throw new Error("Cerbos does not allow what it should");
  return { child, url, key: "none" };
}
