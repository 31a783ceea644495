/** The fetch handler: match, authenticate, validate, handle, answer. It knows no resource and no database. */
import type { Config } from "../config/index.ts";
import type { AnsweredRequest } from "../plugin.ts";
import { Refusal } from "../contract/errors.ts";
import type { Credential, Logger } from "../contract/host.ts";
import type { Page } from "../contract/page.ts";
import type { Method, Reply, RequestContext, Route } from "../contract/resource.ts";
import { sha256Hex, utf8 } from "../domain/hash.ts";
import type { Scope } from "../domain/scopes.ts";
import { addressesOf, allowed, type Endpoint } from "./addresses.ts";
import { clientAddress } from "./client-address.ts";
import { createCors } from "./cors.ts";
import { sameEntity } from "./entity-tag.ts";
import { FREE, type InFlight, type Queue, type Share } from "./in-flight.ts";
import { problemOf } from "./problem.ts";
import { createRateLimits, type Standing } from "./rate-limit.ts";
import type { RequestInfo } from "./request-info.ts";
import { createRouter } from "./router.ts";

export interface FetchOptions {
  routes: readonly Route[];
  pages: readonly Page[];
  /** Error codes that plugins brought. */
  errors: ReadonlySet<string>;
  /** Null when no live key has this value. */
  authenticate(value: string): Promise<Credential | null>;
  config: Config;
  log: Logger;
  newId(): string;
  onResponse?(request: AnsweredRequest): void;
  stopping: AbortSignal;
  inFlight: InFlight;
  queue: Queue;
  /** The response class of the server at hand, where a faster one than the global exists. */
  Response?: typeof Response;
}

export type FetchHandler = (request: Request, info?: RequestInfo) => Promise<Response>;

