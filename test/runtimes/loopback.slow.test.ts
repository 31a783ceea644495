/** A service on a loopback address owns its port on both loopback addresses, on every runtime. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { ADMIN } from "../support/deployment.ts";
import { MAIN, startCommand, startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { commandOf, denoPermissions, programOf, withoutRuntime, type RuntimeName } from "../support/runtimes.ts";
import { FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const RUNTIMES: readonly RuntimeName[] = ["node", "deno", "bun"];
const ADDRESSES = ["127.0.0.1", "::1"];
/** Runs a command on a network of its own, whose loopback interface has no IPv6 address. */
const WITHOUT_IPV6 =
  'ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/lo/disable_ipv6 && ! ip addr show lo | grep -q inet6 && exec "$@"';
const isolated = (command: readonly string[]): string[] => ["-rn", "sh", "-c", WITHOUT_IPV6, "sh", ...command];
const withoutNetworks =
  spawnSync("unshare", isolated(["true"])).status === 0 ? false : "this machine cannot create a network without IPv6";

const environment = (): Record<string, string> => ({
  ASSENT_DATA: temporaryFolder("assent-loopback-"),
  ASSENT_POLICIES: FEW_POLICIES,
  ASSENT_ADMIN_KEY: ADMIN,
});

async function start(t: TestContext, runtime: RuntimeName, ...args: string[]): Promise<ServiceProcess> {
  const service = await startProcess(environment(), args, runtime, programOf(runtime));
  t.after(() => stopProcess(service));
  return service;
}

/** Takes a free port on one loopback address. */
async function takePort(t: TestContext, host: string): Promise<string> {
  const taken: Server = createServer().listen(0, host);
  await once(taken, "listening");
  t.after(() => taken.close());
  return String((taken.address() as AddressInfo).port);
}

const statusAt = (host: string, port: string): Promise<number> =>
  new Promise((resolve, reject) => {
    request({ host, port, path: "/healthz" }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end();
  });

for (const runtime of RUNTIMES) {
  describe(`on ${runtime}`, { skip: withoutRuntime(runtime) }, () => {
    for (const host of [...ADDRESSES, "localhost"])
      it(`answers on both loopback addresses if it listens on ${host}`, async (t) => {
        const service = await start(t, runtime, "--host", host);
        const { port } = new URL(service.url);
        for (const address of ADDRESSES) assert.equal(await statusAt(address, port), 200, address);
        assert.match(service.output(), new RegExp(`the console is at http://assent\\.localhost:${port}\n`));
      });

    for (const taken of ADDRESSES)
      it(`does not start if another program has its port on ${taken}`, async (t) => {
        const port = await takePort(t, taken);
        await assert.rejects(start(t, runtime, "--port", port), (error: Error) => {
          assert.match(
            error.message,
            new RegExp(`exited with 1 .*\nassent: port ${port} on ${taken} is in use by`, "s"),
          );
          return true;
        });
      });

    it("starts on a machine without IPv6", { skip: withoutNetworks }, async (t) => {
      const env = environment();
      const [program, args] = commandOf(
        runtime,
        MAIN,
        ["serve"],
        denoPermissions("start", env["ASSENT_DATA"]),
        programOf(runtime),
      );
      const service = await startCommand(["unshare", isolated([program, ...args])], env);
      t.after(() => stopProcess(service));
      assert.match(service.url, /^http:\/\/127\.0\.0\.1:\d+$/);
    });
  });
}
