/**
 * Serves many users over Streamable HTTP. Each client sends a credential of the service that acts for its user. Credentials
 * share an endpoint, with its sessions, tasks and connections to servers, only if the service decides all their calls alike.
 */
import { AssentError, Unauthorized, RequestRefused } from "../../typescript/index.ts";
import { canonicalText } from "../../../src/domain/canonical.ts";
import { ERROR_CODE, type JsonObject } from "../transport/rpc-message.ts";
import { errorResponse, type HttpEndpoint, MCP_PATH, refuseForeignSite } from "./http-endpoint.ts";

/** What the service says about a credential (`GET /v1/me`). */
export interface CallerIdentity {
  principal?: string;
  scopes?: string[];
  claims?: JsonObject;
  key?: { id?: string; agent_id?: string | null };
}

interface UserEndpointsOptions {
  /** Address of the proxy, as clients know it. */
  resource: string;
  /** The authorization server at which clients get their tokens. */
  issuer: string;
  hosts: readonly string[];
  /** Asks the service who a credential acts for. @throws AssentError */
  identify(credential: string): Promise<CallerIdentity>;
  /** @param credential returns the newest credential of this user, agent, claims and scopes */
  createEndpoint(credential: () => string, agent: string): HttpEndpoint;
  log(line: string): void;
}

interface UserEndpoint {
  endpoint: HttpEndpoint;
  credential: string;
  /** Number of the request that had this credential. */
  request: number;
  lastUsed: number;
}

/** Maximum number of users with open connections to the servers. */
const MAX_USERS = 64;
/** The connections of a user without a session and a request are closed after this time. Milliseconds. */
const IDLE_MS = 2 * 3_600_000;
const METADATA_PATH = "/.well-known/oauth-protected-resource";

export class UserEndpoints {
  private readonly options: UserEndpointsOptions;
  private readonly metadataUrl: string;
  private readonly users = new Map<string, UserEndpoint>();
  /** Number of requests so far. */
  private requests = 0;
  private readonly sweep: NodeJS.Timeout;

  constructor(options: UserEndpointsOptions) {
    this.options = options;
    const { origin, pathname } = new URL(options.resource);
    // RFC 9728, section 3.1: the path of the resource follows the well-known path.
    this.metadataUrl = `${origin}${METADATA_PATH}${pathname === "/" ? "" : pathname}`;
    this.sweep = setInterval(() => this.closeIdle(), 60_000);
    this.sweep.unref();
  }

  async fetch(request: Request): Promise<Response> {
    const { resource, issuer, hosts, identify, log } = this.options;
    const refused = refuseForeignSite(request, hosts);
    if (refused !== undefined) return refused;
    const { pathname } = new URL(request.url);
    if (request.method === "GET" && [METADATA_PATH, METADATA_PATH + MCP_PATH].includes(pathname))
      return Response.json({ resource, authorization_servers: [issuer], bearer_methods_supported: ["header"] });
    const [, credential] = /^bearer +([\x21-\x7e]{1,16384})$/i.exec(request.headers.get("authorization") ?? "") ?? [];
    if (credential === undefined) return this.challenge("");
    // The service can answer an earlier request later.
    const number = ++this.requests;
    let identity: CallerIdentity;
    try {
      // Ask for each request, because the credential can have been revoked.
      identity = await identify(credential);
    } catch (error) {
      if (error instanceof Unauthorized) return this.challenge(', error="invalid_token"');
      if (error instanceof RequestRefused && error.status === 403)
        return this.challenge(', error="insufficient_scope"', 403);
      if (!(error instanceof AssentError)) throw error;
      log(`the service did not identify a client: ${error.message}`);
      const message = "Assent cannot verify the token now; nothing was done; try again later";
      const unavailable = errorResponse(503, ERROR_CODE.internal, message);
      unavailable.headers.set("retry-after", "5");
      return unavailable;
    }
    const { principal, scopes, claims, key: { id, agent_id: agent } = {} } = identity ?? {};
    if (typeof principal !== "string" || typeof id !== "string" || scopes === undefined || claims === undefined)
      return errorResponse(502, ERROR_CODE.internal, "the answer of the service is not valid; nothing was done");
    if (typeof agent !== "string")
      return errorResponse(403, ERROR_CODE.invalidRequest, "the token is not bound to an agent; send one of an agent");
    const user = this.open(canonicalText([principal, id, agent, scopes, claims]), credential, number, agent);
    return user === null
      ? errorResponse(503, ERROR_CODE.internal, "there are too many users; try again later")
      : user.endpoint.fetch(request);
  }

  async close(): Promise<void> {
    clearInterval(this.sweep);
    await Promise.all([...this.users.values()].map(({ endpoint }) => endpoint.close()));
  }

  /** Returns the endpoint of an identity, from now on with the newest credential; null if there are too many. */
  private open(identity: string, credential: string, request: number, agent: string): UserEndpoint | null {
    let user = this.users.get(identity);
    if (user === undefined) {
      if (this.users.size >= MAX_USERS) return null;
      const created = { credential, request } as UserEndpoint;
      created.endpoint = this.options.createEndpoint(() => created.credential, agent);
      this.users.set(identity, created);
      user = created;
    }
    user.lastUsed = Date.now();
    if (request > user.request) Object.assign(user, { credential, request });
    return user;
  }

  private closeIdle(): void {
    for (const [identity, { endpoint, lastUsed }] of this.users)
      if (endpoint.openSessions === 0 && Date.now() - lastUsed > IDLE_MS) {
        this.users.delete(identity);
        void endpoint.close();
      }
  }

  private challenge(error: string, status = 401): Response {
    const header = `Bearer realm="assent mcp proxy", resource_metadata="${this.metadataUrl}"${error}`;
    return new Response(null, { status, headers: { "www-authenticate": header } });
  }
}
