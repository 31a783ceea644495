/** What plugins can reach with and without the privilege that the operator grants. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Type } from "@sinclair/typebox";
import { defaultConfig, loadConfig } from "../../src/config/index.ts";
import { defineCorePlugin } from "../../src/core.ts";
import { Refusal } from "../../src/contract/errors.ts";
import type { Credential, Host, Transaction } from "../../src/contract/host.ts";
import type { CoreHost } from "../../src/contract/core-host.ts";
import { definePlugin, defineRoute, type Plugin } from "../../src/plugin.ts";
import { loadPlugins } from "../../src/runtime/plugins/loader.ts";
import { folderWith } from "../support/cli.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";

const given = (plugin: unknown, core?: boolean) => ({
  plugin: plugin as Plugin,
  options: {},
  origin: `./${(plugin as Plugin).name}.ts`,
  ...(core === undefined ? {} : { core }),
});

async function withService(
  options: Parameters<typeof startService>[0],
  work: (service: Service) => Promise<void>,
): Promise<void> {
  const service = await startService(options);
  try {
    await work(service);
  } finally {
    await service.close();
  }
}

test("a privileged plugin without the grant is refused, and the error says what to write into assent.yaml", async () => {
  const size = defineCorePlugin({ name: "size", setup: () => ({}) });
  for (const core of [undefined, false])
    await assert.rejects(
      startService({ plugins: [given(size, core)] }),
      /plugin "size": it needs the privileged API \(assent\/core\).*"plugins" in assent\.yaml: \{ name: \.\/size\.ts, core: true \}/,
    );
});

test("a privileged plugin with the grant receives the privileged host", async () => {
  let host: CoreHost | undefined;
  const size = defineCorePlugin({ name: "size", setup: (received) => ((host = received), {}) });
  await withService({ plugins: [given(size, true)] }, async () => {
    assert.ok(((await host?.ledger.head())?.size ?? 0) > 0);
    assert.ok("write" in (host as CoreHost).storage === false);
  });
});

test("`core: true` does not give a plugin members that it did not declare", async () => {
  let host: Host | undefined;
  const plain = definePlugin({ name: "plain", setup: (received) => ((host = received), {}) });
  await withService({ plugins: [given(plain, true)] }, () => {
    assert.equal((host as Partial<CoreHost>).ledger, undefined);
    return Promise.resolve();
  });
});

test("the configuration grants the privilege by plugin; the built-in plugins that need it have it", async (t) => {
  const folder = folderWith(t, {
    "mine.mjs": 'export default { name: "mine", core: true, setup: () => ({}) };',
    "assent.yaml":
      "plugins:\n  - built-in\n  - { name: policies, core: false }\n  - { name: ./mine.mjs, core: true }\n",
  });
  const { config } = loadConfig({ cwd: folder, env: {} });
  const granted = new Map((await loadPlugins(config)).map(({ plugin, core }) => [plugin.name, core]));
  assert.deepEqual([granted.get("actions"), granted.get("storage-sqlite")], [true, false]);
  assert.deepEqual([granted.get("policies"), granted.get("mine")], [false, true]);
  for (const { plugin, core } of await loadPlugins(defaultConfig({ data: folder })))
    assert.equal(plugin.core === true, core, plugin.name);
  await assert.rejects(
    loadPlugins({ ...config, plugins: [{ name: "built-in", core: true }] }),
    /"built-in" takes no "core"/,
  );
});

/** A plugin whose route calls `work` with its host and the caller. */
function probe(work: (host: Host, credential: Credential, id: string) => Promise<unknown>): Plugin {
  return definePlugin({
    name: "probe",
    entries: { "probe:seen": Type.Object({}, { additionalProperties: false }) },
    setup: (host) => ({
      routes: [
        defineRoute({
          method: "POST",
          path: "/v1/probe/:id",
          tag: "probe",
          summary: "Calls the test",
          scope: "actions:read",
          responses: { 200: { description: "Done." } },
          handle: async ({ params: { id }, credential }) => ({
            status: 200,
            json: { value: await work(host, credential, id) },
          }),
        }),
      ],
    }),
  }) as Plugin;
}

/** Returns every name that can be reached on an object, including through its prototypes. */
function reachable(object: object): string[] {
  const names = new Set<string>();
  for (let at: object | null = object; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at) as object)
    for (const name of Reflect.ownKeys(at)) names.add(String(name));
  return [...names].sort();
}

