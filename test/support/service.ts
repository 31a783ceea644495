/**
 * Runs a complete service inside the test process: the runtime, the bundled plugins, and a store that the test can
 * choose.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { defaultConfig, type Config } from "../../src/config/index.ts";
import type { Storage } from "../../src/contract/storage.ts";
import { sha256Hex, utf8 } from "../../src/domain/hash.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { newUser, userState, type User } from "../../src/domain/users.ts";
import { createLogger } from "../../src/serve/log.ts";
import { definePlugin, type Plugin } from "../../src/plugin.ts";
import { createRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import { auditStore } from "../../src/testing/ledger-audit.ts";
import { hasFeature, loadFeatures } from "./features.ts";
import { newKey } from "./keys.ts";
import { ROOT } from "./runtimes.ts";
import { until } from "./wait.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** Permit key of services with a configured log key, which processes that share a database have. */
const PERMIT_KEY = newKey();

export const POLICIES = `${ROOT}policies`;
/**
 * The default policies that the actions below need, without their tests. All default policies take 4 times as long to
 * load.
 */
export const FEW_POLICIES = `${ROOT}test/support/few-policies`;

/** Names of the features that the service has, as far as their folders exist. */
const NAMES = [
  "policy-files",
  "actions",
  "policies",
  "api-keys",
  "agents",
  "authority",
  "groups",
  "stop",
  "suggestions",
  "throttle",
  "grants",
  "tasks",
  "claims",
  "plans",
  "flags",
  "reviewers",
  "questions",
  "edits",
  "devices",
  "sub-agents",
  "break-glass",
  "retention",
  "credentials",
  "limits",
  "analytics",
  "events",
  "provenance",
  "evidence",
  "replay",
  "results",
  "well-known",
  "health",
  "metrics",
  "deliveries",
  "coverage",
  "docs",
  "console",
];
const FEATURES = await loadFeatures(NAMES);
/** False if test/architecture/without.mjs has deleted one of them. */
export const hasAllFeatures = FEATURES.length === NAMES.length;

/** Sets the options of a plugin, as its key in `assent.yaml` does. */
export function setSection(config: Config, name: string, value: object): void {
  const section = { value, pointer: `/${name}`, describe: (at: string, message: string) => `${at}: ${message}` };
  config.sections = new Map(config.sections).set(name, section);
}

export interface Answer {
  status: number;
  headers: Headers;
  // The tests read response bodies of every type without casts.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  body: any;
}

export interface Service {
  runtime: Runtime;
  storage: Storage;
  folder: string;
  admin: string;
  agent: string;
  /** Lines of the service's log. */
  logged: string[];
  clock: { now: number };
  call(
    method: string,
    path: string,
    options?: { key?: string | null; body?: unknown; raw?: string; headers?: Record<string, string> },
  ): Promise<Answer>;
  /** Stops the service and starts it again with the same store and secrets. */
  restart(): Promise<void>;
  /** Audits the store, stops the service, and removes the folder. */
  close(): Promise<void>;
}

export interface ServiceOptions {
  /** By default, a service with a configured log key also gets a permit key. True omits that permit key. */
  noPermitKey?: boolean;
  storage?(folder: string): Storage;
  /** A folder of policies instead of `FEW_POLICIES`. The service watches it. */
  policies?: string;
  /** YAML of the only policy, instead of a folder. */
  policy?: string;
  change?(config: Config): void;
  plugins?: { plugin: Plugin; options: unknown; origin: string; core?: boolean }[];
  /** Names of built-in plugins to leave out. */
  without?: readonly string[];
  /** Options of the built-in plugins, by name. */
  pluginOptions?: Record<string, object>;
  /** Number of milliseconds by which the service's clock is ahead at its start. */
  ahead?: number;
  /** Skips the audit in `close`, for tests that damage the store on purpose. */
  broken?: boolean;
}

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const folder = temporaryFolder("assent-test-");
  const only = join(folder, "policies");
  if (options.policy !== undefined) {
    mkdirSync(only);
    writeFileSync(join(only, "policy.yaml"), options.policy);
  }
  const config = defaultConfig({
    data: folder,
    policies: options.policies ?? (options.policy === undefined ? FEW_POLICIES : only),
  });
  // Most tests act for several agents with one key.
  config.agents = "any";
  options.change?.(config);
  if (!hasFeature("deliveries")) config.channels = {};
  if (config.ledger.key !== null && options.noPermitKey !== true) config.permits.key ??= PERMIT_KEY;
  // Other policies do not change, and a watcher would keep the process alive for a second after the last test.
  const pluginOptions: Record<string, object> = {
    "policy-files": { watch: options.policies !== undefined },
    ...options.pluginOptions,
  };
  const storage = options.storage?.(folder) ?? sqliteStorage({ path: join(folder, "assent.db") });
  const logged: string[] = [];
  // Offset that tests add to the real time.
  const clock = { now: options.ahead ?? 0 };
  const keys = { admin: "", agent: "" };

  async function start(): Promise<Runtime> {
    const store = definePlugin({ name: "storage-under-test", storage: () => storage });
    const plain = [store, ...FEATURES.filter(({ name }) => options.without?.includes(name) !== true)];
    const runtime = await createRuntime(config, {
      plugins: [
        ...plain.map((plugin) => ({
          plugin,
          options: pluginOptions[plugin.name] ?? {},
          origin: plugin.name,
          core: plugin.core === true,
        })),
        ...(options.plugins ?? []),
      ],
      log: createLogger(config.log.level === "debug" ? "debug" : "info", (lines) =>
        logged.push(...lines.trimEnd().split("\n")),
      ),
      clock: () => Date.now() + clock.now,
    });
    await runtime.start();
    await runtime.createFirstKeys((first) => Object.assign(keys, first));
    for (const name of listTestPeople(config)) await addPerson({ runtime }, name);
    return runtime;
  }

  const service: Service = {
    runtime: await start(),
    storage,
    folder,
    get admin() {
      return keys.admin;
    },
    get agent() {
      return keys.agent;
    },
    logged,
    clock,
    async call(method, path, { key = keys.agent, body, raw, headers = {} } = {}) {
      const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
      const response = await service.runtime.fetch(
        new Request(`http://assent.test${path}`, {
          method,
          headers: {
            ...(key === null ? {} : { authorization: `Bearer ${key}` }),
            ...(text === undefined ? {} : { "content-type": "application/json" }),
            ...headers,
          },
          ...(text === undefined ? {} : { body: text }),
        }),
      );
      const content = await response.text();
      const json = response.headers.get("content-type")?.includes("json") === true;
      return {
        status: response.status,
        headers: response.headers,
        body: json && content !== "" ? JSON.parse(content) : content,
      };
    },
    async restart() {
      await service.runtime.stop();
      service.runtime = await start();
    },
    async close() {
      const problems =
        options.broken === true
          ? []
          : (await auditStore(storage, service.runtime.host.ledger.vkey, service.runtime.host.vault)).faults;
      await service.runtime.stop();
      rmSync(folder, { recursive: true, force: true });
      if (problems.length > 0) throw new Error(`the audit of the store found faults:\n${problems.join("\n")}`);
    },
  };
  return service;
}

