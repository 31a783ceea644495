/** Parses and validates `egress.yaml`, and reads the credentials that it names. */
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { resolve } from "node:path";
import { Type, type Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { foldName, findNameFault } from "../../src/domain/names.ts";
import { explainFault, findInnermostFault, siblingNames } from "../../src/domain/validation.ts";
import { readYaml } from "../../src/domain/yaml.ts";
import { isAddressLiteral } from "./addresses.ts";
import type { Credential } from "./credentials.ts";

const closed = { additionalProperties: false };
const Text = Type.String({ minLength: 1 });
const VARIABLE = "^[A-Za-z_][A-Za-z0-9_]*$";

const CredentialEntry = Type.Object(
  {
    header: Type.Optional(
      Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9-]*$", description: "the name of a header, without underscores" }),
    ),
    query: Type.Optional(Text),
    body: Type.Optional(Text),
    env: Type.Optional(Type.String({ pattern: VARIABLE, description: "the name of an environment variable" })),
    file: Type.Optional(Text),
    placeholder: Type.Optional(
      Type.String({ pattern: "^[A-Za-z0-9._-]{8,256}$", description: "8 to 256 letters, digits, dots, dashes or _" }),
    ),
    variable: Type.Optional(Type.String({ pattern: VARIABLE, description: "the name of an environment variable" })),
  },
  closed,
);

const Host = Type.Object(
  {
    tool: Type.Optional(Text),
    private: Type.Optional(Type.Boolean()),
    ca: Type.Optional(Text),
    credentials: Type.Optional(Type.Array(CredentialEntry)),
  },
  closed,
);

const File = Type.Object(
  {
    agent: Type.Optional(Text),
    wait: Type.Optional(Type.Number({ minimum: 0, maximum: 3_600 })),
    max_body_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: 64 * 1024 * 1024 })),
    tunnel: Type.Optional(
      Type.Object(
        {
          tool: Type.Optional(Text),
          ports: Type.Optional(Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }))),
          seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
        },
        closed,
      ),
    ),
    hosts: Type.Record(Type.String(), Host, { minProperties: 1 }),
  },
  closed,
);

/** An upstream server. The proxy decrypts and decides the requests to it. */
export interface Origin {
  scheme: "http" | "https";
  /** Lowercase, without brackets. */
  host: string;
  port: number;
  /** The tool of its actions. */
  tool: string;
  /** Whether the server may have an internal address. */
  private: boolean;
  /** Certificates that sign the server's certificate; null for the system's. */
  ca: string | null;
  credentials: Credential[];
}

export interface EgressConfig {
  agent: string | undefined;
  /** Seconds that a request waits for an approval. */
  wait: number;
  maxBodyBytes: number;
  /** Connections to hosts that are not listed. */
  tunnel: { tool: string; ports: readonly number[]; seconds: number };
  /** Keyed by `originKey`. */
  origins: ReadonlyMap<string, Origin>;
  /** Variables of the agent with placeholders. */
  placeholders: Readonly<Record<string, string>>;
  /** All credentials. The agent inherits no variable that contains one. */
  secrets: readonly string[];
}

export const originKey = (scheme: string, host: string, port: number): string => `${scheme}://${host}:${port}`;

/** Thrown for an invalid configuration. The message names each invalid member, and contains no credential. */
export class EgressConfigError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>;
type Where = { env: Environment; folder: string };

/** @param where the proxy's environment, and the folder to which paths in the file are relative */
export function readEgressConfig(text: string, where: Where): EgressConfig {
  const {
    values: [yaml, another],
    faults: [fault],
  } = readYaml(text);
  if (fault !== undefined) throw new EgressConfigError(`line ${fault.line}, column ${fault.column}: ${fault.message}`);
  if (another !== undefined) throw new EgressConfigError("the file has a second document; write one");
  const value: unknown = yaml?.value ?? null;
  const errors = new Map<string, string>();
  for (const each of Value.Errors(File, value)) {
    const { path } = findInnermostFault(each);
    if (!errors.has(path)) errors.set(path, explainFault(findInnermostFault(each), siblingNames(File, path)));
  }
  if (errors.size > 0)
    throw new EgressConfigError(
      [...errors].map(([path, why]) => `${path === "" ? "the file" : path}: ${why}`).join("; "),
    );
  const {
    agent,
    wait = 50,
    max_body_bytes: maxBodyBytes = 1_048_576,
    tunnel = {},
    hosts,
  } = value as Static<typeof File>;
  const origins = new Map<string, Origin>();
  const placeholders: Record<string, string> = {};
  const secrets: string[] = [];
  const tunnelTool = toolName("/tunnel/tool", tunnel.tool ?? "tunnel");
  const users = new Map<string, string>();
  for (const [url, entry] of Object.entries(hosts)) {
    const path = `/hosts/${url}`;
    const origin = readOrigin(url, entry, where);
    const key = originKey(origin.scheme, origin.host, origin.port);
    // Actions name the host without a default port. An approval for one server must not be valid for another.
    const name = [80, 443].includes(origin.port) ? origin.host : `${origin.host}:${origin.port}`;
    const action = `${foldName(origin.tool)} ${name}`;
    if (foldName(origin.tool) === foldName(tunnelTool))
      throw new EgressConfigError(`${path}/tool: "${origin.tool}" is the tool of tunnels; choose another name`);
    if (origins.has(key) || users.has(action))
      throw new EgressConfigError(
        `${path}: its actions are equal to those of ${users.get(action) ?? users.get(key)}; remove one, or set another tool`,
      );
    users.set(action, url).set(key, url);
    for (const [i, given] of (entry.credentials ?? []).entries()) {
      const at = `${path}/credentials/${i}`;
      const credential = readCredential(at, given, where);
      if (origin.scheme === "http")
        throw new EgressConfigError(`${at}: a credential needs https, because http sends it in plain text`);
      if (origin.credentials.some(({ place, name }) => place === credential.place && name === credential.name))
        throw new EgressConfigError(`${at}: another credential has the same place`);
      origin.credentials.push(credential);
      secrets.push(credential.secret);
      const variable = given.variable ?? given.env;
      if (variable === undefined) continue;
      if ((placeholders[variable] ?? credential.placeholder) !== credential.placeholder)
        throw new EgressConfigError(`${at}: the variable ${variable} has another placeholder already`);
      placeholders[variable] = credential.placeholder;
    }
    origins.set(key, origin);
  }
  const { ports = [443], seconds = 3_600 } = tunnel;
  return {
    agent,
    wait,
    maxBodyBytes,
    tunnel: { tool: tunnelTool, ports, seconds },
    origins,
    placeholders,
    secrets,
  };
}

