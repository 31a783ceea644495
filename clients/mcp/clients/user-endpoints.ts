/**
 * Serves many users over Streamable HTTP. Each client sends a credential of the service that acts for its user. Credentials
 * share an endpoint, with its sessions, tasks and connections to servers, only if the service and the authorization server
 * decide all their requests alike.
 */
import { AssentError, Unauthorized, RequestRefused } from "../../typescript/index.ts";
import { canonicalText } from "../../../src/domain/canonical.ts";
import { ERROR_CODE, isObject, type JsonObject } from "../transport/rpc-message.ts";
import { errorResponse, type HttpEndpoint, MCP_PATH, onStreamEnd, refuseForeignSite } from "./http-endpoint.ts";

/** What an endpoint is created for. */
interface EndpointUser {
  /** Returns the newest credential with this identity. */
  credential(): string;
  agent: string;
  /** Whether `issuer` issued the credential. No other authorization server may exchange it. */
  isIssued: boolean;
  /** Whether another session can be opened. */
  hasRoom(): boolean;
}

interface UserEndpointsOptions {
  /** Address of the proxy, as clients know it. */
  resource: string;
  /** The authorization server at which clients get their tokens. */
  issuer: string;
  hosts: readonly string[];
  /** Asks the service who a credential acts for (`GET /v1/me`). @throws AssentError */
  identify(credential: string): Promise<unknown>;
  createEndpoint(user: EndpointUser): HttpEndpoint;
  log(line: string): void;
}

/** Everything about a credential that decisions on its requests depend on. */
interface Identity {
  /** Differs between all credentials that are decided differently, now or at the authorization server. */
  key: string;
  agent: string;
  isIssued: boolean;
}

interface UserEndpoint {
  endpoint: HttpEndpoint;
  credential: string;
  /** Number of the request that had this credential. */
  request: number;
  lastUsed: number;
  openRequests: number;
}

/** Maximum number of users with open connections to the servers. */
const MAX_USERS = 256;
/** Maximum number of sessions of all users, because each session has its own server connections. */
const MAX_SESSIONS = 512;
/** The connections of an idle user are closed after this time. Milliseconds. */
const IDLE_MS = 2 * 3_600_000;
/** Interval at which the credentials of open streams are verified again. Milliseconds. */
const SWEEP_MS = 15_000;
const METADATA_PATH = "/.well-known/oauth-protected-resource";
/** Claims that differ between tokens with the same rights (RFC 9068, section 2.2). */
const CLAIMS_OF_ONE_TOKEN = ["exp", "iat", "jti", "nbf"];

export class UserEndpoints {
  private readonly options: UserEndpointsOptions;
  private readonly metadataUrl: string;
  /** The users by the key of their identity, least recently used first. */
  private readonly users = new Map<string, UserEndpoint>();
  /** Number of requests so far. */
  private requests = 0;
  private readonly sweep: NodeJS.Timeout;

  constructor(options: UserEndpointsOptions) {
    this.options = options;
    const { origin, pathname } = new URL(options.resource);
    // RFC 9728, section 3.1: the path of the resource follows the well-known path.
    this.metadataUrl = `${origin}${METADATA_PATH}${pathname === "/" ? "" : pathname}`;
    this.sweep = setInterval(() => {
      this.closeIdle();
      for (const [key, user] of this.users) if (user.openRequests > 0) void this.endStreamsOfEnded(key, user);
    }, SWEEP_MS);
    this.sweep.unref();
  }

  async fetch(request: Request): Promise<Response> {
    const { resource, issuer, hosts, log } = this.options;
    const refused = refuseForeignSite(request, hosts);
    if (refused !== undefined) return refused;
    const { pathname } = new URL(request.url);
    const metadataPaths = [METADATA_PATH, METADATA_PATH + MCP_PATH, new URL(this.metadataUrl).pathname];
    if (request.method === "GET" && metadataPaths.includes(pathname))
      return Response.json({ resource, authorization_servers: [issuer], bearer_methods_supported: ["header"] });
    const [, credential] = /^bearer +([\x21-\x7e]{1,16384})$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    if (credential === undefined) return this.challenge("");
    // The service can answer an earlier request later.
    const number = ++this.requests;
    let identity: Identity | Response;
    try {
      // Ask for each request, because the credential can have been revoked.
      identity = await this.identify(credential);
    } catch (error) {
      if (!(error instanceof AssentError)) throw error;
      if (isNotAccepted(error)) return this.challenge(', error="invalid_token"');
      if (error instanceof RequestRefused && error.status === 403)
        return this.challenge(', error="insufficient_scope"', 403);
      log(`the service did not identify a client: ${error.message}`);
      const message = "Assent cannot verify the token now; nothing was done; try again later";
      const unavailable = errorResponse(503, ERROR_CODE.internal, message);
      unavailable.headers.set("retry-after", "5");
      return unavailable;
    }
    if (identity instanceof Response) return identity;
    const user = this.open(identity, credential, number);
    if (user === null) return errorResponse(503, ERROR_CODE.internal, "there are too many users; try again later");
    user.openRequests++;
    const end = (): void => {
      user.openRequests--;
      user.lastUsed = Date.now();
    };
    return user.endpoint.fetch(request).then(
      (response) => onStreamEnd(response, end),
      (error: unknown) => {
        end();
        throw error;
      },
    );
  }

