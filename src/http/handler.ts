/**
 * The fetch handler: routes, authenticates and validates requests, and responds to them. Does not depend on resources
 * or the database.
 */
import type { Config } from "../config/index.ts";
import { Refusal } from "../contract/errors.ts";
import type { Credential, Logger } from "../contract/host.ts";
import type { AuthenticationResult, Authenticator } from "../contract/authenticator.ts";
import type { Facade, FacadeCall } from "../contract/facade.ts";
import type { Page } from "../contract/page.ts";
import type { HeldCredential } from "../contract/held-credential.ts";
import type { CompletedRequest, Method, Reply, RequestContext, Route } from "../contract/resource.ts";
import type { Tracing, TraceStage } from "../contract/tracer.ts";
import { callerId } from "../domain/caller-id.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import { addressAtSite } from "../domain/loopback.ts";
import type { Scope } from "../domain/scopes.ts";
import { listPathTargets, allowHeader, acceptsMethod, type PathTargets, type CompiledRoute } from "./path-targets.ts";
import { readBytes } from "./body.ts";
import { clientAddress } from "./client-address.ts";
import { createCors, type Cors } from "./cors.ts";
import { matchesEntityTag } from "./entity-tag.ts";
import { guardStream } from "./guard-stream.ts";
import { readApiResponse, createGatewayCheck, readApiKey, buildApiRequest } from "./facade.ts";
import { acceptRequestId, commonHeaders } from "./headers.ts";
import {
  UNLIMITED_SHARE,
  type RequestByteBudget,
  type RequestQueue,
  type QueueSlot,
  type RequestByteShare,
} from "./overload-limits.ts";
import {
  SMALL_RESPONSE_BYTES,
  streamReservedResponse,
  type ResponseByteShare,
  type ResponseByteBudget,
} from "./response-byte-budget.ts";
import { toProblem } from "./problem.ts";
import { createRateLimits, type RateLimitHeaders, type RateLimits } from "./rate-limit.ts";
import type { RequestInfo } from "./request-info.ts";
import { parseQuery } from "./query.ts";
import { createRouter, type Router } from "./router.ts";

interface FetchOptions {
  routes: readonly Route[];
  pages: readonly Page[];
  facades: readonly Facade[];
  authenticators: readonly Authenticator[];
  /** Error codes of plugins. */
  errors: ReadonlySet<string>;
  /** Authenticates an API key. Resolves to null if no valid key has this value. */
  authenticate(value: string, options: { confirmed: boolean }): Promise<Credential | null>;
  /** Starts to follow a credential for the answer to one request. */
  hold(credential: Credential): HeldCredential;
  config: Config;
  log: Logger;
  /** Returns the origin at which people use the service; null if it is unknown. */
  origin(): string | null;
  newId(): string;
  onResponse?(request: CompletedRequest): void;
  stopping: AbortSignal;
  /** The traces; null without a tracing plugin. */
  tracing: Tracing | null;
  inFlight: RequestByteBudget;
  responses: ResponseByteBudget;
  queue: RequestQueue;
  /** The response class of the server, if it is faster than the global class. */
  Response?: typeof Response;
}

export type FetchHandler = (request: Request, info?: RequestInfo) => Promise<Response>;

export function createFetch(options: FetchOptions): FetchHandler {
  const server = new RequestHandler(options);
  return (request, info = {}) => server.serve(request, info);
}

/** Percent-decoded path parameters. */
type Params = Record<string, string>;

class RequestHandler {
  private readonly options: FetchOptions;
  private readonly Response: typeof Response;
  private readonly commonHeaders: Record<string, string>;
  private readonly cors: Cors | null;
  private readonly limits: RateLimits;
  private readonly checkGateway: ReturnType<typeof createGatewayCheck>;
  private readonly match: Router<PathTargets>;

  constructor(options: FetchOptions) {
    const { config } = options;
    this.options = options;
    this.Response = options.Response ?? Response;
    this.commonHeaders = commonHeaders(config);
    this.cors = createCors(config.server.cors_origins);
    this.limits = createRateLimits(config.rate_limits);
    this.checkGateway = createGatewayCheck(options.facades);
    const addresses = listPathTargets(options, {
      bytes: config.server.max_body_bytes,
      values: config.server.max_json_values,
    });
    this.match = createRouter(
      addresses.map((address) => ({
        path: address.path,
        target: address,
        includesSubpaths: address.facade?.includesSubpaths === true,
      })),
    );
  }

