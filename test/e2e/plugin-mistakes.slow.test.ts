/** Each mistake of a plugin author aborts startup with a message, and docs/writing-a-plugin.md lists these messages. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, test } from "node:test";
import { run } from "../../src/cli/main.ts";
import { ROOT } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { person } from "../support/service.ts";

const page = readFileSync(join(ROOT, "docs/writing-a-plugin.md"), "utf8");
const listed = [...page.matchAll(/^\| [^|]+ \| `(.+)` \|$/gm)].map((match) => match[1] as string);

interface Mistake {
  plugin: string;
  /** Options of the plugin in assent.yaml. */
  options?: object;
  config?: object;
  packageJson?: string;
  says: string;
}

/** Returns the source of a plugin with this `setup` function, and all imports that any example needs. */
const plugin = (setup: string, rest = ""): string =>
  `import { definePlugin, Type } from "assent/plugin";\nexport default definePlugin({ name: "mine", ${rest} setup: ${setup} });\n`;
const route = (changes: string): string =>
  `() => ({ routes: [{ method: "GET", path: "/v1/mine", tag: "mine", summary: "Mine", scope: null, responses: {}, errors: [], handle: () => ({ status: 204 }), ${changes} }] })`;
const notifier = `() => ({ notifiers: [{ name: "mine", check: (to) => (to.includes("@") ? null : \`"\${to}" is not an address\`), async deliver() {} }] })`;
const channel = { notifier: "mine", people: [{ owner: person("anna"), to: "anna" }] };
const OPTIONS = "options: Type.Object({ server: Type.String() }),";

const MISTAKES: Record<string, Mistake> = {
  "no default export": {
    plugin: "export const mine = 1;",
    says: 'the plugin "./mine.ts" has no default export; write export default definePlugin({ name, setup })',
  },
  "no name": {
    plugin: "export default { setup: () => ({}) };",
    says: 'the plugin "./mine.ts" has no name; write export default definePlugin({ name: "my-plugin", setup })',
  },
  "no setup": {
    plugin: 'export default { name: "mine" };',
    says: 'the plugin "./mine.ts" has no setup; write export default definePlugin({ name: "mine", setup: (host, options) => ({}) })',
  },
  "a package.json without type": {
    plugin: plugin("() => ({})"),
    packageJson: "{}",
    says: 'the plugin "./mine.ts" cannot be loaded: it is treated as CommonJS; add "type": "module" to the package.json of its folder',
  },
  "an option is missing": {
    plugin: plugin("() => ({})", OPTIONS),
    says: 'plugin "mine": option "server": this member is required',
  },
  "an option is misspelt": {
    plugin: plugin("() => ({})", OPTIONS),
    options: { server: "a", sever: "b" },
    says: 'plugin "mine": option "sever": "sever" is not recognized; did you mean "server"?',
  },
  "options that are no schema": {
    plugin: plugin("() => ({})", 'options: { server: "string" },'),
    says: 'plugin "mine": its options must be made with Type.Object of assent/plugin',
  },
  "setup throws": {
    plugin: plugin('() => { throw new Error("no licence"); }'),
    says: 'plugin "mine": setup failed: no licence',
  },
  "the store in setup": {
    plugin: plugin("(host) => { host.subscribe(() => {}); return {}; }"),
    says: 'plugin "mine": setup failed: host.subscribe is available after start; use it in a handler or in start(), not in setup()',
  },
  "a privilege that was not granted": {
    plugin: plugin("() => ({})", "core: true,"),
    says: 'plugin "mine": it needs the privileged API (assent/core), with which it can change actions, keys, policies and ledger entries. If you trust it, grant the privilege under "plugins" in assent.yaml: { name: ./mine.ts, core: true }',
  },
  "start throws": {
    plugin: plugin('() => ({ async start() { throw new Error("no answer"); } })'),
    says: 'plugin "mine": start failed: no answer',
  },
  "setup returns nothing": {
    plugin: plugin("() => {}"),
    says: 'plugin "mine": setup returned nothing; return an object with what the plugin contributes, {} if nothing',
  },
  "an unknown contribution": {
    plugin: plugin("() => ({ route: [] })"),
    says: 'plugin "mine": setup returned "route", which is not a contribution; did you mean "routes"?',
  },
  "one where a list is expected": {
    plugin: plugin("() => ({ notifiers: {} })"),
    says: 'plugin "mine": "notifiers" must be a list; got an object',
  },
  "a member is missing": {
    plugin: plugin('() => ({ notifiers: [{ name: "mine" }] })'),
    says: 'plugin "mine": notifiers[0] has no "deliver"',
  },
  "a route without a scope": {
    plugin: plugin(route("scope: undefined")),
    says: 'plugin "mine": routes[0] (GET /v1/mine) has no "scope"; set it to the scope that a key needs, or to null if no key is needed',
  },
  "a scope is misspelt": {
    plugin: plugin(route('scope: "action:read"')),
    says: 'plugin "mine": routes[0] (GET /v1/mine) has the scope "action:read", which is not declared; did you mean "actions:read"?',
  },
  "an error is misspelt": {
    plugin: plugin(route('errors: ["NOTFOUND"]')),
    says: 'plugin "mine": routes[0] (GET /v1/mine) lists the error "NOTFOUND", which is not declared; did you mean "NOT_FOUND"?',
  },
  "a scope under another name": {
    plugin: plugin("() => ({})", 'scopes: { read: "our:read" },'),
    says: 'plugin "mine": its scope "our:read" must be "mine:" followed by a name',
  },
  "an error of the core": {
    plugin: plugin(
      "() => ({})",
      'errors: { gone: { code: "POLICY_NOT_FOUND", status: 404, title: "No such policy" } },',
    ).replace('"mine"', '"policy"'),
    says: 'plugin "policy": its error "POLICY_NOT_FOUND" is already used by the core; choose another name',
  },
  "a route that is taken": {
    plugin: plugin(route('path: "/v1/actions/:mine"')),
    says: 'plugin "mine": the route GET /v1/actions/:mine is already used by plugin "actions"',
  },
  "a built-in name": {
    plugin: plugin("() => ({})").replace('"mine"', '"actions"'),
    says: 'plugin "actions": it is loaded twice, the second time as "./mine.ts"; list it once',
  },
  "a `to` that check refuses": {
    plugin: plugin(notifier),
    config: { channels: { oncall: channel } },
    says: 'assent.yaml: /channels/oncall: "anna" is not an address',
  },
  "a notifier that nobody brings": {
    plugin: plugin(notifier),
    config: { channels: { oncall: { ...channel, notifier: "mein" } } },
    says: 'assent.yaml: /channels/oncall: there is no notifier "mein"; did you mean "mine"?',
  },
};