function toolName(path: string, name: string): string {
  const fault = findNameFault(name);
  if (fault !== null) throw new EgressConfigError(`${path}: the name ${fault}`);
  return name;
}

function readOrigin(
  text: string,
  { tool = "http", ca, private: isPrivate = false }: Static<typeof Host>,
  where: Where,
): Origin {
  const path = `/hosts/${text}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol) || ![url.origin, `${url.origin}/`].includes(text))
    throw new EgressConfigError(
      `${path}: write a scheme, a host in lowercase, and a port if it is not the default, such as https://api.example.com`,
    );
  const { hostname: host } = url;
  if (host.startsWith("[") || host.endsWith(".") || (isAddressLiteral(host) && isIP(host) !== 4))
    throw new EgressConfigError(`${path}: write a name, or an IPv4 address`);
  const scheme = url.protocol === "https:" ? "https" : "http";
  if (ca !== undefined && scheme === "http") throw new EgressConfigError(`${path}/ca: needs https`);
  return {
    scheme,
    host,
    port: Number(url.port) || (scheme === "https" ? 443 : 80),
    tool: toolName(`${path}/tool`, tool),
    private: isPrivate,
    ca: ca === undefined ? null : readText(`${path}/ca`, resolve(where.folder, ca)),
    credentials: [],
  };
}

/** Headers that the proxy writes itself, or that frame the request. */
const RESERVED =
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|accept-encoding|content-.*|proxy-.*)$/;
/** Minimum length of a credential. A shorter one would also be found in unrelated text. */
const MIN_SECRET = 8;

function readCredential(path: string, configEntry: Static<typeof CredentialEntry>, where: Where): Credential {
  const places = (["header", "query", "body"] as const).filter((place) => configEntry[place] !== undefined);
  const [place] = places;
  if (place === undefined || places.length > 1)
    throw new EgressConfigError(`${path}: set one of header, query and body`);
  if ((configEntry.env === undefined) === (configEntry.file === undefined))
    throw new EgressConfigError(`${path}: set either env or file`);
  const name = place === "header" ? (configEntry.header as string).toLowerCase() : (configEntry[place] as string);
  if (place === "header" && RESERVED.test(name))
    throw new EgressConfigError(`${path}/header: the proxy writes the header ${name} itself`);
  const secret =
    configEntry.env === undefined
      ? readSecretFile(path, configEntry.file as string, where)
      : where.env[configEntry.env];
  if (secret === undefined || secret === "")
    throw new EgressConfigError(`${path}/env: the environment variable ${configEntry.env} is not set`);
  if (!/^[!-~]+$/.test(secret) || secret.length < MIN_SECRET)
    throw new EgressConfigError(
      `${path}: the credential must have ${MIN_SECRET} or more printable ASCII characters without spaces`,
    );
  const placeholder =
    configEntry.placeholder ??
    `assent-placeholder-${(configEntry.variable ?? configEntry.env ?? name).replaceAll(/[^A-Za-z0-9._-]/g, "-")}`;
  if (placeholder.includes(secret) || secret.includes(placeholder))
    throw new EgressConfigError(`${path}/placeholder: the placeholder is the credential; choose another placeholder`);
  return { place, name, placeholder, secret };
}

function readSecretFile(path: string, file: string, { folder }: Where): string {
  const full = resolve(folder, file);
  const text = readText(`${path}/file`, full);
  if (process.platform !== "win32" && (statSync(full).mode & 0o077) !== 0)
    throw new EgressConfigError(`${path}/file: other users can read ${full}; run "chmod 600 ${full}"`);
  return text.replace(/\r?\n$/, "");
}

function readText(path: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new EgressConfigError(`${path}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
