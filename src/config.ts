import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { LineCounter, isScalar, parseDocument, visit, type Document } from "yaml";
import { isNoteName } from "./domain/checkpoint.ts";
import { explainFault, siblingsAt } from "./domain/validation.ts";

const Rate = Type.Object(
  {
    requests: Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: "Requests in one window." }),
    seconds: Type.Integer({ minimum: 1, maximum: 86_400, description: "Length of a window." }),
  },
  { additionalProperties: false },
);

const To = Type.String({ minLength: 1, maxLength: 500, description: "What the notifier needs to reach them: an address, a channel, a destination's name." });
const NotifierName = Type.Optional(Type.String({ minLength: 1, description: "Notifier plugin, such as notify-email; the channel's when absent." }));

const Channel = Type.Object(
  {
    notifier: NotifierName,
    people: Type.Optional(
      Type.Array(
        Type.Object(
          { owner: Type.String({ minLength: 1, maxLength: 200, description: "Who decides with the link that is sent; the same name as the `owner` of their API keys." }), to: To, notifier: NotifierName },
          { additionalProperties: false },
        ),
        { maxItems: 100, description: "Each gets a link of their own." },
      ),
    ),
    places: Type.Optional(
      Type.Array(Type.Object({ to: To, notifier: NotifierName }, { additionalProperties: false }), { maxItems: 100, description: "Seen by several people: told, with a link that needs a key." }),
    ),
    remind_before: Type.Optional(Type.String({ description: "Reminds those who have not decided, so long before the approval expires." })),
    escalate: Type.Optional(
      Type.Object({ to: Type.String({ description: "Channel." }), after: Type.String({ description: "How long after the request." }) }, { additionalProperties: false, description: "Asks another channel too when nobody has decided." }),
    ),
  },
  { additionalProperties: false },
);