/** Runs `assent serve` with a configuration that makes it fail at startup. */
async function start({
  plugin: source,
  options,
  config = {},
  packageJson,
}: Mistake): Promise<{ code: number; said: string }> {
  const folder = temporaryFolder("assent-mistake-");
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules", "assent"));
  writeFileSync(join(folder, "package.json"), packageJson ?? '{"type":"module"}');
  writeFileSync(join(folder, "mine.ts"), source);
  const file = join(folder, "assent.yaml");
  writeFileSync(
    file,
    JSON.stringify({
      log: { level: "silent" },
      plugins: ["built-in", { name: "./mine.ts", ...(options === undefined ? {} : { options }) }],
      ...config,
    }),
  );
  const args = ["serve", "--port", "0", "--config", file];
  try {
    const { code, said } = packageJson === undefined ? await here(args) : await asProcess(args);
    return { code, said: said.replaceAll(`${folder}/`, "./") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function here(args: string[]): Promise<{ code: number; said: string }> {
  let said = "";
  const code = await run(args, {
    out: (text) => assert.fail(`it came up: ${text}`),
    err: (text) => (said += `${text}\n`),
    fancy: false,
    watched: false,
  });
  return { code, said };
}

/** Runs a command in a child process, because the test runner's module loader misinterprets CommonJS. */
function asProcess(args: string[]): Promise<{ code: number; said: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, "src/cli/assent.mjs"), ...args], (error, _, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : -1, said: stderr });
    });
  });
}

describe("a plugin author's mistakes", () => {
  for (const [name, mistake] of Object.entries(MISTAKES)) {
    it(name, async () => assert.deepEqual(await start(mistake), { code: 1, said: `assent: ${mistake.says}\n` }));
  }
});

test("the page lists the actual error messages", () => {
  const said = new Set(Object.values(MISTAKES).map(({ says }) => says));
  assert.equal(listed.length, 14);
  for (const sentence of listed) assert.ok(said.has(sentence), sentence);
});