/**
 * Counts votes by the keys' owners only, and lets clients resubmit a rejected request at once. Other tests cover who
 * may vote and how long a rejection holds.
 */
export function plainVotes({ approvals }: Config): void {
  approvals.trust_key_makers = true;
  approvals.rejection_holds_seconds = 0;
}

/** Approves a pending action. @param key the approver's API key; the admin's when absent */
export async function approve(service: Service, id: string, key = service.admin): Promise<void> {
  const { body } = await service.call("GET", `/v1/actions/${id}`, { key });
  const vote = { approve: true, token: body.approval_token };
  const answer = await service.call("POST", `/v1/actions/${id}/approval`, { key, body: vote });
  if (answer.status !== 200) throw new Error(`the approval was rejected: ${JSON.stringify(answer.body)}`);
}

/**
 * Returns the principal of the test person with this name in any case. `startService` records the people to whom its
 * configuration refers as users; `addPerson` records others.
 */
export function person(name: string): string {
  const hex = sha256Hex(utf8(`person ${name.toLowerCase()}`));
  const uuid = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)];
  const principal = `user:${uuid.join("-")}`;
  testPeople.set(principal, name);
  return principal;
}

/** Names of the test people, keyed by principal. */
const testPeople = new Map<string, string>();

/** Returns the names of the test people to whom the configuration refers. */
function listTestPeople({ channels, groups, rota }: Config): string[] {
  const text = JSON.stringify([channels, groups, rota]);
  return [...testPeople].flatMap(([principal, name]) => (text.includes(principal) ? [name] : []));
}

/**
 * Records the test person with this name as a user, unless it exists. Returns the person's principal. The user has no
 * passkey, so it does not count as enrolled, and can be the owner of every key.
 */
export async function addPerson(
  service: Pick<Service, "runtime">,
  name: string,
  about: Partial<User> = {},
): Promise<string> {
  const principal = person(name);
  const id = principal.slice("user:".length);
  await service.runtime.host.ledger.transact((tx) => {
    if (tx.state(userState).has(id)) return Promise.resolve();
    const user = newUser(id, tx.now, { name, roles: ["admin"], groups: [], ...about });
    tx.record({
      type: "user",
      v: 1,
      at: toRfc3339(tx.now),
      change: "created",
      user,
      reason: null,
      confirmed_by: null,
      by: null,
    });
    return Promise.resolve();
  });
  return principal;
}

/** Replaces an owner that is the name of a test person with the person's principal. Records the person. */
export async function withPerson(service: Pick<Service, "runtime">, body: object): Promise<object> {
  const { owner } = body as { owner?: unknown };
  if (typeof owner !== "string" || /[:@#]/.test(owner)) return body;
  return { ...body, owner: await addPerson(service, owner) };
}

/**
 * Creates an API key. An `owner` in the body can be the name of a test person.
 * @param maker the API key that creates it; the admin's when absent
 */
export async function makeKey(
  service: Service,
  body: object,
  maker = service.admin,
): Promise<{ id: string; key: string }> {
  const answer = await service.call("POST", "/v1/api-keys", { key: maker, body: await withPerson(service, body) });
  if (answer.status !== 201) throw new Error(`cannot create a key: ${JSON.stringify(answer.body)}`);
  return answer.body as { id: string; key: string };
}

/**
 * Waits until the newest signature is stored, because that write would otherwise consume a fault that a test plans for
 * a batch.
 */
export async function waitForSignature(service: Service): Promise<void> {
  await until("the newest signature is stored", async () => {
    const [head, checkpoint] = await Promise.all([service.storage.head(), service.storage.checkpoint()]);
    return checkpoint?.size === head.size;
  });
}

/** An action for which the default policies require one approval. */
export const ASKED = {
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount: 500, currency: "USD" },
};
/** An action for which the default policies require two approvals. */
export const ASKED_TWO = {
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount: 5000, currency: "USD" },
};
export const ALLOWED = {
  agent_id: "support-bot",
  tool: "stripe",
  operation: "refund",
  params: { amount: 50, currency: "USD" },
};
export const DENIED = { agent_id: "support-bot", tool: "crm", operation: "delete_customer", params: { id: 7 } };
