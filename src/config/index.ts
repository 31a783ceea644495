import { readFileSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { isScalar, visit, type Document } from "yaml";
import { isNoteName } from "../domain/checkpoint.ts";
import { findSimilarName } from "../domain/similar-name.ts";
import { listBuiltIn } from "./built-in-plugins.ts";
import { decodeUtf8 } from "../domain/json.ts";
import { isOpenToOthers } from "../domain/loopback.ts";
import { explainFault, siblingNames } from "../domain/validation.ts";
import { readYaml, type SourcePosition } from "../domain/yaml.ts";
import { ConfigSchema, type Config, type Section } from "./config-schema.ts";
import { findMemberFaults } from "./groups-schema.ts";
import { readRotas } from "./rota-schema.ts";

export { ConfigSchema, type Config, type Section } from "./config-schema.ts";

/** A fault of the file, with its position if known. `line` and `column` are 1-based. */
interface ConfigFault {
  origin: string;
  line: number | null;
  column: number | null;
  message: string;
}

export class ConfigError extends Error {
  readonly faults: ConfigFault[];
  constructor(faults: ConfigFault[]) {
    super(faults.map(describeFault).join("\n"));
    this.name = "ConfigError";
    this.faults = faults;
  }
}

function describeFault({ origin, line, column, message }: ConfigFault): string {
  return `${[origin, line, column].filter((part) => part !== null).join(":")}: ${message}`;
}

/** Removes the keys that the core does not know from the file's content, and returns them. */
function takeSections(given: Record<string, unknown>, describe: (pointer: string, message: string) => string) {
  const sections = new Map<string, Section>();
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(ConfigSchema.properties, name)) continue;
    delete given[name];
    const key = name.replaceAll("~", "~0").replaceAll("/", "~1");
    sections.set(name, {
      value,
      pointer: `/${key}`,
      describe: (pointer, message) => describe(`/${key}${pointer}`, message),
    });
  }
  return sections;
}

/**
 * Returns true if a plugin could have this name. The name of a plugin that is loaded by path is known only once it is
 * loaded.
 */
function mayBePlugin(name: string, { plugins }: { plugins?: unknown }): boolean {
  const named = Array.isArray(plugins)
    ? plugins.map((item: string | { name?: unknown } | null) => (typeof item === "string" ? item : item?.name))
    : [];
  return Object.hasOwn(listBuiltIn(), name) || named.some((each) => String(each).includes("/"));
}