  async serve(request: Request, info: RequestInfo): Promise<Response> {
    const call: Call = {
      id: this.options.newId(),
      receivedAt: performance.now(),
      clientId: acceptRequestId(request.headers.get("x-request-id")),
      route: null,
      keyId: null,
      caller: null,
      status: 0,
      rateLimit: NO_HEADERS,
      cors: this.cors?.headers(request) ?? NO_HEADERS,
      session: NO_HEADERS,
      isStreaming: false,
      share: this.options.inFlight.share(),
    };
    const { tracing } = this.options;
    if (tracing === null) return this.answer(request, call, info);
    return tracing.run(
      request,
      () => this.answer(request, call, info),
      () => call.route,
    );
  }

  private async answer(request: Request, call: Call, info: RequestInfo): Promise<Response> {
    let response: Response;
    try {
      response = await this.dispatch(request, call, info);
    } catch (error) {
      const { status, body, headers } = toProblem(error, call.id, this.options.log, this.options.errors);
      const reply: Reply = { status, headers: { "Content-Type": "application/problem+json", ...headers } };
      response = this.respond(call, request.method === "HEAD" ? reply : { ...reply, text: JSON.stringify(body) });
    } finally {
      call.response?.release();
      call.share.release();
      call.slot?.leave();
      if (!call.isStreaming) call.held?.release();
    }
    this.report(request, call, {
      status: call.status || response.status,
      ms: Math.round(performance.now() - call.receivedAt),
    });
    return response;
  }

  private report(request: Request, call: Call, { status, ms }: { status: number; ms: number }): void {
    const { config, log, onResponse } = this.options;
    onResponse?.({ method: request.method, route: call.route, status, ms });
    if (config.log.level !== "debug") return;
    log.debug("request", {
      method: request.method,
      route: call.route,
      status,
      ms,
      request_id: call.id,
      ...(call.clientId === null ? {} : { client_request_id: call.clientId }),
      key_id: call.keyId,
    });
  }

  private async dispatch(request: Request, call: Call, info: RequestInfo): Promise<Response> {
    const found = await this.match(request.url);
    if (found === null)
      throw new Refusal("NOT_FOUND", `there is no resource at ${clip(new URL(request.url).pathname)}`);
    const { target, params } = found;
    call.route = target.path;
    this.checkGateway(target, request);
    if (target.facade !== null && acceptsMethod(target.facade, request.method))
      return this.respond(call, await this.serveFacade(target.facade, request, call, params, info));
    if (request.method === "OPTIONS") {
      const methods = allowHeader(target);
      return this.respond(call, {
        status: 204,
        headers: { Allow: methods, ...this.cors?.preflight(request, methods) },
      });
    }
    const isHead = request.method === "HEAD";
    if (target.page !== null && (isHead || request.method === "GET")) {
      const address = addressAtSite(this.options.origin(), request);
      if (address !== null) return this.respond(call, { status: 307, headers: { Location: address } });
      return this.respondWithPage(call, await target.page.serve(request));
    }
    const endpoint = target.methods.get((isHead ? "GET" : request.method) as Method);
    if (endpoint === undefined)
      throw new Refusal(
        "METHOD_NOT_ALLOWED",
        `${target.path} accepts ${allowHeader(target)}; got ${clip(request.method)}`,
        { headers: { Allow: allowHeader(target) } },
      );
    return this.respond(call, await this.runRoute(endpoint, request, call, params, info), request);
  }

