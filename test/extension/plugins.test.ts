/** The plugin contract: what the loader rejects, its messages, and the lifecycle. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Type } from "@sinclair/typebox";
import { defaultConfig, loadConfig } from "../../src/config/index.ts";
import type { Route } from "../../src/contract/resource.ts";
import { createLogger } from "../../src/serve/log.ts";
import { definePlugin, type Contributions, type Plugin } from "../../src/plugin.ts";
import { loadPlugins } from "../../src/runtime/plugins/loader.ts";
import { createRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import { memoryStorage } from "../../src/testing/memory-storage.ts";
import { FEW_POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const quiet = createLogger("silent");

function route(method: Route["method"], path: string): Route {
  return {
    method,
    path,
    tag: "t",
    summary: "s",
    scope: null,
    responses: {},
    errors: [],
    handle: () => ({ status: 200, json: { path } }),
  };
}
const plugin = (name: string, brought: Contributions | (() => Contributions)): Plugin =>
  definePlugin({ name, setup: () => (typeof brought === "function" ? brought() : brought) }) as Plugin;
const storageBy = (name: string): Plugin => definePlugin({ name, storage: () => memoryStorage() });
const store = storageBy("store");

async function runtimeOf(plugins: (Plugin | [Plugin, unknown])[]): Promise<{ runtime: Runtime; folder: string }> {
  const folder = temporaryFolder("assent-plugins-");
  const loaded = plugins.map((item) =>
    Array.isArray(item)
      ? { plugin: item[0], options: item[1], origin: item[0].name }
      : { plugin: item, options: {}, origin: item.name, core: item.core === true },
  );
  try {
    return {
      runtime: await createRuntime(defaultConfig({ data: folder, policies: FEW_POLICIES }), {
        plugins: loaded,
        log: quiet,
      }),
      folder,
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function refusal(plugins: (Plugin | [Plugin, unknown])[]): Promise<string> {
  try {
    const { runtime } = await runtimeOf(plugins);
    await runtime.stop();
    return "it was taken";
  } catch (error) {
    return (error as Error).message;
  }
}

describe("the loader rejects", () => {
  test("clashing names and contributions, and two storages or none", async () => {
    assert.match(await refusal([store, store]), /plugin "store": it is loaded twice/);
    assert.match(
      await refusal([store, storageBy("other")]),
      /plugin "other": it provides a storage, and so does "store"/,
    );
    assert.match(await refusal([plugin("a", {})]), /none of the plugins provides a storage/);
    assert.match(
      await refusal([
        store,
        plugin("a", { routes: [route("GET", "/x/:id")] }),
        plugin("b", { routes: [route("GET", "/x/:name")] }),
      ]),
      /plugin "b": the route GET \/x\/:name is already used by plugin "a"/,
    );
    assert.match(
      await refusal([
        store,
        plugin("a", { pages: [{ path: "/", title: "t", serve: () => new Response("") }] }),
        plugin("b", { pages: [{ path: "/", title: "t", serve: () => new Response("") }] }),
      ]),
      /plugin "b": the page \/ is already used by plugin "a"/,
    );
    const source = { name: "s", load: () => Promise.reject(new Error("unused")) };
    assert.match(
      await refusal([store, plugin("a", { policySources: [source] }), plugin("b", { policySources: [source] })]),
      /the policy source "s" is already used by plugin "a"/,
    );
    assert.equal(
      await refusal([
        store,
        plugin("a", { routes: [route("GET", "/x/:id")] }),
        plugin("b", { routes: [route("POST", "/x/:name")] }),
      ]),
      "it was taken",
    );
  });

  test("a plugin without the one that it needs, and additions to votes and reactions without the privilege or twice", async () => {
    const voteAddition = {} as NonNullable<Plugin["voteAddition"]>;
    const adds = (name: string): Plugin => ({ name, voteAddition });
    const core = (name: string): Plugin => ({ ...adds(name), core: true });
    assert.match(
      await refusal([store, { name: "a", needs: ["b"] }]),
      /plugin "a": it needs the plugin "b", which is not loaded; load it, or remove both/,
    );
    assert.match(await refusal([store, adds("a")]), /plugin "a": it declares an addition to votes; define it with/);
    assert.match(
      await refusal([store, core("a"), core("b")]),
      /plugin "b": it declares an addition to votes, as the plugin "a" does; load one of them/,
    );
    for (const name of ["reactions", "guards"])
      assert.match(
        await refusal([store, { name: "a", [name]: [{}] }]),
        new RegExp(`plugin "a": it declares ${name}, which`),
      );
    assert.equal(await refusal([store, { name: "b" }, { name: "a", needs: ["b"] }]), "it was taken");
  });

  test("fact sources whose name or bounds cannot work", async () => {
    const source = { name: "crm", inputs: [], read: () => Promise.resolve(null) };
    const refused = (more: object): Promise<string> =>
      refusal([store, plugin("a", { factSources: [{ ...source, ...more }] })]);
    assert.match(await refused({ name: "CRM" }), /plugin "a": the name of the fact source "CRM" must match/);
    for (const member of ["timeoutMs", "maxAgeMs", "maxConcurrent"])
      assert.match(await refused({ [member]: NaN }), new RegExp(`${member} of the fact source "crm" must be a number`));
    assert.equal(await refused({ maxConcurrent: 2 }), "it was taken");
  });

  test("invalid options, naming plugin and key", async () => {
    let seen: unknown;
    const optional = definePlugin({
      name: "opt",
      options: Type.Object(
        { webhook_url: Type.String(), retries: Type.Integer({ default: 3, minimum: 0 }) },
        { additionalProperties: false },
      ),
      setup(_, options) {
        seen = options;
        return {};
      },
    }) as unknown as Plugin;
    assert.match(await refusal([store, [optional, {}]]), /plugin "opt": option "webhook_url": this member is required/);
    assert.match(
      await refusal([store, [optional, { webhook_url: "x", retires: 4 }]]),
      /option "retires": "retires" is not recognized; did you mean "retries"/,
    );
    assert.match(
      await refusal([store, [optional, { webhook_url: "x", retries: -1 }]]),
      /option "retries": expected integer to be greater or equal to 0/,
    );
    assert.match(await refusal([[store, { path: "x" }]]), /plugin "store": option "path"/);
    assert.equal(await refusal([store, [optional, { webhook_url: "x" }]]), "it was taken");
    assert.deepEqual(seen, { webhook_url: "x", retries: 3 });
  });

  test("defaults apply to the items of a record, too", async () => {
    let received: unknown;
    const item = Type.Object({ url: Type.String(), seconds: Type.Integer({ default: 300 }) });
    const options = Type.Object({ items: Type.Record(Type.String({ pattern: "^[a-z]+$" }), item, { default: {} }) });
    const reader = definePlugin({ name: "reader", options, setup: (_host, given) => ((received = given), {}) });
    const { folder } = await runtimeOf([store, [reader as Plugin, { items: { first: { url: "x" } } }]]);
    assert.deepEqual(received, { items: { first: { url: "x", seconds: 300 } } });
    rmSync(folder, { recursive: true });
  });

  test("a setup that throws, and a host that is used too early", async () => {
    assert.match(
      await refusal([
        store,
        plugin("bad", () => {
          throw new Error("no config");
        }),
      ]),
      /plugin "bad": setup failed: no config/,
    );
    const early = definePlugin({
      name: "early",
      setup: (host) => ({ routes: [], stop: host.documents.get("a") === null ? async () => {} : async () => {} }),
    }) as Plugin;
    assert.match(await refusal([store, early]), /host\.documents is available after start/);
  });

  test("a module that is not a plugin, and an unknown name", async () => {
    const folder = temporaryFolder("assent-plugins-");
    try {
      writeFileSync(join(folder, "no.mjs"), "export default 1;");
      writeFileSync(join(folder, "broken.mjs"), "syntax error here");
      writeFileSync(join(folder, "yes.mjs"), 'export default { name: "yes", setup: () => ({}) };');
      writeFileSync(
        join(folder, "assent.yaml"),
        "plugins:\n  - storage-sqlite\n  - name: ./yes.mjs\n    options: {}\n",
      );
      const load = (plugins: string[]) => loadPlugins({ ...defaultConfig({ data: folder }), plugins });
      await assert.rejects(load(["storage-sqlit"]), /there is no built-in plugin "storage-sqlit"/);
      await assert.rejects(load([join(folder, "none.mjs")]), /cannot be loaded/);
      await assert.rejects(load([join(folder, "broken.mjs")]), /cannot be loaded/);
      await assert.rejects(load([join(folder, "no.mjs")]), /has no default export; write export default definePlugin/);
      const { config } = loadConfig({ cwd: folder, env: {} });
      const loaded = await loadPlugins(config);
      assert.deepEqual(
        loaded.map(({ plugin: { name } }) => name),
        ["storage-sqlite", "yes"],
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("lifecycle", () => {
  const events: string[] = [];
  const living = (name: string, more: Contributions = {}): Plugin =>
    plugin(name, {
      start: async () => void events.push(`start ${name}`),
      stop: async () => void events.push(`stop ${name}`),
      ...more,
    });

  test("plugins start in order, and stop in reverse order, once", async () => {
    events.length = 0;
    const { runtime, folder } = await runtimeOf([store, living("a"), living("b")]);
    await runtime.start();
    await Promise.all([runtime.stop(), runtime.stop()]);
    await runtime.stop();
    assert.deepEqual(events, ["start a", "start b", "stop b", "stop a"]);
    await assert.rejects(runtime.start(), /starts once/);
    rmSync(folder, { recursive: true });
  });

  test("a failed start stops the started plugins and reports the error; a stop that throws does not prevent other stops", async () => {
    events.length = 0;
    const failing = living("c", { start: () => Promise.reject(new Error("no network")) });
    const careless = living("b", { stop: () => Promise.reject(new Error("oops")) });
    const { runtime, folder } = await runtimeOf([store, living("a"), careless, failing, living("d")]);
    await assert.rejects(runtime.start(), /plugin "c": start failed: no network/);
    assert.deepEqual(events, ["start a", "start b", "stop c", "stop a"]);
    rmSync(folder, { recursive: true });
  });
});

test("without plugins the core returns 404 for everything, and starts and stops", async () => {
  const { runtime, folder } = await runtimeOf([]);
  await runtime.start();
  for (const path of ["/", "/v1/actions", "/healthz"]) {
    const answer = await runtime.fetch(new Request(`http://a${path}`));
    assert.equal(answer.status, 404);
    assert.equal(((await answer.json()) as { code: string }).code, "NOT_FOUND");
  }
  await runtime.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("a literal path takes precedence over a parameter, in any order", async () => {
  const { runtime, folder } = await runtimeOf([
    store,
    plugin("a", { routes: [route("GET", "/x/:id"), route("GET", "/x/special"), route("GET", "/x/:id/deep")] }),
  ]);
  const get = async (path: string) =>
    ((await (await runtime.fetch(new Request(`http://a${path}`))).json()) as { path: string }).path;
  assert.equal(await get("/x/special"), "/x/special");
  assert.equal(await get("/x/other"), "/x/:id");
  assert.equal(await get("/x/special/deep"), "/x/:id/deep");
  rmSync(folder, { recursive: true, force: true });
});

describe("configuration", () => {
  function load(yaml: string | null, env: Record<string, string> = {}) {
    const folder = temporaryFolder("assent-config-");
    try {
      if (yaml !== null) writeFileSync(join(folder, "assent.yaml"), yaml);
      return { ...loadConfig({ cwd: folder, env }), folder };
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  const fault = (yaml: string, env: Record<string, string> = {}): string => {
    try {
      load(yaml, env);
      return "it was taken";
    } catch (error) {
      return (error as Error).message;
    }
  };

  test("without a file the defaults listen on this machine only", () => {
    const { config, origin, folder } = load(null);
    assert.equal(origin, null);
    assert.deepEqual(
      [config.server.host, config.server.port, config.data, config.policies],
      ["127.0.0.1", 8000, join(folder, "data"), join(folder, "policies")],
    );
  });

  test("variables are inserted after parsing, and the environment takes precedence", () => {
    const yaml = 'server:\n  port: ${PORT}\n  host: "${HOST:-0.0.0.0}"\ndata: "$${literal} ${NAME}"\n';
    const { config, folder } = load(yaml, { PORT: "9000", NAME: "a: [b]" });
    assert.deepEqual(
      [config.server.port, config.server.host, config.data],
      [9000, "0.0.0.0", join(folder, "${literal} a: [b]")],
    );
    const won = load(yaml, {
      PORT: "9000",
      NAME: "x",
      ASSENT_PORT: "0",
      ASSENT_HOST: "::1",
      ASSENT_LOG_ORIGIN: "log.example",
    });
    assert.deepEqual(
      [won.config.server.port, won.config.server.host, won.config.ledger.origin],
      [0, "::1", "log.example"],
    );
    // A password of digits stays a string if it is quoted.
    const digits = load('plugins:\n  - name: x\n    options:\n      password: "${P}"\n      port: ${P}\n', {
      P: "12345",
    });
    assert.deepEqual(digits.config.plugins, [{ name: "x", options: { password: "12345", port: 12345 } }]);
  });

  test("faults have a location, or name the variable", () => {
    assert.match(fault("server:\n  port: ${NOPE}\n"), /assent\.yaml:2:9: the environment variable NOPE is not set/);
    assert.match(fault("__proto__: { a: 1 }\n"), /assent\.yaml:1:1: \/__proto__: unknown key/);
    assert.match(fault("constructor: {}\n"), /assent\.yaml:1:1: \/constructor: unknown key/);
    assert.match(fault("actionss: {}\nplugins: [null]\n"), /\/actionss: unknown key/);
    assert.match(fault("actionss: {}\n"), /assent\.yaml:1:1: \/actionss: .*did you mean "actions"/);
    assert.match(fault("polices: ./p\n"), /assent\.yaml:1:1: \/polices: .*did you mean "policies"/);
    assert.match(
      fault("server:\n  port: 70000\n"),
      /assent\.yaml:2:3: \/server\/port: expected integer to be less or equal to 65535/,
    );
    assert.match(fault("server: 1\n"), /assent\.yaml:1:1: \/server: expected object/);
    assert.match(fault("server:\n  port: 1\n  port: 2\n"), /assent\.yaml:3:3: .*unique/);
    assert.match(fault("- a\n"), /expected keys/);
    assert.match(fault("", { ASSENT_PORT: "many" }), /^ASSENT_PORT: \/server\/port: expected integer/);
    assert.match(fault("", { ASSENT_SECRET: "short" }), /^ASSENT_SECRET: \/secret/);
    assert.match(fault("", { ASSENT_ADMIN_KEY: "short" }), /^ASSENT_ADMIN_KEY: .*shorter than 32/);
    assert.match(fault("", { ASSENT_LOG_ORIGIN: "a b" }), /cannot name a log/);
    assert.match(fault("", { DATABASE_URL: "mysql://x" }), /does not begin with postgres:/);
    for (const url of [
      "assent.example.com",
      "localhost:8000",
      "ftp://a.example",
      "https://u@a.example",
      "https://a/#x",
    ])
      assert.match(fault("", { ASSENT_PUBLIC_URL: url }), /^ASSENT_PUBLIC_URL: .*is not an address such as https:/);
    const local = { ASSENT_PORT: "8000", ASSENT_PUBLIC_URL: "http://assent.localhost:8000" };
    for (const host of ["192.168.1.5", "0:0:0:0:0:0:0:1", "127.0.0.2"])
      assert.match(fault("", { ...local, ASSENT_HOST: host }), /^ASSENT_PUBLIC_URL: .*another program could receive/);
    for (const host of ["127.0.0.1", "0.0.0.0", "::"])
      assert.equal(loadConfig({ cwd: tmpdir(), env: { ...local, ASSENT_HOST: host } }).config.server.host, host);
    assert.throws(() => loadConfig({ cwd: tmpdir(), env: {}, file: "/nonexistent.yaml" }), /the file does not exist/);
  });
});