function describeUnknownKey(name: string): string {
  const similar = findSimilarName(name, [...Object.keys(ConfigSchema.properties), ...Object.keys(listBuiltIn())]);
  return `unknown key, and no built-in plugin has this name${similar === null ? "" : `; did you mean "${similar}"?`}`;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Environment variables that override the file, and the keys that they set. */
export const ENVIRONMENT_VARIABLES: readonly { name: string; path: readonly string[]; isNumber?: true }[] = [
  { name: "ASSENT_HOST", path: ["server", "host"] },
  { name: "ASSENT_PORT", path: ["server", "port"], isNumber: true },
  { name: "ASSENT_DRAIN_SECONDS", path: ["server", "drain_seconds"], isNumber: true },
  { name: "ASSENT_TRUSTED_PROXIES", path: ["server", "trusted_proxies"], isNumber: true },
  { name: "ASSENT_PUBLIC_URL", path: ["server", "public_url"] },
  { name: "ASSENT_DATA", path: ["data"] },
  { name: "ASSENT_STATE", path: ["state"] },
  { name: "ASSENT_POLICIES", path: ["policies"] },
  { name: "ASSENT_ENVIRONMENT", path: ["environment"] },
  { name: "ASSENT_AGENTS", path: ["agents"] },
  { name: "DATABASE_URL", path: ["database_url"] },
  { name: "ASSENT_SECRET", path: ["secret"] },
  { name: "ASSENT_ADMIN_KEY", path: ["admin_key"] },
  { name: "ASSENT_LOG_KEY", path: ["ledger", "key"] },
  { name: "ASSENT_LOG_NEXT_KEY", path: ["ledger", "next_key"] },
  { name: "ASSENT_PERMIT_KEY", path: ["permits", "key"] },
  { name: "ASSENT_LOG_ORIGIN", path: ["ledger", "origin"] },
];

/**
 * Loads the configuration. Environment variables override the file, and defaults fill the rest. Without `file` and
 * `ASSENT_CONFIG`, reads `assent.yaml` in `cwd` if it exists. Throws ConfigError, with all violations of the schema at
 * once.
 * @example
 * const { config, origin } = loadConfig({ cwd: process.cwd(), env: process.env, file: "assent.yaml" });
 */
export function loadConfig({ cwd, env, file }: { cwd: string; env: Environment; file?: string }): {
  config: Config;
  origin: string | null;
} {
  const named = file ?? (env["ASSENT_CONFIG"] || undefined);
  const path = resolve(cwd, named ?? "assent.yaml");
  const text = readText(path, named !== undefined);
  const base = text === null ? cwd : dirname(path);
  const origin = text === null ? null : path;
  const { values, faults: unreadable } = readYaml(text ?? "");
  const faults: ConfigFault[] = unreadable.map(({ line = null, column = null, message }) => ({
    origin: path,
    line,
    column,
    message,
  }));
  const [yaml, another] = values;
  if (another !== undefined)
    faults.push({ origin: path, ...another.locate(""), message: "the file has a second document; write one" });
  if (faults.length > 0) throw new ConfigError(faults);
  const locate = (pointer: string): SourcePosition => yaml?.locate(pointer, { key: true }) ?? { line: 1, column: 1 };
  if (yaml !== undefined)
    expandVariables(yaml.document, env, (offset, message) =>
      faults.push({ origin: path, ...yaml.place(offset), message }),
    );
  const given: unknown = yaml?.document.toJS() ?? {};
  if (typeof given !== "object" || Array.isArray(given))
    throw new ConfigError([
      { origin: path, line: 1, column: 1, message: "expected keys such as `server:` at the top" },
    ]);
  const sections = takeSections(given as Record<string, unknown>, (pointer, message) =>
    describeFault({ origin: path, ...locate(pointer), message: `${pointer}: ${message}` }),
  );
  for (const [name, { pointer }] of sections)
    if (!mayBePlugin(name, given as { plugins?: unknown }))
      faults.push({ origin: path, ...locate(pointer), message: `${pointer}: ${describeUnknownKey(name)}` });
  const fromEnvironment = applyEnvironment(given as Record<string, unknown>, env);
  const config = Value.Default(ConfigSchema, given);
  for (const fault of Value.Errors(ConfigSchema, config)) {
    const variable = fromEnvironment.get(fault.path);
    const isReported = faults.some((f) => f.message.startsWith(`${fault.path}: `));
    if (isReported) continue;
    const at =
      variable === undefined ? { origin: path, ...locate(fault.path) } : { origin: variable, line: null, column: null };
    faults.push({
      ...at,
      message: `${fault.path}: ${explainFault(fault, siblingNames(ConfigSchema as TSchema, fault.path))}`,
    });
  }
  if (faults.length > 0) throw new ConfigError(faults);
  const settings = { ...(config as Omit<Config, "sections">), sections };
  if (settings.ledger.origin !== null && !isNoteName(settings.ledger.origin)) {
    throw new ConfigError([
      {
        origin: path,
        line: null,
        column: null,
        message: `/ledger/origin: "${settings.ledger.origin}" cannot name a log: it must have no spaces and no "+"`,
      },
    ]);
  }
  const peopleFaults = [...findMemberFaults(settings.groups), ...readRotas(settings.rota, settings.groups).faults];
  if (peopleFaults.length > 0)
    throw new ConfigError(
      peopleFaults.map(({ pointer, message }) => ({
        origin: path,
        ...locate(pointer),
        message: `${pointer}: ${message}`,
      })),
    );
  if (settings.server.public_url !== null && !isPublicUrl(settings.server.public_url)) {
    throw new ConfigError([
      {
        origin: fromEnvironment.get("/server/public_url") ?? path,
        line: null,
        column: null,
        message: `/server/public_url: "${settings.server.public_url}" is not an address such as https://assent.example.com: it must start with https:// or http://, without a user, a query or a fragment`,
      },
    ]);
  }
  const { public_url, host } = settings.server;
  if (public_url !== null && isOpenToOthers(public_url, settings.server)) {
    throw new ConfigError([
      {
        origin: fromEnvironment.get("/server/public_url") ?? path,
        line: null,
        column: null,
        message: `/server/public_url: "${public_url}" is an address of this machine, and /server/host "${host}" is another, so another program could receive the requests of browsers; set host to 127.0.0.1, or public_url to an address of "${host}"`,
      },
    ]);
  }
  if (settings.database_url !== null && !/^postgres(ql)?:\/\//.test(settings.database_url)) {
    throw new ConfigError([
      {
        origin: fromEnvironment.get("/database_url") ?? path,
        line: null,
        column: null,
        message: "/database_url: it does not begin with postgres://; write postgres://user:password@host:port/database",
      },
    ]);
  }
  if (settings.admin_key !== null && settings.admin_key.length < 32) {
    throw new ConfigError([
      {
        origin: fromEnvironment.get("/admin_key") ?? path,
        line: null,
        column: null,
        message: "/admin_key: it is shorter than 32 characters; make one with `openssl rand -hex 32`",
      },
    ]);
  }
  return {
    config: {
      ...settings,
      data: resolve(env["ASSENT_DATA"] ? cwd : base, settings.data),
      state: settings.state === null ? stateFolder(env) : resolve(env["ASSENT_STATE"] ? cwd : base, settings.state),
      policies: resolve(env["ASSENT_POLICIES"] ? cwd : base, settings.policies),
      plugins: absolutePlugins(settings.plugins, base),
    },
    origin,
  };
}

function isPublicUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return ["https:", "http:"].includes(protocol) && username + password + search + hash === "";
}