  private async runRoute(
    endpoint: CompiledRoute,
    request: Request,
    call: Call,
    params: Params,
    info: RequestInfo,
  ): Promise<Reply> {
    const { options } = this;
    const { route } = endpoint;
    // Check the queue first, so that refusing a request under load is cheap.
    if (route.queued === true) options.queue.assertRoom();
    const credential = await this.stage("authenticate", () => this.authorize(route, request, call, info));
    const checkedParams = endpoint.params(Object.entries(params)) as Params;
    const query = endpoint.query(parseQuery(request.url));
    const held = credential === null ? null : (call.held = options.hold(credential));
    let mayTakeLong = request.method === "GET" || request.method === "HEAD";
    const share = route.urgent === true ? UNLIMITED_SHARE : call.share;
    const { body, contentType } = await this.stage("read_body", () => endpoint.body.read(request, info, share));
    // A slow upload can outlast the credential.
    if (held !== null && !held.isCurrent()) await held.confirm();
    // Enter the queue only after the body has been read, so that slow uploads do not occupy a slot.
    if (route.queued === true) call.slot = options.queue.enter();
    const context: RequestContext = {
      request,
      requestId: call.id,
      params: checkedParams,
      query,
      body,
      contentType,
      credential,
      headers: request.headers,
      account: info.account ?? null,
      releaseQueueSlot: () => {
        mayTakeLong = true;
        call.slot?.leave();
      },
      withoutQueueSlot: (work) => {
        mayTakeLong = true;
        return call.slot?.without(work) ?? work();
      },
      reauthenticate: async () => held?.confirm() ?? null,
      reserveResponseBytes: (bytes) => (call.response ??= options.responses.share(call.caller ?? "")).hold(bytes),
      // Create the signal on demand, because most handlers never wait.
      get signal() {
        mayTakeLong = true;
        return AbortSignal.any([request.signal, held?.signal ?? options.stopping]);
      },
      log: options.log,
    };
    let reply: Reply;
    try {
      reply = await route.handle(context);
    } catch (error) {
      // A handler that stops when its signal aborts does not know why.
      throw held?.refusal ?? error;
    }
    // A handler that responds without waiting has confirmed the credential under the ledger's lock. It may have ended
    // the credential itself.
    if (!mayTakeLong) return reply;
    try {
      await held?.confirm();
    } catch (error) {
      reply.stream?.cancel().catch(() => undefined);
      throw error;
    }
    return reply;
  }

  private stage<T>(stage: TraceStage, work: () => Promise<T>): Promise<T> {
    return this.options.tracing?.stage(stage, work) ?? work();
  }

  /** Authenticates, counts the request for its rate limit, and checks the scope. Returns null for a public route. */
  private async authorize(route: Route, request: Request, call: Call, info: RequestInfo): Promise<Credential | null> {
    if (route.scope === null) {
      if (route.exemptFromRateLimit !== true) call.rateLimit = this.limits.address(this.addressOf(request, info));
      return null;
    }
    const header = request.headers.get("authorization");
    const credential =
      (header === null ? await this.authenticateOtherwise(request, call, info) : null) ??
      (await this.identify(header, request, call, info, route.confirmsCredential === true));
    const scopes = typeof route.scope === "string" ? [route.scope] : route.scope;
    const permitted = scopes.some((scope) => credential.hasScope(scope));
    const isCounted = info.inner !== true && route.exemptFromRateLimit !== true && route.urgent !== true;
    if (isCounted || (info.inner !== true && !permitted)) call.rateLimit = this.limits.key(callerId(credential));
    if (!permitted) throw insufficientScopeRefusal(credential, scopes);
    return credential;
  }

  /** Serves a facade. The facade renders errors, because its clients use a different protocol. */
  private async serveFacade(
    facade: Facade,
    request: Request,
    call: Call,
    params: Params,
    info: RequestInfo,
  ): Promise<Reply> {
    const { config, log, errors } = this.options;
    try {
      const key = facade.verifiesCallers === true ? null : readApiKey(request, facade);
      call.rateLimit =
        facade.verifiesCallers === true
          ? this.limits.address(this.addressOf(request, info))
          : this.limits.key(callerId(await this.identify(key, request, call, info, false)));
      const body = await readBytes(request, facade.bodyLimit ?? config.server.max_body_bytes, info, call.share);
      const inner: RequestInfo = { ...(info.ip === undefined ? {} : { ip: info.ip }), inner: true };
      const callApi: FacadeCall["callApi"] = async (method, path, options) => {
        const { account } = options ?? {};
        const isVerified = account !== undefined && facade.verifiesCallers === true;
        const caller = isVerified ? { ...inner, account } : inner;
        return readApiResponse(await this.serve(buildApiRequest(request, key, method, path, options), caller));
      };
      const target = info.target?.() ?? null;
      return await facade.serve({ request, target, params, body, receivedAt: call.receivedAt, callApi, log });
    } catch (error) {
      const { status, body, headers } = toProblem(error, call.id, log, errors);
      const reply = facade.fault({ status, code: body.code, detail: body.detail });
      return { ...reply, headers: { ...headers, ...reply.headers } };
    }
  }

