/** Parses and validates `assent-mcp.yaml`, and derives defaults for servers and clients. */
import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { foldName, findNameFault } from "../../../src/domain/names.ts";
import { explainFault, siblingNames, findInnermostFault } from "../../../src/domain/validation.ts";
import { readYaml } from "../../../src/domain/yaml.ts";
import { findTemplateFault } from "../decisions/credential-headers.ts";
import { GOVERNED_METHODS, isProtected, type GovernedMethod, type ServerConfig } from "./server-config.ts";

const closed = { additionalProperties: false };
const TextMap = Type.Record(Type.String(), Type.String());

const Server = Type.Object(
  {
    command: Type.Optional(Type.String({ minLength: 1 })),
    args: Type.Optional(Type.Array(Type.String())),
    env: Type.Optional(TextMap),
    cwd: Type.Optional(Type.String({ minLength: 1 })),
    url: Type.Optional(Type.String({ pattern: "^https?://", description: "an http or https URL" })),
    headers: Type.Optional(TextMap),
    credential_headers: Type.Optional(TextMap),
    oauth: Type.Optional(
      Type.Object(
        {
          issuer: Type.Optional(Type.String({ minLength: 1 })),
          scope: Type.Optional(Type.String({ minLength: 1 })),
          client_id: Type.Optional(Type.String({ minLength: 1 })),
          client_secret: Type.Optional(Type.String({ minLength: 1 })),
          client_metadata_url: Type.Optional(Type.String({ pattern: "^https://", description: "an https URL" })),
        },
        closed,
      ),
    ),
    exchange: Type.Optional(
      Type.Object(
        {
          token_endpoint: Type.String({ pattern: "^https?://", description: "an http or https URL" }),
          client_id: Type.String({ minLength: 1 }),
          client_secret: Type.String({ minLength: 1 }),
          audience: Type.Optional(Type.String({ minLength: 1 })),
          resource: Type.Optional(Type.String({ minLength: 1 })),
          scope: Type.Optional(Type.String({ minLength: 1 })),
        },
        closed,
      ),
    ),
    tool: Type.Optional(Type.String({ minLength: 1 })),
    era: Type.Optional(Type.Union([Type.Literal("auto"), Type.Literal("2025-11-25"), Type.Literal("2026-07-28")])),
    hide: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    open: Type.Optional(Type.Array(Type.Union(GOVERNED_METHODS.map((method) => Type.Literal(method))))),
    meta: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    definitions: Type.Optional(Type.Union([Type.Literal("first"), Type.Literal("accepted")])),
  },
  closed,
);

