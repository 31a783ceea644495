/**
 * The users of a proxy. Each request has an access token, with which its user allowed a client to act for them. The
 * proxy checks it at the service, and presents it there together with its own key, which alone allows nothing.
 */
import { createHash } from "node:crypto";
import { isObject, type JsonObject } from "../transport/rpc-message.ts";

/** A user, with the client and the agent that act for them. */
export interface ProxyUser {
  readonly agentId: string;
  /** Sends a request to the service as this user and agent. */
  readonly fetch: typeof fetch;
  /** The newest access token. */
  token: string;
  lastUsed: number;
}

interface ProxyUsersOptions {
  /** Address and key of the service. */
  url: string;
  apiKey: string;
  /** Address of this proxy for clients. */
  resource: string;
  log(line: string): void;
}

const TOKEN = /^bearer +(oat_[0-9a-f-]{36}_[0-9]{1,9}_[A-Za-z0-9_-]{43})$/i;
/**
 * A token counts as valid for this long after a check. The service checks it again for each decision and start.
 * Milliseconds.
 */
const CHECKED_MS = 10_000;
const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 65_536;
const MAX_CHECKED = 10_000;
/** The proxy forgets a user after this time without a request, if no session holds on to the user. Milliseconds. */
const FORGET_MS = 24 * 3_600_000;

/** The service did not say whether a token is valid. */
class Unknown extends Error {}

export class ProxyUsers {
  private readonly options: ProxyUsersOptions;
  private readonly base: string;
  /** Users by principal, agent and client. */
  private readonly users = new Map<string, ProxyUser>();
  /** Results of checks, by the digest of the token. */
  private readonly checked = new Map<string, { until: number; result: Promise<ProxyUser | null> }>();

  constructor(options: ProxyUsersOptions) {
    this.options = options;
    this.base = options.url.replace(/\/+$/, "");
  }

  /** Returns the user of a request, or the response that refuses the request. */
  async identify(authorization: string | null): Promise<ProxyUser | Response> {
    const token = TOKEN.exec(authorization ?? "")?.[1];
    if (token === undefined) return this.challenge(authorization !== null);
    try {
      const user = await this.check(token);
      if (user === null) return this.challenge(true);
      user.lastUsed = Date.now();
      return user;
    } catch (error) {
      if (!(error instanceof Unknown)) throw error;
      return this.unavailable(error);
    }
  }

  /** Whether the user may still act: false if the access token has expired or was revoked, or the user was deactivated. */
  async isCurrent(user: ProxyUser): Promise<boolean> {
    try {
      return (await this.check(user.token)) === user;
    } catch (error) {
      // Each decision and start is checked by the service, so an outage need not end sessions.
      if (error instanceof Unknown) return true;
      throw error;
    }
  }

  /** Returns the metadata of this proxy (RFC 9728), which name the authorization server. */
  async describeResource(): Promise<Response> {
    try {
      return Response.json({
        resource: this.options.resource,
        authorization_servers: [await this.readIssuer()],
        scopes_supported: ["mcp"],
        bearer_methods_supported: ["header"],
      });
    } catch (error) {
      if (!(error instanceof Unknown)) throw error;
      return this.unavailable(error);
    }
  }

  /** Returns why users cannot sign in; null if they can. */
  async findFault(): Promise<string | null> {
    try {
      await this.readIssuer();
      await this.send("POST", "/oauth/introspect", { token: "none" });
      return null;
    } catch (error) {
      if (error instanceof Unknown) return error.message;
      throw error;
    }
  }

  private async readIssuer(): Promise<string> {
    const { issuer } = await this.send("GET", "/.well-known/oauth-authorization-server");
    if (typeof issuer === "string") return issuer;
    throw new Unknown("the service did not answer as an authorization server");
  }

  private check(token: string): Promise<ProxyUser | null> {
    const key = createHash("sha256").update(token).digest("base64");
    const known = this.checked.get(key);
    if (known !== undefined && known.until > performance.now()) return known.result;
    if (this.checked.size >= MAX_CHECKED) this.checked.clear();
    const result = this.introspect(token);
    this.checked.set(key, { until: performance.now() + CHECKED_MS, result });
    result.catch(() => this.checked.delete(key));
    return result;
  }

  private async introspect(token: string): Promise<ProxyUser | null> {
    const { resource } = this.options;
    const { active, sub, client_id, agent_id, aud } = await this.send("POST", "/oauth/introspect", { token });
    if (active === false) return null;
    if (active !== true || [sub, client_id, agent_id].some((each) => typeof each !== "string"))
      throw new Unknown("the service did not answer as an authorization server");
    if (aud !== resource) return null;
    const key = JSON.stringify([sub, agent_id, client_id]);
    const known = this.users.get(key);
    if (known !== undefined) {
      known.token = token;
      return known;
    }
    for (const [name, { lastUsed }] of this.users) if (Date.now() - lastUsed > FORGET_MS) this.users.delete(name);
    const user: ProxyUser = {
      agentId: agent_id as string,
      token,
      lastUsed: Date.now(),
      fetch: (input, init) => {
        const headers = new Headers(init?.headers);
        headers.set("authorization", `Bearer ${this.options.apiKey}.${user.token}.`);
        return fetch(input, { ...init, headers });
      },
    };
    this.users.set(key, user);
    return user;
  }

  /** Sends a request to the service with the key of the proxy. Throws Unknown. */
  private async send(method: string, path: string, form?: Record<string, string>): Promise<JsonObject> {
    try {
      const response = await fetch(this.base + path, {
        method,
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          accept: "application/json",
          ...(form === undefined ? {} : { authorization: `Bearer ${this.options.apiKey}` }),
        },
        ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      });
      const text = await readText(response);
      if (!response.ok)
        throw new Unknown(
          response.status === 404
            ? "the service is no authorization server; set `oauth.resources` in its assent.yaml"
            : response.status === 401 || response.status === 403
              ? "the service does not accept the key of the proxy; give it a key with the scope oauth:present"
              : `the service responded with status ${response.status}`,
        );
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
      throw new Unknown("the service did not answer as an authorization server");
    } catch (error) {
      if (error instanceof Unknown) throw error;
      throw new Unknown(`the service cannot be reached: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** The response without a valid access token: it tells the client where to get one. */
  private challenge(isInvalid: boolean): Response {
    const { origin, pathname } = new URL(this.options.resource);
    const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource${pathname}"`;
    const error = isInvalid ? 'error="invalid_token", ' : "";
    return new Response(null, {
      status: 401,
      headers: { "www-authenticate": `Bearer ${error}${metadata}, scope="mcp"` },
    });
  }

  /** The response if it is unknown whether a token is valid. A 401 would make the client sign in again. */
  private unavailable({ message }: Unknown): Response {
    this.options.log(message);
    const error = { code: -32603, message: "the proxy cannot check who you are now; try again later" };
    return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 503, headers: { "retry-after": "5" } });
  }
}

async function readText(response: Response): Promise<string> {
  let [text, size] = ["", 0];
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_RESPONSE_BYTES) throw new Error("the response is too large");
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}