export function createFetch(options: FetchOptions): FetchHandler {
  const { log, config, queue } = options;
  const Answer = options.Response ?? Response;
  const always = standingHeaders(config);
  const cors = createCors(config.server.cors_origins);
  const limits = createRateLimits(config.rate_limits);
  const match = createRouter(
    addressesOf(options.routes, options.pages, {
      bytes: config.server.max_body_bytes,
      values: config.server.max_json_values,
    }).map((address) => ({
      path: address.path,
      target: address,
    })),
  );

  async function dispatch(request: Request, call: Call, info: RequestInfo): Promise<Response> {
    const hit = await match(request.url);
    if (hit === null) throw new Refusal("NOT_FOUND", `nothing is at ${clip(new URL(request.url).pathname)}`);
    const { target, params } = hit;
    call.route = target.path;
    if (request.method === "OPTIONS") {
      const methods = allowed(target);
      return respond(call, { status: 204, headers: { Allow: methods, ...cors?.preflight(request, methods) } });
    }
    const head = request.method === "HEAD";
    if (target.page !== null && (head || request.method === "GET"))
      return dress(call, await target.page.serve(request));
    const endpoint = target.methods.get((head ? "GET" : request.method) as Method);
    if (endpoint === undefined) {
      throw new Refusal("METHOD_NOT_ALLOWED", `${target.path} takes ${allowed(target)}, not ${clip(request.method)}`, {
        headers: { Allow: allowed(target) },
      });
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
    const keyless = route.scope === null || (route.keyOptional === true && !request.headers.has("authorization"));
    const credential = keyless ? null : await identify(request, call, info);
    if (credential !== null) {
      call.keyId = credential.key.id;
      const wanted = typeof route.scope === "string" ? [route.scope] : (route.scope ?? []);
      const permitted = wanted.some((scope) => credential.holds(scope));
      if (!permitted || route.urgent !== true) call.standing = limits.key(credential.key.id);
      if (!permitted) throw insufficient(credential, wanted);
    } else if (route.unlimited !== true) {
      call.standing = limits.address(addressOf(request, info));
    }
    const checked = endpoint.params(Object.entries(params)) as Record<string, string>;
    const query = endpoint.query(queryOf(request.url));
    const { body, contentType } = await endpoint.body.read(request, info, route.urgent === true ? FREE : call.share);
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
      rests: () => call.leave?.(),
      // Made on demand: most handlers never wait.
      get signal() {
        return AbortSignal.any([request.signal, options.stopping]);
      },
      log,
    };
    return route.handle(context);
  }

  const addressOf = (request: Request, info: RequestInfo): string =>
    clientAddress(request, info, config.server.trusted_proxies);

  async function identify(request: Request, call: Call, info: RequestInfo): Promise<Credential> {
    try {
      return await authenticate(request);
    } catch (error) {
      if (!(error instanceof Refusal) || error.kind.status !== 401) throw error;
      call.standing = limits.address(addressOf(request, info));
      if (error.code === "INVALID_CREDENTIAL") limits.badKey(addressOf(request, info));
      throw error;
    }
  }

  async function authenticate(request: Request): Promise<Credential> {
    const header = request.headers.get("authorization");
    if (header === null) {
      throw new Refusal("MISSING_CREDENTIAL", "send your API key as `Authorization: Bearer <key>`", {
        headers: { "WWW-Authenticate": "Bearer" },
      });
    }
    const value = /^bearer +([^\s,]+)$/i.exec(header)?.[1];
    const credential = value === undefined ? null : await options.authenticate(value);
    if (credential === null) {
      const why =
        value === undefined
          ? "the Authorization header is not `Bearer <key>`"
          : "no live API key has this value: it was revoked, has expired or never was";
      throw new Refusal("INVALID_CREDENTIAL", why, { headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' } });
    }
    return credential;
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
      if (sameEntity(request.headers.get("if-none-match"), headers["ETag"])) {
        call.status = 304;
        delete headers["Content-Type"];
        body = null;
      }
    }
    if (request?.method === "HEAD") {
      reply.stream?.cancel().catch(() => undefined);
      body = null;
    }
    return new Answer(body as BodyInit | null, { status: call.status, headers });
  }

  /** A page brings its own headers; what it leaves open is filled in. */
  function dress(call: Call, response: Response): Response {
    const headers = new Headers(response.headers);
    for (const [name, value] of Object.entries({ ...always, "X-Request-Id": call.id, ...closing() }))
      if (!headers.has(name)) headers.set(name, value);
    call.status = response.status;
    return new Answer(response.body, { status: response.status, headers });
  }

  return async (request, info = {}) => {
    const started = performance.now();
    const call: Call = {
      id: options.newId(),
      clientId: requestId(request.headers.get("x-request-id")),
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
      const { status, body, headers } = problemOf(error, call.id, log, options.errors);
      const reply: Reply = { status, headers: { "Content-Type": "application/problem+json", ...headers } };
      response = respond(call, request.method === "HEAD" ? reply : { ...reply, text: JSON.stringify(body) });
    } finally {
      call.share.release();
      call.leave?.();
    }
    const status = call.status || response.status;
    const ms = Math.round(performance.now() - started);
    options.onResponse?.({ method: request.method, route: call.route, status, ms });
    if (config.log.level === "info" || config.log.level === "debug") {
      log.info("request", {
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
}

/** What is known of a request while it runs. */
interface Call {
  id: string;
  /** What the client calls it. */
  clientId: string | null;
  route: string | null;
  keyId: string | null;
  status: number;
  standing: Standing;
  cors: Record<string, string>;
  /** What it holds of its body. */
  share: Share;
  leave?: () => void;
}

const NONE: Record<string, string> = {};
const CLOSE = { Connection: "close" };

/** What every response carries. A page that needs more than nothing brings a policy of its own. */
function standingHeaders(config: Config): Record<string, string> {
  return {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": config.server.cors_origins.length > 0 ? "cross-origin" : "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    ...(config.server.public_url?.startsWith("https:") === true
      ? { "Strict-Transport-Security": "max-age=31536000" }
      : {}),
  };
}

function insufficient({ key }: Credential, wanted: readonly Scope[]): Refusal {
  return new Refusal(
    "INSUFFICIENT_SCOPE",
    `this needs the scope ${wanted.join(" or ")}, which the key "${key.name}" does not hold`,
    { headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${wanted.join(" ")}"` } },
  );
}

function queryOf(url: string): Iterable<readonly [string, string]> {
  const at = url.indexOf("?");
  return at < 0 ? [] : new URLSearchParams(url.slice(at).replace(/#.*$/, ""));
}

/** An id that the client chose is logged beside ours when it can do no harm there; two requests can have the same. */
function requestId(given: string | null): string | null {
  return given !== null && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : null;
}

function clip(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