  private addressOf(request: Request, info: RequestInfo): string {
    return clientAddress(request, info, this.options.config.server.trusted_proxies);
  }

  /** Identifies the caller, and counts failures for the rate limit of the client's address. */
  private async identify(
    header: string | null,
    request: Request,
    call: Call,
    info: RequestInfo,
    confirmed: boolean,
  ): Promise<Credential> {
    try {
      const credential = await this.authenticate(header, confirmed);
      this.noteCaller(call, credential);
      return credential;
    } catch (error) {
      // Also count a refusal that occurs because the issuer's keys cannot be read, so that the token cannot be
      // verified.
      if (!(error instanceof Refusal)) throw error;
      call.rateLimit = this.limits.address(this.addressOf(request, info));
      if (error.code === "INVALID_CREDENTIAL") this.limits.badKey(this.addressOf(request, info));
      throw error;
    }
  }

  /** Authenticates a request without an `Authorization` header, for example by a session. Not used by facades. */
  private async authenticateOtherwise(request: Request, call: Call, info: RequestInfo): Promise<Credential | null> {
    for (const authenticator of this.options.authenticators) {
      let found: AuthenticationResult | null;
      try {
        found = (await authenticator.authenticate?.(request)) ?? null;
      } catch (error) {
        call.rateLimit = this.limits.address(this.addressOf(request, info));
        throw error;
      }
      if (found === null) continue;
      if (found.headers !== undefined) call.session = found.headers;
      this.noteCaller(call, found.credential);
      return found.credential;
    }
    return null;
  }

  private noteCaller(call: Call, credential: Credential): void {
    call.keyId = credential.key.id;
    call.caller = callerId(credential);
  }

  private async authenticateToken(token: string): Promise<Credential | null> {
    for (const authenticator of this.options.authenticators) {
      const credential = await authenticator.authenticateToken?.(token);
      if (credential !== undefined && credential !== null) return credential;
    }
    return null;
  }

