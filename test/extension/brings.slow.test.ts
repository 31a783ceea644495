/** What a plugin contributes under its own name: scopes, errors, ledger entries, documents, a command. */
import assert from "node:assert/strict";
import { after, before, describe, it, test } from "node:test";
import { Type } from "@sinclair/typebox";
import notes from "../../docs/examples/resource-notes/index.ts";
import { defineErrors, Refusal, type ErrorKind } from "../../src/contract/errors.ts";
import { defineRoute } from "../../src/contract/resource.ts";
import type { Host } from "../../src/contract/host.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { defineScopes } from "../../src/domain/scopes.ts";
import { collectDeclarations } from "../../src/runtime/plugins/declarations.ts";
import { serve } from "../../src/serve/index.ts";
import { definePlugin, type Plugin } from "../../src/plugin.ts";
import { needs } from "../support/features.ts";
import { assentInProcess, folderWith, writeFiles } from "../support/cli.ts";
import { createResponseValidator } from "../support/openapi.ts";
import { ALLOWED, startService, type Service, person, makeKey } from "../support/service.ts";

const given = (plugin: unknown): { plugin: Plugin; options: unknown; origin: string } => ({
  plugin: plugin as Plugin,
  options: {},
  origin: (plugin as Plugin).name,
});

describe("the notes plugin of the guide", () => {
  let service: Service;
  let writer = "";
  let reader = "";
  let stranger = "";
  let action = "";
  const keyOf = async (body: object): Promise<string> => (await makeKey(service, body)).key;
  before(async () => {
    service = await startService({ plugins: [given(notes)] });
    writer = await keyOf({ name: "writer", owner: "anna", scopes: ["notes:read", "notes:write", "actions:read"] });
    reader = await keyOf({ name: "reader", scopes: ["notes:read", "actions:read"] });
    stranger = await keyOf({ name: "stranger", scopes: ["notes:read", "notes:write"], agent_id: "other" });
    action = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body.id as string;
  });
  after(() => service.close());

  const note = (key: string, text = "looks right") =>
    service.call("POST", `/v1/actions/${action}/notes`, { key, body: { text } });
  const list = async (key: string) => service.call("GET", `/v1/actions/${action}/notes`, { key });

  it("notes need their scopes, and are as visible as their action", async () => {
    const made = await note(writer);
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.equal(made.body.by, person("anna"));
    assert.deepEqual((await list(reader)).body.notes, [made.body]);
    const refused = await note(reader);
    assert.deepEqual([refused.status, refused.body.code], [403, "INSUFFICIENT_SCOPE"]);
    assert.deepEqual((await list(service.agent)).status, 403);
    assert.equal((await note(stranger)).body.code, "ACTION_NOT_FOUND");
    assert.equal((await list(stranger)).body.code, "ACTION_NOT_FOUND");
    assert.equal((await service.call("GET", "/v1/me", { key: reader })).body.scopes.includes("notes:read"), true);
    const unknown = await service.call("POST", "/v1/api-keys", {
      key: service.admin,
      body: { name: "typo", scopes: ["notes:raed"] },
    });
    assert.equal(unknown.status, 422);
  });

  it(
    "notes are ledger entries of the plugin's own type, which event filters accept",
    needs("events", "provenance"),
    async () => {
      const { events } = (await service.call("GET", `/v1/actions/${action}/events`, { key: reader })).body;
      assert.deepEqual(
        events.map(({ type }: { type: string }) => type),
        ["decision", "notes:change"],
      );
      const { entry } = events[1];
      assert.deepEqual([entry.data.change, entry.by.owner, entry.action_id], ["added", person("anna"), action]);
      const page = await service.call("GET", "/v1/events/page?after=-1&type=notes:change", {
        key: service.admin,
      });
      assert.deepEqual(
        page.body.events.map(({ seq }: { seq: number }) => seq),
        [events[1].seq],
      );
      const proof = await service.call("GET", `/v1/provenance/${events[1].hash}/proof`, { key: service.admin });
      assert.equal(proof.status, 200);
    },
  );

  it(
    "notes survive a restart, and their author removes them; the entry records the change, not the text",
    needs("docs"),
    async () => {
      await service.restart();
      const [kept] = (await list(reader)).body.notes;
      const path = `/v1/actions/${action}/notes/${kept.id}`;
      const other = await service.call("DELETE", path, { key: service.admin });
      assert.deepEqual([other.status, other.body.code, other.body.title], [404, "NOTES_NOT_FOUND", "No such note"]);
      assert.equal(other.body.type, "/docs/errors#notes-not-found");
      assert.equal((await service.call("DELETE", path, { key: writer })).status, 200);
      assert.deepEqual((await list(reader)).body.notes, []);
      assert.equal((await service.call("DELETE", path, { key: writer })).body.code, "NOTES_NOT_FOUND");
      const { events } = (await service.call("GET", `/v1/actions/${action}/events`, { key: reader })).body;
      assert.equal(events.at(-1).entry.data.change, "removed");
      assert.ok(!JSON.stringify(events).includes("looks right"));
    },
  );

  it("a note above the limit is rejected, and nothing is written", async () => {
    for (let i = 0; i < 50; i++) assert.equal((await note(writer, `note ${i}`)).status, 201);
    const { size } = await service.runtime.host.ledger.head();
    const full = await note(writer);
    assert.deepEqual([full.status, full.body.code], [409, "NOTES_FULL"]);
    assert.equal((await service.runtime.host.ledger.head()).size, size);
    assert.equal((await list(reader)).body.notes.length, 50);
  });

  it("notes are in the OpenAPI document with their errors, and on the page of errors", needs("docs"), async () => {
    const document = (await service.call("GET", "/openapi.json", { key: null })).body;
    const judge = createResponseValidator(document);
    const operation = judge.operations.find(
      ({ method, path }) => method === "POST" && path === "/v1/actions/{id}/notes",
    );
    assert.ok(operation !== undefined);
    assert.match(JSON.stringify(operation.spec.responses), /NOTES_FULL/);
    const full = await note(writer);
    assert.deepEqual(
      judge.faults(operation, { status: full.status, headers: full.headers, text: JSON.stringify(full.body) }),
      [],
    );
    assert.match((await service.call("GET", "/docs/errors", { key: null })).body, /id="notes-full"/);
  });
});

