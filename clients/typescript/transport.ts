/** Sends API calls, with timeouts, retries and error mapping. */
import {
  AssentError,
  errorFromResponse,
  ServiceUnavailable,
  timeoutError,
  Unauthorized,
  unreadableResponse,
  type Problem,
} from "./client-errors.ts";

interface TransportOptions {
  url: string;
  apiKey: string | null;
  fetch: typeof fetch;
  /** Ends every call of this client. */
  signal: AbortSignal | undefined;
  /** Timeout of one attempt in seconds, in addition to the requested wait. */
  timeout: number;
  retries: number;
}

export interface TransportCall {
  query?: object | undefined;
  body?: unknown;
  headers?: Record<string, string> | undefined;
  signal?: AbortSignal | undefined;
  /** Seconds that the service may wait before it responds. */
  wait?: number | undefined;
  /** Whether the call is retried after ServiceUnavailable. Default: true for GET, else false. */
  repeatable?: boolean;
  /** No retry starts later than this many seconds after the call. Default: no limit. */
  repeatFor?: number;
}

/** Maximum number of seconds before a retry. If the service requests a longer delay, the call fails. */
const LONGEST_PAUSE = 30;

export type Transport = ReturnType<typeof createTransport>;

export function createTransport(options: TransportOptions) {
  const base = options.url.replace(/\/+$/, "");

  async function open(method: string, path: string, call: TransportCall, signal: AbortSignal): Promise<Response> {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    return options.fetch(base + path + queryOf(call.query), {
      method,
      // Do not follow redirects: the key must not be sent to any other address.
      redirect: "error",
      credentials: "omit",
      signal,
      headers: {
        accept: "application/json",
        ...(options.apiKey === null ? {} : { authorization: `Bearer ${options.apiKey}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...call.headers,
      },
      ...(body === undefined ? {} : { body }),
    });
  }

  async function once(method: string, path: string, call: TransportCall): Promise<{ json: unknown; headers: Headers }> {
    const seconds = options.timeout + (call.wait ?? 0);
    const limit = createTimeout(seconds, [options.signal, call.signal]);
    try {
      limit.rethrowAbort();
      return await limit.race(
        open(method, path, call, limit.signal).then(async (response) => ({
          json: await readResponse(response),
          headers: response.headers,
        })),
      );
    } catch (error) {
      if (error instanceof Unauthorized && error.status === 401 && options.apiKey === null)
        throw new Unauthorized("no API key was sent; set ASSENT_API_KEY, or pass `apiKey` to createAssent", {
          status: 401,
          code: error.code,
          cause: error,
        });
      if (error instanceof AssentError) throw error;
      limit.rethrowAbort();
      throw limit.isOver()
        ? timeoutError(`${base} did not answer within ${seconds} seconds`)
        : new ServiceUnavailable(`${base} cannot be reached; is the service running there?`, {
            status: 0,
            code: "UNREACHABLE",
            cause: error,
          });
    } finally {
      limit.end();
    }
  }

  return {
    /**
     * Returns the response's JSON (undefined for an empty body) and headers. Throws AssentError, or the reason of an
     * aborted signal.
     */
    async send(method: string, path: string, call: TransportCall = {}): Promise<{ json: unknown; headers: Headers }> {
      const repeatable = call.repeatable ?? method === "GET";
      const until = performance.now() + (call.repeatFor ?? Infinity) * 1000;
      for (let attempt = 0; ; attempt++) {
        try {
          return await once(method, path, call);
        } catch (error) {
          if (!(error instanceof ServiceUnavailable) || !repeatable || attempt >= options.retries) throw error;
          if ((error.retryAfter ?? 0) > LONGEST_PAUSE) throw error;
          const seconds = computeBackoff(attempt, error.retryAfter);
          if (performance.now() + seconds * 1000 >= until) throw error;
          await pause(seconds, [options.signal, call.signal]);
        }
      }
    },
    open,
    signal: options.signal,
  };
}

/** Returns the seconds before the next attempt: the longer of Retry-After and an exponential back-off with jitter. */
export function computeBackoff(attempt: number, retryAfter: number | null): number {
  const backoff = Math.min(LONGEST_PAUSE, 0.1 * 2 ** attempt);
  return Math.max(retryAfter ?? 0, backoff * (0.5 + Math.random() / 2));
}

/** Returns the JSON of a successful response; undefined for an empty body. Throws AssentError otherwise. */
export async function readResponse(response: Response): Promise<unknown> {
  const { status, headers } = response;
  const text = await response.text();
  if (response.ok && text === "") return undefined;
  let json: unknown;
  try {
    if (/^application\/(?:[a-z.]+\+)?json\b/i.test(headers.get("content-type") ?? "")) json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  if (!response.ok) throw errorFromResponse(status, isObject(json) ? (json as Problem) : {}, retryAfterOf(headers));
  if (json === undefined) throw unreadableResponse(status, "it is not JSON");
  return json;
}

/** Parses Retry-After (RFC 9110 section 10.2.3): seconds, or a date. */
function retryAfterOf(headers: Headers): number | null {
  const value = headers.get("retry-after");
  if (value === null) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const until = Date.parse(value);
  return Number.isNaN(until) ? null : Math.max(0, Math.ceil((until - Date.now()) / 1000));
}

function queryOf(query: object = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Signals = (AbortSignal | undefined)[];

/**
 * Creates a timeout with a signal that aborts after `seconds` or with the first of `signals`. Does not use
 * AbortSignal.any, which leaks memory on long-lived signals.
 */
export function createTimeout(seconds: number, signals: Signals) {
  const controller = new AbortController();
  let isOver = false;
  const end = () => {
    isOver = true;
    controller.abort(new DOMException("the time is over", "TimeoutError"));
  };
  // Timers support at most 24 days, so a longer timeout does not get a timer.
  const timerFor = (time: number) => (time * 1000 < 2 ** 31 ? setTimeout(end, time * 1000) : undefined);
  let timer = timerFor(seconds);
  const ends = signals.map((signal) => {
    const abort = () => controller.abort(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    return () => signal?.removeEventListener("abort", abort);
  });
  return {
    signal: controller.signal,
    /** Rejects when the signal aborts, even if a custom fetch ignores the signal. */
    race: <T>(work: Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        const abort = () => reject(controller.signal.reason as Error);
        if (controller.signal.aborted) abort();
        controller.signal.addEventListener("abort", abort, { once: true });
        work.then(resolve, reject).finally(() => controller.signal.removeEventListener("abort", abort));
      }),
    /** Restarts the timeout with `time` seconds. */
    extend(time: number) {
      clearTimeout(timer);
      timer = timerFor(time);
    },
    isOver: () => isOver,
    rethrowAbort: () => signals.forEach((signal) => signal?.throwIfAborted()),
    end() {
      clearTimeout(timer);
      for (const end of ends) end();
    },
  };
}

/** Waits this number of seconds. Throws the reason of the first signal that aborts. */
export async function pause(seconds: number, signals: Signals): Promise<void> {
  const limit = createTimeout(seconds, signals);
  try {
    if (!limit.signal.aborted)
      await new Promise<void>((resolve) => {
        limit.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    limit.rethrowAbort();
  } finally {
    limit.end();
  }
}
