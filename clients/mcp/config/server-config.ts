/** Configuration of one MCP server behind the proxy. */
import type { SignInStore } from "../sign-in/stored-sign-in.ts";

export interface ServerConfig {
  /** Name of the server. It is the prefix of ambiguous tool names, and the argument of `assent mcp accept`. */
  name: string;
  /** Value of `tool` in the server's actions. */
  tool: string;
  /** Protocol revision of the server. `auto` tries the client's revision first, and then the other revision. */
  era: "auto" | "2025-11-25" | "2026-07-28";
  /** Patterns, with `*`, of tools that clients can neither list nor call. */
  hide: string[];
  /** Methods that the proxy forwards without a decision. */
  open: GovernedMethod[];
  /** Patterns, with `*`, of the keys in a call's `_meta` that the server receives. Policies can read these keys. */
  meta: string[];
  /** `first` accepts the definitions of the first start. With `accepted`, a person must accept all definitions. */
  definitions: "first" | "accepted";
  target: ProcessTarget | HttpTarget;
}

export interface ProcessTarget {
  command: string;
  args: string[];
  /**
   * Variables that the process gets in addition to the proxy's environment. It does not inherit variables that begin
   * with ASSENT_.
   */
  env: Record<string, string>;
  cwd?: string | undefined;
}

export interface HttpTarget {
  url: string;
  headers: Record<string, string>;
  /**
   * Headers that the proxy adds to each governed call; null if there are none. `{member}` stands for a member of the
   * credential that the service issues when the action starts.
   */
  credentialHeaders: Record<string, string> | null;
  /** How the proxy gets a token of the session's user for this server; null if it gets none. */
  exchange: ExchangeOptions | null;
  /**
   * Returns the newest token that the session's user sent. Null if the proxy has no users, or if another authorization
   * server issued the token.
   */
  subject: (() => string) | null;
  /** How a person signs in at this server. Null if the configuration has an Authorization header, or if the address has no TLS. */
  oauth: OAuthOptions | null;
  /** The sign-in of the person whose key the proxy has. Null if the proxy must not use one. */
  signIns: SignInStore | null;
}

export interface OAuthOptions {
  /** The only authorization server that is accepted. */
  issuer?: string | undefined;
  scope?: string | undefined;
  client_id?: string | undefined;
  client_secret?: string | undefined;
  client_metadata_url?: string | undefined;
}

/** A token exchange (RFC 8693). The members other than the client are parameters of the request. */
export interface ExchangeOptions {
  token_endpoint: string;
  client_id: string;
  client_secret: string;
  audience?: string | undefined;
  resource?: string | undefined;
  scope?: string | undefined;
}

/** Returns true if no one on the network can read what is sent to the URL: HTTPS, or HTTP at this machine. */
export function isProtected(url: string | URL): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(hostname));
}

/** Methods that can require a decision. `tools/call` is not among them, because it always requires a decision. */
export const GOVERNED_METHODS = [
  "resources/read",
  "prompts/get",
  "sampling/createMessage",
  "elicitation/create",
] as const;
export type GovernedMethod = (typeof GOVERNED_METHODS)[number];