test("a plugin sees only its own documents, and a lost compare-and-set changes nothing", async () => {
  const hosts = new Map<string, Host>();
  const keeping = (name: string) =>
    given(definePlugin({ name, setup: (host) => (hosts.set(name, host), {}) }) as unknown as Plugin);
  const service = await startService({ plugins: [keeping("a"), keeping("b")] });
  try {
    const [a, b] = [hosts.get("a") as Host, hosts.get("b") as Host];
    const first = await a.transact(null, (tx) => tx.documents.put("k", { n: 1 }, null));
    assert.ok(first !== null);
    assert.deepEqual(await a.documents.get("k"), { key: "k", value: { n: 1 }, version: first });
    assert.equal(await b.documents.get("k"), null);
    assert.deepEqual(await b.documents.list(), []);
    for (const version of [null, first + 1])
      assert.equal(await a.transact(null, (tx) => tx.documents.put("k", { n: 2 }, version)), null);
    assert.equal(await b.transact(null, (tx) => tx.documents.delete("k", first)), false);
    assert.deepEqual((await a.documents.get("k"))?.value, { n: 1 });
    // Atomic with the job.
    await assert.rejects(
      a.transact(null, async (tx) => {
        await tx.documents.put("lost", true, null);
        throw new Refusal("BAD_REQUEST", "no");
      }),
    );
    assert.equal(await a.documents.get("lost"), null);
    for (const [key, value] of [
      ["", 1],
      ["k".repeat(257), 1],
      ["large", "x".repeat(256 * 1024)],
    ] as const)
      await assert.rejects(
        a.transact(null, (tx) => tx.documents.put(key, value, null)),
        RangeError,
      );
    const early = definePlugin({ name: "early", setup: (host) => (void host.documents.get("k"), {}) });
    await assert.rejects(startService({ plugins: [given(early)] }), /host\.documents is available after start/);
  } finally {
    await service.close();
  }
});