test("an unprivileged plugin reaches the members of its host and transaction, and nothing else", async () => {
  const seen: Record<string, string[]> = {};
  const plugin = probe(async (host, credential, id) => {
    seen["host"] = reachable(host);
    seen["documents"] = reachable(host.documents);
    await host.transact(credential, async (tx) => {
      seen["tx"] = reachable(tx);
      seen["tx.documents"] = reachable(tx.documents);
      assert.throws(() => Object.assign(tx, { caller: null }), TypeError);
      tx.record({ type: "probe:seen", action: await tx.action(id), data: {} });
    });
    return "done";
  });
  await withService({ plugins: [given(plugin)] }, async (service) => {
    const { id } = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body;
    const { status, body } = await service.call("POST", `/v1/probe/${id}`, { key: service.admin });
    assert.deepEqual([status, body.value], [200, "done"]);
    assert.deepEqual(seen, {
      host: [
        "actions",
        "clock",
        "config",
        "documents",
        "entries",
        "entryTypes",
        "errors",
        "log",
        "newId",
        "openapi",
        "origin",
        "plugins",
        "state",
        "stopping",
        "subscribe",
        "timeOfDay",
        "transact",
      ],
      documents: ["get", "list"],
      tx: ["action", "caller", "documents", "now", "record", "state"],
      "tx.documents": ["delete", "get", "list", "put"],
    });
    const entry = (await service.call("GET", `/v1/actions/${id}/events`, { key: service.admin })).body.events.find(
      ({ type }: { type: string }) => type === "probe:seen",
    );
    assert.equal(entry.entry.v, 1);
    assert.match(entry.entry.by.principal, /^key:/);
  });
});

test("a job sees only the actions that its caller can see", async () => {
  const found: unknown[] = [];
  const plugin = probe(async (host, credential, id) => {
    found.push((await host.actions(credential).list({ limit: 10, visibility: { all: true } } as never)).length);
    return host.transact(credential, async ({ action }) => (await action(id)).id);
  });
  await withService({ plugins: [given(plugin)] }, async (service) => {
    const { id } = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body;
    const { key } = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "other", scopes: ["actions:read"], agent_id: "other" },
      })
    ).body;
    assert.equal((await service.call("POST", `/v1/probe/${id}`, { key: service.admin })).body.value, id);
    assert.equal((await service.call("POST", `/v1/probe/${id}`, { key })).body.code, "ACTION_NOT_FOUND");
    assert.deepEqual(found, [1, 0]);
  });
});

test("a plugin's job without a caller sees no action", async () => {
  let host: Host | undefined;
  const plain = definePlugin({ name: "plain", setup: (received) => ((host = received), {}) });
  await withService({ plugins: [given(plain)] }, async (service) => {
    const { id } = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body;
    await assert.rejects(
      (host as Host).transact(null, ({ caller, action }) => {
        assert.equal(caller, null);
        return action(id);
      }),
      (error) => error instanceof Refusal && error.code === "ACTION_NOT_FOUND",
    );
  });
});

test("a job whose key was revoked after the request was authenticated does not run", async () => {
  let ran = 0;
  let service: Service | undefined;
  const plugin = probe(async (host, credential, id) => {
    await service?.call("DELETE", `/v1/api-keys/${credential.key.id}`, { key: service.admin });
    return host.transact(credential, () => Promise.resolve(((ran += 1), id)));
  });
  await withService({ plugins: [given(plugin)] }, async (started) => {
    service = started;
    const { key } = (
      await service.call("POST", "/v1/api-keys", {
        key: service.admin,
        body: { name: "short", scopes: ["actions:read"] },
      })
    ).body;
    assert.equal((await service.call("POST", "/v1/probe/x", { key })).body.code, "INVALID_CREDENTIAL");
    assert.equal(ran, 0);
  });
});

test("a transaction that is used after its job does nothing", async () => {
  let leaked: Transaction | undefined;
  const plugin = probe((host, credential) =>
    host.transact(credential, (tx) => {
      leaked = tx;
      return Promise.resolve(null);
    }),
  );
  await withService({ plugins: [given(plugin)] }, async (service) => {
    await service.call("POST", "/v1/probe/x", { key: service.admin });
    const tx = leaked as Transaction;
    assert.throws(() => tx.record({ type: "probe:seen", data: {} }), /the job has ended/);
    await assert.rejects(tx.documents.put("a", 1, null), /the job has ended/);
    await assert.rejects(tx.action("x"), /the job has ended/);
  });
});