/** `assent.yaml`. Every key is optional; the defaults serve one machine from the working folder. */
export const ConfigSchema = Type.Object(
  {
    server: Type.Object(
      {
        host: Type.String({ default: "127.0.0.1", description: "Address to listen on. ASSENT_HOST wins." }),
        port: Type.Integer({ default: 8000, minimum: 0, maximum: 65535, description: "Port; 0 picks a free one and prints it. ASSENT_PORT wins." }),
        public_url: Type.Union([Type.String(), Type.Null()], { default: null, description: "How people reach the service, for links. ASSENT_PUBLIC_URL wins." }),
        max_body_bytes: Type.Integer({ default: 1_048_576, minimum: 1024, maximum: 67_108_864, description: "Largest request body, in bytes." }),
        max_wait_seconds: Type.Integer({ default: 60, minimum: 0, maximum: 3600, description: "Longest wait that `Prefer: wait` and `?wait` are granted." }),
        trusted_proxies: Type.Integer({ default: 0, minimum: 0, maximum: 10, description: "How many proxies stand in front and add to X-Forwarded-For; the client's address is taken that many places from its end. 0 ignores the header." }),
        cors_origins: Type.Array(Type.String({ minLength: 1 }), { default: [], description: "Origins whose pages may call the API, such as https://console.example; `*` for every one. Empty: no CORS." }),
      },
      { default: {}, additionalProperties: false, description: "The HTTP server." },
    ),
    data: Type.String({ default: "./data", description: "Folder of the embedded store and of generated keys. ASSENT_DATA wins." }),
    policies: Type.String({ default: "./policies", description: "Folder that the policy-files plugin loads. ASSENT_POLICIES wins." }),
    database_url: Type.Union([Type.String(), Type.Null()], { default: null, description: "Postgres instead of the embedded store. DATABASE_URL wins." }),
    secret: Type.Union([Type.String({ minLength: 32 }), Type.Null()], { default: null, description: "Secret that approval tokens are derived from, at least 32 characters; generated into the data folder when absent. ASSENT_SECRET wins." }),
    admin_key: Type.Union([Type.String(), Type.Null()], { default: null, description: "Seeds the first admin key of an empty store. ASSENT_ADMIN_KEY wins." }),
    log: Type.Object(
      {
        level: Type.Union([Type.Literal("debug"), Type.Literal("info"), Type.Literal("warn"), Type.Literal("error"), Type.Literal("silent")], { default: "info", description: "Least severe message that is written." }),
      },
      { default: {}, additionalProperties: false, description: "The service's own log, one JSON object a line on standard error." },
    ),
    ledger: Type.Object(
      {
        origin: Type.Union([Type.String({ minLength: 1, maxLength: 255 }), Type.Null()], { default: null, description: "Name of the log in checkpoints. Kept with the store after the first start. ASSENT_LOG_ORIGIN wins." }),
        key: Type.Union([Type.String(), Type.Null()], { default: null, description: "Ed25519 private key that signs checkpoints and permits: PKCS#8 PEM or a file's path; generated into the data folder when absent. ASSENT_LOG_KEY wins." }),
        checkpoint_file: Type.Union([Type.String({ minLength: 1 }), Type.Null()], { default: null, description: "Where the newest signed checkpoint is kept beside the store, so that an older copy of the store is noticed at start; `checkpoint` in the data folder when absent. Another disk is better." }),
        max_batch: Type.Integer({ default: 256, minimum: 1, maximum: 4096, description: "Most jobs in one transaction." }),
        verify_at_start: Type.Integer({ default: 65_536, minimum: 0, description: "How many of the newest entries are hashed again at start, besides the tree's right edge." }),
      },
      { default: {}, additionalProperties: false, description: "The ledger." },
    ),
    approvals: Type.Object(
      {
        allow_self_approval: Type.Boolean({ default: false, description: "Lets the submitter approve its own action, for working alone. Each such approval is recorded as a self-approval." }),
      },
      { default: {}, additionalProperties: false, description: "Approvals." },
    ),
    channels: Type.Record(Type.String(), Channel, { default: {}, description: "Who is told when a policy's `approval.notify` names the channel." }),
    deliveries: Type.Object(
      {
        timeout_seconds: Type.Integer({ default: 30, minimum: 1, maximum: 600, description: "Longest attempt of a notifier." }),
        keep_days: Type.Integer({ default: 30, minimum: 4, maximum: 3650, description: "How long deliveries that are over are listed." }),
      },
      { default: {}, additionalProperties: false, description: "Messages to people and to other programs." },
    ),
    permits: Type.Object(
      {
        valid_seconds: Type.Integer({ default: 300, minimum: 1, maximum: 86_400, description: "How long a permit may be used after the action was allowed or approved." }),
      },
      { default: {}, additionalProperties: false, description: "Permits." },
    ),
    require_registered_agents: Type.Boolean({ default: false, description: "Denies the actions of agents that are not registered." }),
    rate_limits: Type.Object(
      {
        per_key: Type.Union([Rate, Type.Null()], { default: null, description: "Requests of one API key." }),
        per_address: Type.Union([Rate, Type.Null()], { default: null, description: "Calls without a valid key from one address (an IPv6 /64 counts as one)." }),
        bad_keys_per_minute: Type.Integer({ default: 20, minimum: 0, maximum: 100_000, description: "Wrong keys from one address in a minute before they get 429 with a growing Retry-After; a right key from there still passes. 0: no limit." }),
      },
      { default: {}, additionalProperties: false, description: "Limits; each process counts for itself." },
    ),
    plugins: Type.Union(
      [
        Type.Null(),
        Type.Array(
          Type.Union([
            Type.String(),
            Type.Object({ name: Type.String(), options: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }, { additionalProperties: false }),
          ]),
        ),
      ],
      { default: null, description: "Built-in names or module paths (starting with `./`, `../` or `/`), in order. Absent: all built-in ones." },
    ),
  },
  { additionalProperties: false, $id: "assent-config", description: "Configuration of Assent." },
);

/** The typed configuration: file, then environment, then defaults. Paths are absolute. */
export type Config = Static<typeof ConfigSchema>;

/** One fault, with its place where there is one. `line` and `column` are 1-based. */
export interface ConfigFault {
  origin: string;
  line: number | null;
  column: number | null;
  message: string;
}