  private async authenticate(header: string | null, confirmed: boolean): Promise<Credential> {
    if (header === null) {
      throw new Refusal("MISSING_CREDENTIAL", "send your API key as `Authorization: Bearer <key>`", {
        headers: { "WWW-Authenticate": "Bearer" },
      });
    }
    const value = /^bearer +([^\s,]+)$/i.exec(header)?.[1];
    const credential =
      value === undefined
        ? null
        : ((JWT_FORM.test(value) ? await this.authenticateToken(value) : null) ??
          (await this.options.authenticate(value, { confirmed })));
    if (credential !== null) return credential;
    throw new Refusal(
      "INVALID_CREDENTIAL",
      value === undefined
        ? "the Authorization header is not `Bearer <key>`"
        : "the API key is not valid: it was revoked, has expired, or never existed",
      { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } },
    );
  }

  /** @param request the request to a route, for which ETag, If-None-Match and HEAD apply */
  private respond(call: Call, reply: Reply, request?: Request): Response {
    const headers: Record<string, string> = { "X-Request-Id": call.id };
    Object.assign(headers, this.commonHeaders, call.rateLimit, call.cors, call.session);
    let body: string | Uint8Array | ReadableStream<Uint8Array> | null = null;
    if (reply.json !== undefined) {
      headers["Content-Type"] = "application/json";
      body = JSON.stringify(reply.json);
    } else {
      body = reply.text ?? reply.bytes ?? reply.stream ?? null;
    }
    Object.assign(headers, reply.headers, this.connectionHeaders());
    call.status = reply.status;
    if (request !== undefined && reply.status === 200 && (request.method === "GET" || request.method === "HEAD")) {
      if (typeof body === "string") headers["ETag"] ??= `"${sha256Hex(utf8(body)).slice(0, 32)}"`;
      if (matchesEntityTag(request.headers.get("if-none-match"), headers["ETag"])) {
        call.status = 304;
        delete headers["Content-Type"];
        body = null;
      }
    }
    if (request?.method === "HEAD") {
      reply.stream?.cancel().catch(() => undefined);
      body = null;
    }
    if (typeof body === "string" || body instanceof Uint8Array) {
      if (body.length > SMALL_RESPONSE_BYTES) headers["Content-Length"] = String(Buffer.byteLength(body));
      body = this.holdResponse(call, body, request?.method === "GET");
    }
    if (body instanceof ReadableStream) body = this.guard(call, body, reply);
    return new this.Response(body as BodyInit | null, { status: call.status, headers });
  }

  /** Ends the stream if the caller's credential ends or changes. */
  private guard(call: Call, body: ReadableStream<Uint8Array>, { farewell }: Reply): ReadableStream<Uint8Array> {
    const { held } = call;
    if (held === undefined) return body;
    call.isStreaming = true;
    return guardStream(body, held, farewell, () => held.release());
  }

  /**
   * Counts the bytes of a large response until the client has read it. Counts only responses to GET, because the result
   * of a POST must be returned even if the limit is reached.
   */
  private holdResponse(
    call: Call,
    body: string | Uint8Array,
    isGet: boolean,
  ): string | Uint8Array | ReadableStream<Uint8Array> {
    if (body.length <= SMALL_RESPONSE_BYTES || !isGet) return body;
    const bytes = typeof body === "string" ? utf8(body) : body;
    const share = this.options.responses.share(call.caller ?? "");
    // Release the bytes that were counted while the response was built, because they are counted again now.
    call.response?.release();
    share.hold(bytes.length);
    return streamReservedResponse(bytes, share, STALL_MS);
  }

  /**
   * Returns the header that closes the connection while the service stops. A client that continues to use its
   * connection would delay the stop.
   */
  private connectionHeaders(): Record<string, string> {
    return this.options.stopping.aborted ? CLOSE_HEADERS : NO_HEADERS;
  }

  /** Adds the common headers that the page does not set. */
  private respondWithPage(call: Call, response: Response): Response {
    const headers = new Headers(response.headers);
    const defaults = { ...this.commonHeaders, "X-Request-Id": call.id, ...this.connectionHeaders() };
    for (const [name, value] of Object.entries(defaults)) if (!headers.has(name)) headers.set(name, value);
    call.status = response.status;
    return new this.Response(response.body, { status: response.status, headers });
  }
}

/** State of a request while it is handled. */
interface Call {
  id: string;
  /** On the clock of `performance.now()`. */
  receivedAt: number;
  /** Request id that the client sent. */
  clientId: string | null;
  route: string | null;
  keyId: string | null;
  /** Id under which the caller's requests are counted; null without a credential. */
  caller: string | null;
  status: number;
  rateLimit: RateLimitHeaders;
  cors: Record<string, string>;
  /** Response headers from the authenticator that recognized the caller. */
  session: Record<string, string>;
  /** Bytes of the request body. */
  share: RequestByteShare;
  /** Bytes of the response while it is built. */
  response?: ResponseByteShare;
  slot?: QueueSlot;
  /** The caller's credential, for routes that require one. */
  held?: HeldCredential;
  /** Whether the response is a stream that releases `held` at its end. */
  isStreaming: boolean;
}

/** Stall timeout: a client that reads nothing of a large response for this long is disconnected. Milliseconds. */
const STALL_MS = 30_000;
/**
 * Form of a JWS in Compact Serialization. An unsecured token, with an empty signature, also matches; authenticators
 * refuse such tokens.
 */
const JWT_FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const NO_HEADERS: Record<string, string> = {};
const CLOSE_HEADERS = { Connection: "close" };

function insufficientScopeRefusal({ key }: Credential, scopes: readonly Scope[]): Refusal {
  return new Refusal(
    "INSUFFICIENT_SCOPE",
    `this requires the scope ${scopes.join(" or ")}, which the key "${key.name}" does not have`,
    { headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${scopes.join(" ")}"` } },
  );
}

function clip(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