const File = Type.Object(
  {
    agent: Type.Optional(Type.String({ minLength: 1 })),
    authority: Type.Optional(Type.String({ minLength: 1 })),
    wait: Type.Optional(Type.Number({ minimum: 0, maximum: 86_400 })),
    hide_denied: Type.Optional(Type.Boolean()),
    offer_authority: Type.Optional(Type.Boolean()),
    sessions: Type.Optional(Type.Boolean()),
    approval_page: Type.Optional(
      Type.String({ pattern: "^https?://.*\\{id\\}", description: "an http or https URL with {id} in it" }),
    ),
    data: Type.Optional(Type.String({ minLength: 1 })),
    listen: Type.Optional(
      Type.Object(
        {
          host: Type.Optional(Type.String({ minLength: 1 })),
          port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
          token: Type.Optional(Type.String({ minLength: 16 })),
          hosts: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
          users: Type.Optional(
            Type.Object(
              {
                resource: Type.String({ pattern: "^https?://[^?#]+$", description: "an http or https URL" }),
                issuer: Type.String({ pattern: "^https?://", description: "an http or https URL" }),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    servers: Type.Record(Type.String(), Server, { minProperties: 1 }),
  },
  closed,
);

export interface ProxyConfig extends Omit<Static<typeof File>, "servers"> {
  servers: ServerConfig[];
  /** Bearer token that clients over HTTP must send. */
  token?: string;
}

/** Thrown for an invalid configuration. The message contains the path of each invalid member, or the YAML error. */
export class ProxyConfigError extends Error {}

/** Variable with the headers of the server of `--http`, as a JSON object of strings. */
export const HEADERS_VARIABLE = "ASSENT_MCP_HEADERS";

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws ProxyConfigError */
export function readProxyConfig(text: string, env: Environment): ProxyConfig {
  const {
    values: [yaml, another],
    faults: [unreadable],
  } = readYaml(text);
  if (unreadable !== undefined)
    throw new ProxyConfigError(`line ${unreadable.line}, column ${unreadable.column}: ${unreadable.message}`);
  if (another !== undefined)
    throw new ProxyConfigError(`line ${another.locate("").line}: the file has a second document; write one`);
  const value = expandVariables(yaml?.value ?? null, env, "");
  const errors = new Map<string, string>();
  for (const fault of Value.Errors(File, value)) {
    const { path } = findInnermostFault(fault);
    // Report only the first error of each member, because later errors repeat it.
    if (!errors.has(path)) errors.set(path, explainFault(findInnermostFault(fault), siblingNames(File, path)));
  }
  if (errors.size > 0)
    throw new ProxyConfigError(
      [...errors].map(([path, why]) => `${path === "" ? "the file" : path}: ${why}`).join("; "),
    );
  const { servers: values, ...rest } = value as Static<typeof File>;
  const servers = Object.entries(values).map(([name, server]) => readServerConfig(name, server));
  const { agent, listen } = rest;
  if (listen?.users === undefined) {
    const exchanging = servers.find(({ target }) => "url" in target && target.exchange !== null);
    if (exchanging !== undefined)
      throw new ProxyConfigError(
        `/servers/${exchanging.name}/exchange: needs listen.users, because only then do clients send a token of their user`,
      );
  } else if (agent !== undefined || listen.token !== undefined)
    throw new ProxyConfigError(
      "/listen/users: set neither agent nor listen.token, because each client's own token names its agent",
    );
  const serverByTool = new Map<string, string>();
  for (const { name, tool } of servers) {
    const other = serverByTool.get(foldName(tool));
    // With equal names, actions of both servers would be equal, so an approval for one server could run on the other.
    if (other !== undefined)
      throw new ProxyConfigError(
        `/servers/${name}/tool: "${tool}" is used by the server "${other}" already; choose another name`,
      );
    serverByTool.set(foldName(tool), name);
  }
  return { ...rest, servers };
}

/** @throws ProxyConfigError */
export function readServerConfig(name: string, values: Static<typeof Server>): ServerConfig {
  const path = `/servers/${name}`;
  if (!/^[A-Za-z0-9._-]{1,32}$/.test(name))
    throw new ProxyConfigError(
      `${path}: a server's name must have 1 to 32 letters, digits, dots, dashes or underscores`,
    );
  const {
    command,
    args = [],
    env = {},
    cwd,
    url,
    headers = {},
    credential_headers: credentialHeaders = null,
    oauth = {},
    exchange = null,
    tool = `mcp.${name}`,
  } = values;
  if ((command === undefined) === (url === undefined)) throw new ProxyConfigError(`${path}: set either command or url`);
  if (
    url === undefined
      ? ["headers", "credential_headers", "oauth", "exchange"].some((key) => key in values)
      : "args" in values || "env" in values || "cwd" in values
  )
    throw new ProxyConfigError(
      `${path}: headers, oauth, exchange and credential_headers need url; args, env and cwd need command`,
    );
  const templateFault = credentialHeaders === null ? null : findTemplateFault(credentialHeaders);
  if (templateFault !== null) throw new ProxyConfigError(`${path}/credential_headers: ${templateFault}`);
  const hasAuthorization = Object.keys({ ...headers, ...credentialHeaders }).some(
    (header) => header.toLowerCase() === "authorization",
  );
  if ("oauth" in values && hasAuthorization)
    throw new ProxyConfigError(`${path}: set either oauth or an Authorization header, because a request has one token`);
  const canSignIn = url !== undefined && isProtected(url) && !hasAuthorization;
  if ("oauth" in values && !canSignIn)
    throw new ProxyConfigError(`${path}: oauth needs an https URL, because everyone on the network can read http`);
  if (exchange !== null && ("oauth" in values || hasAuthorization))
    throw new ProxyConfigError(
      `${path}: set one of exchange, oauth and an Authorization header, because a request has one token`,
    );
  if (exchange !== null && ![url as string, exchange.token_endpoint].every(isProtected))
    throw new ProxyConfigError(`${path}: exchange needs https URLs, because everyone on the network can read http`);
  if (oauth.client_secret !== undefined && oauth.client_id === undefined)
    throw new ProxyConfigError(`${path}/oauth: client_secret needs client_id`);
  const fault = findNameFault(tool);
  if (fault !== null) throw new ProxyConfigError(`${path}/tool: the name ${fault}`);
  return {
    name,
    tool,
    era: values.era ?? "auto",
    hide: values.hide ?? [],
    open: (values.open ?? []) as GovernedMethod[],
    meta: values.meta ?? [],
    definitions: values.definitions ?? "first",
    target:
      url === undefined
        ? { command: command as string, args, env, cwd }
        : {
            url,
            headers,
            credentialHeaders,
            oauth: canSignIn && exchange === null ? oauth : null,
            signIns: null,
            exchange,
            subject: null,
          },
  };
}

/** Returns the headers of `ASSENT_MCP_HEADERS`. Throws ProxyConfigError. */
export function readHeadersVariable(env: Environment): Record<string, string> {
  const text = env[HEADERS_VARIABLE] ?? "";
  if (text === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  // Do not quote the value, because it contains credentials.
  if (!Value.Check(TextMap, value))
    throw new ProxyConfigError(
      `${HEADERS_VARIABLE} must be a JSON object of strings, such as {"Authorization":"Bearer …"}`,
    );
  return value;
}

/**
 * Replaces `${NAME}` and `${NAME:-default}` in strings with variables, so that the file does not have to contain
 * secrets.
 */
function expandVariables(value: unknown, env: Environment, path: string): unknown {
  if (typeof value === "string")
    return value.replaceAll(
      /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g,
      (_, name: string, otherwise: string | undefined) => {
        const variable = env[name] ?? otherwise;
        if (variable === undefined)
          throw new ProxyConfigError(
            `${path}: the environment variable ${name} is not set; set it, or write \${${name}:-default}`,
          );
        return variable;
      },
    );
  if (Array.isArray(value)) return value.map((item, i) => expandVariables(item, env, `${path}/${i}`));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, expandVariables(item, env, `${path}/${key}`)]),
  );
}

const RUNNER_NAME =
  /^(?:npx|pnpx|bunx|uvx|pipx|uv|npm|pnpm|yarn|bun|deno|node|python3?|docker|podman|cmd|\/c|exec|run|dlx|x|tool)(?:\.exe|\.cmd)?$/;

/** Names that are too generic to identify a program. */
const GENERIC_NAME = /^(?:index|main|server|cli|app|dist|build|out|src|bin|lib|)$/;

/** Derives a server's name from its command or URL. */
export function deriveServerName(reach: readonly string[] | URL): string {
  if (reach instanceof URL) return reach.hostname.slice(0, 32);
  const words = reach.filter(
    (word) => !word.startsWith("-") && !RUNNER_NAME.test(word.split(/[\\/]/).at(-1) as string),
  );
  const parts = (words[0] ?? reach[0] ?? "")
    .split(/[\\/]/)
    .map((part) => part.replace(/(?<=.)@.*$|\.[cm]?[jt]s$|\.py$|:[^:]*$/, ""));
  const part = parts.findLast((each) => !GENERIC_NAME.test(each)) ?? "server";
  const name = part
    .replace(/^(?:mcp-server-|server-mcp-|mcp-|server-)/, "")
    .replace(/(?:-mcp-server|-mcp|-server)$/, "");
  return (name || part).replaceAll(/[^A-Za-z0-9._-]/g, "-").slice(0, 32);
}

/**
 * Seconds that the proxy holds a call that waits for approval, for known clients. Keyed by the client name that they
 * send.
 */
const CLIENT_TIMEOUTS: Readonly<Record<string, number>> = { "claude-code": 240, "gemini-cli-mcp-client": 540 };

/** Default for other clients in seconds. Less than the 60 s after which most of them give up. */
const DEFAULT_WAIT = 50;

export function approvalWaitFor(client: Readonly<Record<string, unknown>>, configured: number | undefined): number {
  const { name } = client;
  return (
    configured ??
    (typeof name === "string" && Object.hasOwn(CLIENT_TIMEOUTS, name)
      ? (CLIENT_TIMEOUTS[name] as number)
      : DEFAULT_WAIT)
  );
}