describe("plugins cannot", () => {
  const secret: ErrorKind = { code: "MINE_SECRET", status: 418, title: "Not declared" };
  const mine = definePlugin({
    name: "mine",
    entries: { "mine:thing": Type.Object({ n: Type.Integer() }, { additionalProperties: false }) },
    setup: (host) => ({
      routes: [
        defineRoute({
          method: "POST",
          path: "/v1/mine",
          tag: "mine",
          summary: "Records",
          scope: "admin",
          body: Type.Object({
            type: Type.String(),
            data: Type.Record(Type.String(), Type.Unknown()),
            action_id: Type.Optional(Type.String()),
          }),
          responses: { 200: { description: "Where." } },
          handle: async ({ body, credential }) => ({
            status: 200,
            json: await host.transact(credential, async (tx) =>
              tx.record({
                type: body.type as `mine:${string}`,
                data: body.data as JsonObject,
                ...(body.action_id === undefined ? {} : { action: { id: body.action_id } }),
              }),
            ),
          }),
        }),
        defineRoute({
          method: "GET",
          path: "/v1/mine",
          tag: "mine",
          summary: "Refuses",
          scope: "admin",
          responses: {},
          handle: () => {
            throw new Refusal(secret, "a word that nobody knows");
          },
        }),
      ],
    }),
  });

  it("record entries that do not match their declaration, or of an undeclared type; other jobs of the batch succeed", async () => {
    const service = await startService({ plugins: [given(mine)] });
    try {
      const record = (type: string, data: object) =>
        service.call("POST", "/v1/mine", { key: service.admin, body: { type, data } });
      const [good, form, type, other] = await Promise.all([
        record("mine:thing", { n: 1 }),
        record("mine:thing", { n: "1" }),
        record("mine:other", {}),
        service.call("POST", "/v1/actions", { body: ALLOWED }),
      ]);
      assert.deepEqual([good.status, form.status, type.status, other.status], [200, 500, 500, 200]);
      assert.match(service.logged.join("\n"), /"mine:thing\\?" cannot be recorded: data\/n: /);
      const alone = await service.call("POST", "/v1/mine", {
        key: service.admin,
        body: { type: "mine:thing", data: { n: 2 }, action_id: other.body.id },
      });
      assert.equal(alone.status, 500);
      assert.match(service.logged.join("\n"), /read the action [0-9a-f-]+ with tx\.action before you record/);
      assert.equal((await record("decision", {})).status, 500);
      assert.match(service.logged.join("\n"), /cannot record an entry of type \\?"decision/);
      assert.match(service.logged.join("\n"), /no plugin declares the entry type \\?"mine:other/);
    } finally {
      await service.close();
    }
  });

  it("refuse with an error that they did not declare", async () => {
    const service = await startService({ plugins: [given(mine)] });
    try {
      const answer = await service.call("GET", "/v1/mine", { key: service.admin });
      assert.deepEqual([answer.status, answer.body.code], [500, "INTERNAL"]);
      assert.ok(!JSON.stringify(answer.body).includes("nobody knows"));
    } finally {
      await service.close();
    }
  });

  const refusal = (...plugins: Partial<Plugin>[]): string => {
    try {
      collectDeclarations(plugins.map((plugin) => given({ setup: () => ({}), ...plugin })));
      return "it was taken";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const scope = (text: string) => ({ one: text }) as unknown as NonNullable<Plugin["scopes"]>;

  for (const [what, plugins, says] of [
    [
      "a scope under another name",
      [{ name: "notes", scopes: scope("note:read") }],
      'plugin "notes": its scope "note:read" must be "notes:" followed by a name',
    ],
    [
      "a scope of the core",
      [{ name: "agents", scopes: defineScopes("agents", ["read"]) }],
      'plugin "agents": its scope "agents:read" is already used by the core; choose another name',
    ],
    [
      "a scope twice",
      [
        {
          name: "notes",
          scopes: { a: scope("notes:x")["one"], b: scope("notes:x")["one"] } as Plugin["scopes"] & object,
        },
      ],
      'plugin "notes": its scope "notes:x" is declared twice; declare it once',
    ],
    [
      "a scope with a space",
      [{ name: "notes", scopes: scope("notes:read all") }],
      'plugin "notes": its scope "notes:read all" must be at most 64 letters, digits, "_", "-", "." and ":"',
    ],
    [
      "an error without its prefix",
      [{ name: "my-notes", errors: { X: { code: "NOTES_X", status: 404, title: "t" } } }],
      'plugin "my-notes": its error "NOTES_X" must be "MY_NOTES_" followed by a name',
    ],
    [
      "an error of the core",
      [{ name: "policy", errors: defineErrors("policy", { NOT_FOUND: [404, "No such policy"] }) }],
      'plugin "policy": its error "POLICY_NOT_FOUND" is already used by the core; choose another name',
    ],
    [
      "an error that is none",
      [{ name: "notes", errors: defineErrors("notes", { FINE: [200, "All is well"] }) }],
      'plugin "notes": its error "NOTES_FINE" has the status 200; one from 400 to 599 is expected',
    ],
    [
      "an error of one prefix",
      [
        { name: "a-b", errors: defineErrors("a-b", { X: [404, "t"] }) },
        { name: "a.b", errors: defineErrors("a.b", { X: [404, "t"] }) },
      ],
      'plugin "a.b": its error "A_B_X" is already used by plugin "a-b"',
    ],
    [
      "an entry type of the core",
      [{ name: "notes", entries: { decision: Type.Object({}) } as unknown as NonNullable<Plugin["entries"]> }],
      'plugin "notes": its entry type "decision" must be "notes:" followed by a name',
    ],
    [
      "an entry without a form",
      [{ name: "notes", entries: { "notes:x": {} } as unknown as NonNullable<Plugin["entries"]> }],
      'plugin "notes": the schema of its entry type "notes:x" must be made with Type.Object of assent/plugin',
    ],
    [
      "a built-in command",
      [{ name: "policy", command: { summary: "s", help: "h", run: async () => 0 } }],
      'plugin "policy": its command would be "assent policy", which is a built-in command; choose another name for the plugin',
    ],
    [
      "a command that does nothing",
      [{ name: "notes", command: { summary: "s", help: "h" } as unknown as NonNullable<Plugin["command"]> }],
      'plugin "notes": its command has no "run"',
    ],
  ] as [string, Partial<Plugin>[], string][])
    it(`contribute ${what}`, () => assert.equal(refusal(...plugins), says));

  it("name a scope or an error in a route that no one contributes", async () => {
    const routed = (change: object) =>
      startService({
        plugins: [
          given({
            name: "routed",
            setup: () => ({
              routes: [
                {
                  method: "GET",
                  path: "/v1/r",
                  tag: "r",
                  summary: "r",
                  scope: null,
                  responses: {},
                  handle() {},
                  ...change,
                },
              ],
            }),
          }),
        ],
      });
    await assert.rejects(routed({ scope: "routed:read" }), /has the scope "routed:read", which is not declared/);
    await assert.rejects(routed({ errors: [secret] }), /lists the error "MINE_SECRET", which is not declared/);
    await assert.rejects(routed({ errors: ["NOTES_FULL"] }), /lists the error "NOTES_FULL", which is not declared/);
  });
});

test("a plugin's command is listed, has help, and calls the service", async (t) => {
  const service = await startService({ plugins: [given(notes)] });
  const listening = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  t.after(async () => {
    await listening.stop();
    await service.close();
  });
  const action = (await service.call("POST", "/v1/actions", { body: ALLOWED })).body.id as string;
  await service.call("POST", `/v1/actions/${action}/notes`, { key: service.admin, body: { text: "red\u001b[31m" } });
  // As an operator's file, which is not compiled.
  const folder = folderWith(t, {
    "notes.mjs": `export default {
      name: "notes",
      command: {
        summary: "print the notes on an action",
        help: "usage: assent notes ACTION",
        async run([action], { out, err, call }) {
          if (action === undefined) return (err("usage: assent notes ACTION"), 2);
          for (const { by, text } of (await call("GET", "/v1/actions/" + action + "/notes")).notes) out(by + ": " + text);
          return 0;
        },
      },
      setup: () => ({}),
    };`,
  });
  writeFiles(folder, { "assent.yaml": `plugins:\n  - built-in\n  - ${JSON.stringify(`${folder}/notes.mjs`)}\n` });
  const settings = {
    ASSENT_CONFIG: `${folder}/assent.yaml`,
    ASSENT_URL: listening.url,
    ASSENT_API_KEY: service.admin,
  };
  const before = Object.keys(settings).map((name) => [name, process.env[name]] as const);
  t.after(() => {
    // One after another: replacing `process.env` does not change the environment on Deno, whose test files share it.
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  Object.assign(process.env, settings);
  assert.match((await assentInProcess("help")).out, /^ {2}notes +print the notes on an action$/m);
  assert.match((await assentInProcess("notes", "--help")).out, /^usage: assent notes ACTION$/m);
  const printed = await assentInProcess("notes", action);
  assert.match(printed.out, /^key:[0-9a-f-]+: red\ufffd\[31m\n$/);
  assert.equal(printed.code, 0);
  assert.equal((await assentInProcess("notes")).code, 2);
  const gone = await assentInProcess("notes", "019346a0-0000-7000-8000-000000000000");
  assert.deepEqual([gone.code, /ACTION_NOT_FOUND/.test(gone.err)], [1, true]);
  assert.match((await assentInProcess("note", action)).err, /there is no command "note"; did you mean "notes"\?/);
  Object.assign(process.env, { ASSENT_CONFIG: `${folder}/none.yaml` });
  assert.match((await assentInProcess("notes", action)).err, /plugins could not be loaded: .*the file does not exist/);
  assert.equal((await assentInProcess("help")).code, 0);
});