/**
 * Returns the defaults, without a file or environment variables.
 * @example
 * const config = defaultConfig({ data: "./data", policies: "./policies" });
 */
export function defaultConfig(changes: { data: string; policies?: string }): Config {
  const config = Value.Default(ConfigSchema, {
    data: changes.data,
    ...(changes.policies === undefined ? {} : { policies: changes.policies }),
  });
  return { ...(config as Omit<Config, "sections">), sections: new Map() };
}

/**
 * Returns the folder for state that must outlive the data folder, as defined by the XDG Base Directory Specification;
 * null if the environment does not determine it.
 * @example
 * stateFolder({ HOME: "/home/ada" }); // "/home/ada/.local/state/assent"
 */
export function stateFolder(env: Environment): string | null {
  const base = env["XDG_STATE_HOME"] || (env["HOME"] ? join(env["HOME"], ".local", "state") : "");
  return isAbsolute(base) ? join(base, "assent") : null;
}

function readText(path: string, required: boolean): string | null {
  try {
    const text = decodeUtf8(readFileSync(path));
    if (text === null) throw new Error("it is not UTF-8");
    return text;
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (missing && !required) return null;
    throw new ConfigError([
      {
        origin: path,
        line: null,
        column: null,
        message: missing
          ? "the file does not exist; check --config and ASSENT_CONFIG"
          : `it cannot be read: ${(error as Error).message}`,
      },
    ]);
  }
}

/**
 * Expands `${NAME}` and `${NAME:-default}` in scalar values. `$${` is an escaped `${`. Runs after the YAML is parsed,
 * so that a variable's value cannot inject YAML.
 */
function expandVariables(
  document: Document,
  env: Environment,
  reportFault: (offset: number, message: string) => void,
): void {
  visit(document, {
    Scalar(key, node) {
      if (key === "key" || typeof node.value !== "string" || !node.value.includes("${")) return;
      const text = node.value;
      const expanded = text.replaceAll(
        /\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g,
        (whole, name: string, fallback: string | undefined) => {
          if (whole.startsWith("$$")) return whole.slice(1);
          const value = env[name];
          if (value !== undefined && value !== "") return value;
          if (fallback !== undefined) return fallback;
          reportFault(
            node.range?.[0] ?? 0,
            `the environment variable ${name} is not set; set it, or write \${${name}:-default}`,
          );
          return "";
        },
      );
      // An unquoted value that consists only of a variable can become a number or a boolean. A quoted value stays a
      // string.
      node.value =
        isScalar(node) && node.type === "PLAIN" && /^\$\{[^}]*\}$/.test(text) ? parsePlainScalar(expanded) : expanded;
    },
  });
}

function parsePlainScalar(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/**
 * Applies the environment variables to the file's values. Returns a map from the JSON pointer of each value to the
 * variable that set the value.
 */
function applyEnvironment(given: Record<string, unknown>, env: Environment): Map<string, string> {
  const set = new Map<string, string>();
  for (const { name, path, isNumber } of ENVIRONMENT_VARIABLES) {
    const value = env[name];
    if (value === undefined || value === "") continue;
    let target = given;
    for (const key of path.slice(0, -1)) {
      if (typeof target[key] !== "object" || target[key] === null) target[key] = {};
      target = target[key] as Record<string, unknown>;
    }
    target[path.at(-1) as string] = isNumber === true ? parsePlainScalar(value) : value;
    set.set(`/${path.join("/")}`, name);
  }
  return set;
}

function absolutePlugins(plugins: Config["plugins"], base: string): Config["plugins"] {
  const absolute = (name: string): string =>
    name.startsWith("./") || name.startsWith("../") ? resolve(base, name) : name;
  return plugins === null
    ? null
    : plugins.map((item) => (typeof item === "string" ? absolute(item) : { ...item, name: absolute(item.name) }));
}
