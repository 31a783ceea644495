/** The fetch handler: match, authenticate, validate, handle, answer. It knows no resource and no database. */
import type { Config } from "../config/index.ts";
import type { CompletedRequest } from "../plugin.ts";
import { Refusal } from "../contract/errors.ts";
import type { Credential, Logger } from "../contract/host.ts";
import type { Facade, FacadeCall } from "../contract/facade.ts";
import type { Page } from "../contract/page.ts";
import type { Method, Reply, RequestContext, Route } from "../contract/resource.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { Scope } from "../domain/scopes.ts";
import { listAddresses, allowHeader, acceptsMethod, type Endpoint } from "./addresses.ts";
import { readBytes } from "./body.ts";
import { clientAddress } from "./client-address.ts";
import { createCors } from "./cors.ts";
import { matchesEntityTag } from "./entity-tag.ts";
import { readApiResponse, createGatewayCheck, readApiKey, buildApiRequest } from "./facade.ts";
import { acceptRequestId, commonHeaders } from "./headers.ts";
import { UNLIMITED_SHARE, type InFlight, type Queue, type Share } from "./in-flight.ts";
import { SMALL_RESPONSE, streamHeld, type ResponseShare, type ResponsesInFlight } from "./responses-in-flight.ts";
import { toProblem } from "./problem.ts";
import { createRateLimits, type RateLimitHeaders } from "./rate-limit.ts";
import type { RequestInfo } from "./request-info.ts";
import { parseQuery } from "./query.ts";
import { createRouter } from "./router.ts";

export interface FetchOptions {
  routes: readonly Route[];
  pages: readonly Page[];
  facades: readonly Facade[];
  /** Error codes that plugins brought. */
  errors: ReadonlySet<string>;
  /** Null when no live key has this value. */
  authenticate(value: string, how: { confirmed: boolean }): Promise<Credential | null>;
  config: Config;
  log: Logger;
  newId(): string;
  onResponse?(request: CompletedRequest): void;
  stopping: AbortSignal;
  inFlight: InFlight;
  responses: ResponsesInFlight;
  queue: Queue;
  /** The response class of the server at hand, where a faster one than the global exists. */
  Response?: typeof Response;
}

export type FetchHandler = (request: Request, info?: RequestInfo) => Promise<Response>;