export class ConfigError extends Error {
  readonly faults: ConfigFault[];
  constructor(faults: ConfigFault[]) {
    super(faults.map((f) => [f.origin, f.line, f.column].filter((part) => part !== null).join(":") + `: ${f.message}`).join("\n"));
    this.name = "ConfigError";
    this.faults = faults;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Environment variables that win over the file (design, section 8), and where they go. */
export const ENVIRONMENT: readonly { name: string; path: readonly string[] }[] = [
  { name: "ASSENT_HOST", path: ["server", "host"] },
  { name: "ASSENT_PORT", path: ["server", "port"] },
  { name: "ASSENT_PUBLIC_URL", path: ["server", "public_url"] },
  { name: "ASSENT_DATA", path: ["data"] },
  { name: "ASSENT_POLICIES", path: ["policies"] },
  { name: "DATABASE_URL", path: ["database_url"] },
  { name: "ASSENT_SECRET", path: ["secret"] },
  { name: "ASSENT_ADMIN_KEY", path: ["admin_key"] },
  { name: "ASSENT_LOG_KEY", path: ["ledger", "key"] },
  { name: "ASSENT_LOG_ORIGIN", path: ["ledger", "origin"] },
];

/**
 * File, then environment, then defaults. Without `file` and `ASSENT_CONFIG`, `assent.yaml` in `cwd`
 * is read if it is there. Throws ConfigError with every fault.
 */
export function loadConfig({ cwd, env, file }: { cwd: string; env: Environment; file?: string }): { config: Config; origin: string | null } {
  const named = file ?? (env["ASSENT_CONFIG"] || undefined);
  const path = resolve(cwd, named ?? "assent.yaml");
  const text = readText(path, named !== undefined);
  const base = text === null ? cwd : dirname(path);
  const origin = text === null ? null : path;
  const lines = new LineCounter();
  const document = parseDocument(text ?? "", { lineCounter: lines, uniqueKeys: true, version: "1.2" });
  const faults: ConfigFault[] = document.errors.map((error) => ({ origin: path, line: error.linePos?.[0].line ?? null, column: error.linePos?.[0].col ?? null, message: error.message.split(" at line ")[0] as string }));
  if (faults.length > 0) throw new ConfigError(faults);
  expand(document, env, (offset, message) => faults.push({ origin: path, ...place(lines, offset), message }));
  const given: unknown = document.toJS({ maxAliasCount: 20 }) ?? {};
  if (typeof given !== "object" || Array.isArray(given)) throw new ConfigError([{ origin: path, line: 1, column: 1, message: "expected keys such as `server:` at the top" }]);
  const fromEnvironment = overlay(given as Record<string, unknown>, env);
  const config = Value.Default(ConfigSchema, given);
  for (const fault of Value.Errors(ConfigSchema, config)) {
    const variable = fromEnvironment.get(fault.path);
    const known = faults.some((f) => f.message.startsWith(`${fault.path}: `));
    if (known) continue;
    const at = variable === undefined ? { origin: path, ...place(lines, offsetOf(document, fault.path)) } : { origin: variable, line: null, column: null };
    faults.push({ ...at, message: `${fault.path}: ${explainFault(fault, siblingsAt(ConfigSchema as TSchema, fault.path))}` });
  }
  if (faults.length > 0) throw new ConfigError(faults);
  const made = config as Config;
  if (made.ledger.origin !== null && !isNoteName(made.ledger.origin)) {
    throw new ConfigError([{ origin: path, line: null, column: null, message: `/ledger/origin: "${made.ledger.origin}" cannot name a log: it must have no spaces and no "+"` }]);
  }
  if (made.database_url !== null && !/^postgres(ql)?:\/\//.test(made.database_url)) {
    throw new ConfigError([{ origin: fromEnvironment.get("/database_url") ?? path, line: null, column: null, message: "/database_url: it does not begin with postgres://; write postgres://user:password@host:port/database" }]);
  }
  if (made.admin_key !== null && made.admin_key.length < 32) {
    throw new ConfigError([{ origin: fromEnvironment.get("/admin_key") ?? path, line: null, column: null, message: "/admin_key: it is shorter than 32 characters; make one with `openssl rand -hex 32`" }]);
  }
  return { config: { ...made, data: resolve(env["ASSENT_DATA"] ? cwd : base, made.data), policies: resolve(env["ASSENT_POLICIES"] ? cwd : base, made.policies), plugins: absolutePlugins(made.plugins, base) }, origin };
}

/** The defaults alone: what serves with no file and an empty environment. */
export function defaultConfig(changes: { data: string; policies?: string }): Config {
  const config = Value.Default(ConfigSchema, { data: changes.data, ...(changes.policies === undefined ? {} : { policies: changes.policies }) });
  return config as Config;
}

function readText(path: string, required: boolean): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (missing && !required) return null;
    throw new ConfigError([{ origin: path, line: null, column: null, message: missing ? "there is no such file; check --config and ASSENT_CONFIG" : `it cannot be read: ${(error as Error).message}` }]);
  }
}