  async close(): Promise<void> {
    clearInterval(this.sweep);
    await Promise.all([...this.users.values()].map(({ endpoint }) => endpoint.close()));
  }

  /** Returns the identity, or the response to a credential that has none. @throws AssentError */
  private async identify(credential: string): Promise<Identity | Response> {
    const answer = await this.options.identify(credential);
    const { principal, scopes, claims, key } = isObject(answer) ? answer : {};
    const { id, agent_id: agent } = isObject(key) ? key : {};
    if (typeof principal !== "string" || typeof id !== "string" || !Array.isArray(scopes) || !isObject(claims))
      return errorResponse(502, ERROR_CODE.internal, "the answer of the service is not valid; nothing was done");
    if (typeof agent !== "string")
      return errorResponse(403, ERROR_CODE.invalidRequest, "the token is not bound to an agent; send one of an agent");
    const rights = readRights(credential, this.options.issuer);
    return { key: canonicalText([principal, id, agent, scopes, claims, rights]), agent, isIssued: rights !== null };
  }

  /** Returns the endpoint of an identity, from now on with the newest credential; null if there are too many. */
  private open({ key, agent, isIssued }: Identity, credential: string, request: number): UserEndpoint | null {
    let user = this.users.get(key);
    if (user === undefined) {
      if (this.users.size >= MAX_USERS) this.closeLeastRecent();
      if (this.users.size >= MAX_USERS) return null;
      const created = { credential, request, openRequests: 0 } as UserEndpoint;
      const hasRoom = (): boolean => {
        const sessions = [...this.users.values()].reduce((sum, { endpoint }) => sum + endpoint.openSessions, 0);
        return sessions < MAX_SESSIONS;
      };
      created.endpoint = this.options.createEndpoint({
        credential: () => created.credential,
        agent,
        isIssued,
        hasRoom,
      });
      user = created;
    }
    this.users.delete(key);
    this.users.set(key, user);
    user.lastUsed = Date.now();
    if (request > user.request) Object.assign(user, { credential, request });
    return user;
  }

  private closeIdle(): void {
    for (const [key, user] of this.users)
      if (isIdle(user) && Date.now() - user.lastUsed > IDLE_MS) this.closeUser(key, user);
  }

  private closeLeastRecent(): void {
    for (const [key, user] of this.users) if (isIdle(user)) return this.closeUser(key, user);
  }

  private closeUser(key: string, { endpoint }: UserEndpoint): void {
    this.users.delete(key);
    void endpoint.close();
  }

  /** Ends the streams of notifications of a user whose credential has ended, or has other rights now. */
  private async endStreamsOfEnded(key: string, user: UserEndpoint): Promise<void> {
    const { credential } = user;
    let isSame: boolean;
    try {
      const identity = await this.identify(credential);
      isSame = !(identity instanceof Response) && identity.key === key;
    } catch (error) {
      // While the service is down, streams stay open.
      isSame = !(error instanceof AssentError) || !(isNotAccepted(error) || error instanceof RequestRefused);
    }
    if (!isSame && user.credential === credential) user.endpoint.endStreams();
  }

  private challenge(error: string, status = 401): Response {
    const header = `Bearer realm="assent mcp proxy", resource_metadata="${this.metadataUrl}"${error}`;
    return new Response(null, { status, headers: { "www-authenticate": header } });
  }
}

const isIdle = ({ openRequests, endpoint }: UserEndpoint): boolean => openRequests === 0 && endpoint.isIdle;

/** Whether the service refused the credential itself. Clients then get another one. */
const isNotAccepted = (error: AssentError): boolean =>
  error instanceof Unauthorized || error.code === "TOO_MANY_BAD_KEYS";

/**
 * Returns what an authorization server can decide by, if it issued the credential: all claims except those of one token.
 * Null for another credential. The service has verified the credential before.
 */
function readRights(credential: string, issuer: string): JsonObject | null {
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(credential.split(".")[1] ?? "", "base64url").toString());
  } catch {
    return null;
  }
  if (!isObject(claims) || claims["iss"] !== issuer) return null;
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !CLAIMS_OF_ONE_TOKEN.includes(name)));
}