export function createFetch(options: FetchOptions): FetchHandler {
  const { log, config, queue } = options;
  const Answer = options.Response ?? Response;
  const always = commonHeaders(config);
  const cors = createCors(config.server.cors_origins);
  const limits = createRateLimits(config.rate_limits);
  const astray = createGatewayCheck(options.facades);
  const match = createRouter(
    listAddresses(options, {
      bytes: config.server.max_body_bytes,
      values: config.server.max_json_values,
    }).map((address) => ({ path: address.path, target: address, below: address.facade?.includesSubpaths === true })),
  );

  async function dispatch(request: Request, call: Call, info: RequestInfo): Promise<Response> {
    const hit = await match(request.url);
    if (hit === null) throw new Refusal("NOT_FOUND", `nothing is at ${clip(new URL(request.url).pathname)}`);
    const { target, params } = hit;
    call.route = target.path;
    astray(target, request);
    if (target.facade !== null && acceptsMethod(target.facade, request.method))
      return respond(call, await enter(target.facade, request, call, params, info));
    if (request.method === "OPTIONS") {
      const methods = allowHeader(target);
      return respond(call, { status: 204, headers: { Allow: methods, ...cors?.preflight(request, methods) } });
    }
    const head = request.method === "HEAD";
    if (target.page !== null && (head || request.method === "GET"))
      return dress(call, await target.page.serve(request));
    const endpoint = target.methods.get((head ? "GET" : request.method) as Method);
    if (endpoint === undefined) {
      throw new Refusal(
        "METHOD_NOT_ALLOWED",
        `${target.path} takes ${allowHeader(target)}, not ${clip(request.method)}`,
        {
          headers: { Allow: allowHeader(target) },
        },
      );
    }
    return respond(call, await run(endpoint, request, call, params, info), request);
  }

  async function run(
    endpoint: Endpoint,
    request: Request,
    call: Call,
    params: Record<string, string>,
    info: RequestInfo,
  ): Promise<Reply> {
    const { route } = endpoint;
    // First of all: to refuse must cost little.
    if (route.queued === true) queue.assertRoom();
    const credential =
      route.scope === null ? null : await identify(request.headers.get("authorization"), request, call, info, route);
    if (credential !== null) {
      const wanted = typeof route.scope === "string" ? [route.scope] : (route.scope ?? []);
      const permitted = wanted.some((scope) => credential.hasScope(scope));
      const isCounted = info.inner !== true && route.exemptFromRateLimit !== true && route.urgent !== true;
      if (isCounted || (info.inner !== true && !permitted)) call.standing = limits.key(credential.key.id);
      if (!permitted) throw insufficient(credential, wanted);
    } else if (route.exemptFromRateLimit !== true) {
      call.standing = limits.address(addressOf(request, info));
    }
    const checked = endpoint.params(Object.entries(params)) as Record<string, string>;
    const query = endpoint.query(parseQuery(request.url));
    const { body, contentType } = await endpoint.body.read(
      request,
      info,
      route.urgent === true ? UNLIMITED_SHARE : call.share,
    );
    // Not before: who sends slowly takes nobody's place.
    if (route.queued === true) call.leave = queue.enter();
    const context: RequestContext = {
      request,
      requestId: call.id,
      params: checked,
      query,
      body,
      contentType,
      credential,
      headers: request.headers,
      releaseQueueSlot: () => call.leave?.(),
      reserveResponseBytes: (bytes) => responseOf(call).hold(bytes),
      // Made on demand: most handlers never wait.
      get signal() {
        return AbortSignal.any([request.signal, options.stopping]);
      },
      log,
    };
    return route.handle(context);
  }

  /** What goes wrong on the way is said by the facade: its client speaks another protocol. */
  async function enter(
    facade: Facade,
    request: Request,
    call: Call,
    params: Record<string, string>,
    info: RequestInfo,
  ): Promise<Reply> {
    try {
      const key = readApiKey(request, facade);
      call.standing = limits.key((await identify(key, request, call, info)).key.id);
      const body = await readBytes(request, facade.bodyLimit ?? config.server.max_body_bytes, info, call.share);
      const inner: RequestInfo = { ...(info.ip === undefined ? {} : { ip: info.ip }), inner: true };
      const ask: FacadeCall["callApi"] = async (method, path, what) =>
        readApiResponse(await serve(buildApiRequest(request, key, method, path, what), inner));
      return await facade.serve({ request, target: info.target?.() ?? null, params, body, callApi: ask, log });
    } catch (error) {
      const { status, body, headers } = toProblem(error, call.id, log, options.errors);
      const reply = facade.fault({ status, code: body.code, detail: body.detail });
      return { ...reply, headers: { ...headers, ...reply.headers } };
    }
  }

  const addressOf = (request: Request, info: RequestInfo): string =>
    clientAddress(request, info, config.server.trusted_proxies);

  type By = Pick<Route, "confirmsCredential">;
  async function identify(header: string | null, request: Request, call: Call, info: RequestInfo, by: By = {}) {
    try {
      const credential = await authenticate(header, by.confirmsCredential === true);
      call.keyId = credential.key.id;
      return credential;
    } catch (error) {
      if (!(error instanceof Refusal) || error.kind.status !== 401) throw error;
      call.standing = limits.address(addressOf(request, info));
      if (error.code === "INVALID_CREDENTIAL") limits.badKey(addressOf(request, info));
      throw error;
    }
  }

  async function authenticate(header: string | null, confirmed: boolean): Promise<Credential> {
    if (header === null) {
      throw new Refusal("MISSING_CREDENTIAL", "send your API key as `Authorization: Bearer <key>`", {
        headers: { "WWW-Authenticate": "Bearer" },
      });
    }
    const value = /^bearer +([^\s,]+)$/i.exec(header)?.[1];
    const credential = value === undefined ? null : await options.authenticate(value, { confirmed });
    if (credential === null) {
      const why =
        value === undefined
          ? "the Authorization header is not `Bearer <key>`"
          : "no live API key has this value: it was revoked, has expired or never was";
      throw new Refusal("INVALID_CREDENTIAL", why, { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } });
    }
    return credential;
  }

  const responseOf = (call: Call): ResponseShare => (call.response ??= options.responses.share(call.keyId ?? ""));

  /** A large body is held until its client has read it. What a GET found can be refused; what a POST did must be answered. */
  function held(call: Call, body: string | Uint8Array, isRead: boolean): BodyInit {
    if (body.length <= SMALL_RESPONSE || !isRead) return body as BodyInit;
    const bytes = typeof body === "string" ? utf8(body) : body;
    const share = options.responses.share(call.keyId ?? "");
    // In place of what its parts held.
    call.response?.release();
    share.hold(bytes.length);
    return streamHeld(bytes, share, STALL_MS);
  }

  /** A client that goes on asking on the same connection would hold up the stop until it is cut. */
  const closing = (): Record<string, string> => (options.stopping.aborted ? CLOSE : NONE);

  /** @param request given where the reply may be one to a GET or a HEAD */
  function respond(call: Call, reply: Reply, request?: Request): Response {
    const headers: Record<string, string> = { ...always, "X-Request-Id": call.id, ...call.standing, ...call.cors };
    let body: string | Uint8Array | ReadableStream<Uint8Array> | null = null;
    if (reply.json !== undefined) {
      headers["Content-Type"] = "application/json";
      body = JSON.stringify(reply.json);
    } else {
      body = reply.text ?? reply.bytes ?? reply.stream ?? null;
    }
    Object.assign(headers, reply.headers, closing());
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
      if (body.length > SMALL_RESPONSE) headers["Content-Length"] = String(Buffer.byteLength(body));
      return new Answer(held(call, body, request?.method === "GET"), { status: call.status, headers });
    }
    return new Answer(body, { status: call.status, headers });
  }

  /** A page brings its own headers; what it leaves open is filled in. */
  function dress(call: Call, response: Response): Response {
    const headers = new Headers(response.headers);
    for (const [name, value] of Object.entries({ ...always, "X-Request-Id": call.id, ...closing() }))
      if (!headers.has(name)) headers.set(name, value);
    call.status = response.status;
    return new Answer(response.body, { status: response.status, headers });
  }

  const serve: FetchHandler = async (request, info = {}) => {
    const started = performance.now();
    const call: Call = {
      id: options.newId(),
      clientId: acceptRequestId(request.headers.get("x-request-id")),
      route: null,
      keyId: null,
      status: 0,
      standing: NONE,
      cors: cors?.headers(request) ?? NONE,
      share: options.inFlight.share(),
    };
    let response: Response;
    try {
      response = await dispatch(request, call, info);
    } catch (error) {
      const { status, body, headers } = toProblem(error, call.id, log, options.errors);
      const reply: Reply = { status, headers: { "Content-Type": "application/problem+json", ...headers } };
      response = respond(call, request.method === "HEAD" ? reply : { ...reply, text: JSON.stringify(body) });
    } finally {
      call.response?.release();
      call.share.release();
      call.leave?.();
    }
    const status = call.status || response.status;
    const ms = Math.round(performance.now() - started);
    options.onResponse?.({ method: request.method, route: call.route, status, ms });
    if (config.log.level === "debug") {
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
    return response;
  };
  return serve;
}

/** What is known of a request while it runs. */
interface Call {
  id: string;
  /** What the client calls it. */
  clientId: string | null;
  route: string | null;
  keyId: string | null;
  status: number;
  standing: RateLimitHeaders;
  cors: Record<string, string>;
  /** What it holds of its body. */
  share: Share;
  /** What it holds of its response while that is put together. */
  response?: ResponseShare;
  leave?: () => void;
}

/** How long a client may leave a large response unread. Milliseconds. */
const STALL_MS = 30_000;
const NONE: Record<string, string> = {};
const CLOSE = { Connection: "close" };

function insufficient({ key }: Credential, wanted: readonly Scope[]): Refusal {
  return new Refusal(
    "INSUFFICIENT_SCOPE",
    `this needs the scope ${wanted.join(" or ")}, which the key "${key.name}" does not hold`,
    { headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${wanted.join(" ")}"` } },
  );
}

function clip(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
