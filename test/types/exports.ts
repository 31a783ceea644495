/**
 * Code that the compiler must accept or reject with the package's exports. `npm run check` compiles this file and
 * nothing runs it. A line below `@ts-expect-error` that compiles is an error.
 */
import { createRuntime, defaultConfig, type Config, type Runtime } from "assent";
import { createAssent, govern, Pending, type ActionRecord, type Assent } from "assent/client";
import { definePlugin, defineRoute, Type, type Credential, type Plugin } from "assent/plugin";
import type { LedgerTransaction } from "assent/core";
import { createLoggedStorage, type Storage, type StorageLog, type StorageTransaction } from "assent/storage";
import { createSqlStorage, sqliteDialect, type SqlEngine } from "assent/storage-sql";
import { memoryStorage, storageSuite, withFaults } from "assent/testing";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only if the value's type is exactly the given one. */
function is<A>(): <B>(value: B, ...wrong: Same<A, B> extends true ? [] : ["another type"]) => void {
  return () => {};
}
// @ts-expect-error: it tells one type from another
is<string>()(1);

// A plugin: `setup` gets the types of the options from their schema.
export const plugin = definePlugin({
  name: "mine",
  options: Type.Object({ url: Type.String(), retries: Type.Optional(Type.Integer()) }),
  setup(host, options) {
    is<string>()(options.url);
    is<number | undefined>()(options.retries);
    // @ts-expect-error: no such option
    void options.uri;
    // @ts-expect-error: the host is read, not written
    host.log = console;
    return { start: () => Promise.resolve() };
  },
});
export const asPlugin: Plugin = plugin as unknown as Plugin;

definePlugin({
  name: "mine",
  // @ts-expect-error: a plugin brings an object of what is known
  setup: () => ({ route: [] }),
});
// @ts-expect-error: a plugin has a name
definePlugin({ setup: () => ({}) });

// A route: the handler's context has the types of the schemas, and a credential if a scope is required.
defineRoute({
  method: "POST",
  path: "/v1/things/:id/parts/:part",
  summary: "s",
  tag: "t",
  scope: "actions:read",
  query: Type.Object({ limit: Type.Optional(Type.Integer()) }),
  body: Type.Object({ name: Type.String() }),
  responses: { 200: { description: "d" } },
  handle({ params, query, body, credential }) {
    is<string>()(params.id);
    is<string>()(params.part);
    is<number | undefined>()(query.limit);
    is<string>()(body.name);
    is<Credential>()(credential);
    // @ts-expect-error: the path has no such parameter
    void params.name;
    // @ts-expect-error: the body has no such member
    void body.nam;
    return { status: 200, json: {} };
  },
});
defineRoute({
  method: "GET",
  path: "/v1/open",
  summary: "s",
  tag: "t",
  scope: null,
  responses: { 200: { description: "d" } },
  handle({ credential, body }) {
    is<null>()(credential);
    is<undefined>()(body);
    return { status: 200 };
  },
});
defineRoute({
  method: "GET",
  path: "/v1/wrong",
  summary: "s",
  tag: "t",
  // @ts-expect-error: no such scope
  scope: "actions:everything",
  responses: { 200: { description: "d" } },
  handle: () => ({ status: 200 }),
});
defineRoute({
  method: "GET",
  path: "/v1/wrong",
  summary: "s",
  tag: "t",
  scope: null,
  responses: { 200: { description: "d" } },
  // @ts-expect-error: a reply has a status
  handle: () => ({ json: {} }),
});

// A client, and a governed call.
export async function use(client: Assent = createAssent({ url: "http://127.0.0.1:8000" })): Promise<number> {
  const view = await client.submit({ agent_id: "a", tool: "t", operation: "o" }, { wait: 5 });
  is<ActionRecord>()(view);
  is<"allow" | "deny" | "require_approval">()(view.decision);
  // @ts-expect-error: an action has a tool
  await client.submit({ agent_id: "a", operation: "o" });
  // @ts-expect-error: seconds are a number
  await client.submit({ agent_id: "a", tool: "t", operation: "o" }, { wait: "5" });
  for await (const action of client.actions({ status: "denied" })) is<ActionRecord>()(action);
  const refund = govern(async ({ amount }: { amount: number }) => amount * 2, {
    tool: "stripe",
    operation: "refund",
    context: ({ amount }) => ({ large: amount > 100 }),
    assent: client,
  });
  // @ts-expect-error: the arguments are those of the function
  await refund({ amount: "5" });
  const outcome = await refund({ amount: 5 }, { approvalTimeout: 0 });
  // @ts-expect-error: it may wait still
  is<number>()(outcome);
  if (outcome instanceof Pending) return outcome.retryAfter;
  return outcome;
}

// A custom runtime.
export async function run(): Promise<Runtime> {
  const config: Config = defaultConfig({ data: "./data" });
  // @ts-expect-error: ports are numbers
  config.server.port = "8000";
  return createRuntime(config, { plugins: [] });
}

// A storage of each kind.
declare const log: StorageLog;
declare const engine: SqlEngine;
export const levels: Storage[] = [createLoggedStorage(log), createSqlStorage(engine, sqliteDialect)];
// @ts-expect-error: an engine says what its errors mean
createSqlStorage({ ...engine, toStorageError: undefined }, sqliteDialect);

// Rows of keys, agents and policies follow from their entries, so a job cannot write them in another way.
declare const reachable: keyof LedgerTransaction &
  ("insertKey" | "revokeKey" | "insertAgent" | "updateAgent" | "insertPolicy" | "updatePolicy" | "insertPolicyVersion");
is<never>()(reachable);
is<true>()({} as LedgerTransaction extends { recordKey: unknown; touchKey: unknown } ? true : false);

// A storage, and the suite for it.
export const storage: Storage = withFaults(memoryStorage());
storageSuite({
  test: (_name, _run) => {},
  create: async () => ({
    storage,
    reopen: async () => storage,
    another: async () => storage,
    destroy: async () => {},
  }),
});
storageSuite({
  test: () => {},
  // @ts-expect-error: the suite takes the storage away again
  create: async () => ({ storage, reopen: async () => storage, another: async () => storage }),
});
// @ts-expect-error: there is no option that leaves a case out
storageSuite({ test: () => {}, create: () => Promise.reject(new Error()), skip: ["sums"] });
export const lacking = (whole: StorageTransaction): StorageTransaction => {
  const { putMeta: _, ...rest } = whole;
  // @ts-expect-error: a transaction without one of its methods is none
  return rest;
};