/** `${NAME}`, `${NAME:-default}` in scalar values; `$${` stands for `${`. After parsing, so that a value cannot become YAML. */
function expand(document: Document, env: Environment, fault: (offset: number, message: string) => void): void {
  visit(document, {
    Scalar(key, node) {
      if (key === "key" || typeof node.value !== "string" || !node.value.includes("${")) return;
      const text = node.value;
      const expanded = text.replaceAll(/\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g, (whole, name: string, fallback: string | undefined) => {
        if (whole.startsWith("$$")) return whole.slice(1);
        const value = env[name];
        if (value !== undefined && value !== "") return value;
        if (fallback !== undefined) return fallback;
        fault(node.range?.[0] ?? 0, `the environment variable ${name} is not set; set it, or write \${${name}:-default}`);
        return "";
      });
      // A value that is one variable alone may be a number or a boolean, as if it had been written there; in quotes it is text.
      node.value = isScalar(node) && node.type === "PLAIN" && /^\$\{[^}]*\}$/.test(text) ? plain(expanded) : expanded;
    },
  });
}

function plain(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/** Writes what the environment sets over the file. Answers which variable set which pointer. */
function overlay(given: Record<string, unknown>, env: Environment): Map<string, string> {
  const set = new Map<string, string>();
  for (const { name, path } of ENVIRONMENT) {
    const value = env[name];
    if (value === undefined || value === "") continue;
    let target = given;
    for (const key of path.slice(0, -1)) {
      if (typeof target[key] !== "object" || target[key] === null) target[key] = {};
      target = target[key] as Record<string, unknown>;
    }
    target[path.at(-1) as string] = name === "ASSENT_PORT" ? plain(value) : value;
    set.set(`/${path.join("/")}`, name);
  }
  return set;
}

function place(lines: LineCounter, offset: number | null): { line: number | null; column: number | null } {
  if (offset === null) return { line: null, column: null };
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

/** Where the node behind a pointer stands, or the nearest one above it. */
function offsetOf(document: Document, pointer: string): number | null {
  const path = pointer.split("/").slice(1).map((segment) => (/^\d+$/.test(segment) ? Number(segment) : segment));
  for (let length = path.length; length > 0; length--) {
    const parent = document.getIn(path.slice(0, length - 1), true) as { items?: { key?: { value?: unknown; range?: [number, number, number] } }[] } | undefined;
    const pair = parent?.items?.find((item) => item.key?.value === path[length - 1]);
    if (pair?.key?.range !== undefined) return pair.key.range[0];
    const node = document.getIn(path.slice(0, length), true) as { range?: [number, number, number] } | undefined;
    if (node?.range !== undefined) return node.range[0];
  }
  return null;
}

function absolutePlugins(plugins: Config["plugins"], base: string): Config["plugins"] {
  const absolute = (name: string): string => (name.startsWith("./") || name.startsWith("../") ? resolve(base, name) : name);
  return plugins === null ? null : plugins.map((item) => (typeof item === "string" ? absolute(item) : { ...item, name: absolute(item.name) }));
}
