/** The servers of one session: reached, watched, and reached again when they are gone. */
import { INITIALIZE_TIMEOUT_MS, settlesWithin } from "./slow-upstreams.ts";
import { isObject, type Notification, type Reply } from "../transport/message.ts";
import type { ServerConfig } from "../config/server-config.ts";
import { connectUpstream, type ClientFacts, type ServerQuestion, type Upstream } from "./upstream.ts";

export interface UpstreamPoolHandlers {
  /** What a server asks of the client, of its own accord. */
  askClient(upstream: Upstream, question: ServerQuestion, signal: AbortSignal): Promise<Reply>;
  onnotification(upstream: Upstream, notification: Notification): void;
  /** Its tools, prompts and resources are others now: it is gone, or back. */
  changed(upstream: Upstream): void;
  /** The only server, a process, has ended: so does what stands for it. */
  ended(why: string): void;
  log(line: string): void;
}

/** What servers have lists of, which may change. */
export const LIST_KINDS = ["tools", "prompts", "resources"] as const;
/** Before a server is reached again, by how often it was lost in a row. Milliseconds. */
const RECONNECT_DELAYS_MS = [250, 1000, 4000, 15_000, 60_000];
/** A server that was there so long is not one that fails at once. Milliseconds. */
const STABLE_AFTER_MS = 60_000;

interface PoolEntry {
  config: ServerConfig;
  upstream: Upstream | null;
  lossesInARow: number;
  timer: NodeJS.Timeout | undefined;
}

export type UpstreamPool = ReturnType<typeof createUpstreamPool>;

export function createUpstreamPool(servers: readonly ServerConfig[], handlers: UpstreamPoolHandlers) {
  const entries: PoolEntry[] = servers.map((config) => ({ config, upstream: null, lossesInARow: 0, timer: undefined }));
  const opening = new Set<Promise<unknown>>();
  const ending = new AbortController();
  let begun = false;
  let client: ClientFacts = { version: "", info: {}, capabilities: {} };

  function trackConnect(place: PoolEntry): Promise<Upstream> {
    const attempt = connect(place);
    opening.add(attempt);
    attempt.finally(() => opening.delete(attempt)).catch(() => {});
    return attempt;
  }

  async function connect(place: PoolEntry): Promise<Upstream> {
    let self: Upstream | null = null;
    const begun = performance.now();
    const lose = (why: string): void => {
      if (ending.signal.aborted || self === null || place.upstream !== self) return;
      place.upstream = null;
      if (performance.now() - begun > STABLE_AFTER_MS) place.lossesInARow = 0;
      if (servers.length === 1 && "command" in place.config.target) {
        handlers.log(why);
        return handlers.ended(why);
      }
      handlers.log(`${why}; it is reached again`);
      handlers.changed(self);
      retry(place);
    };
    const upstream = await connectUpstream(
      place.config,
      client,
      {
        askClient: (question, signal) =>
          self === null ? Promise.reject(new Error("too early")) : handlers.askClient(self, question, signal),
        onnotification: (notification) => self !== null && handlers.onnotification(self, notification),
        onclose: lose,
      },
      handlers.log,
      ending.signal,
    );
    self = place.upstream = upstream;
    if (upstream.closed !== null) lose(upstream.closed);
    return upstream;
  }

  /** Of a server that was not there when the client began, or was lost since. */
  function announce(place: PoolEntry, upstream: Upstream): void {
    if (!begun || place.upstream !== upstream) return;
    handlers.log(`the server "${place.config.name}" is there`);
    handlers.changed(upstream);
  }

  function retry(place: PoolEntry): void {
    if (ending.signal.aborted) return;
    const pause = RECONNECT_DELAYS_MS[Math.min(place.lossesInARow++, RECONNECT_DELAYS_MS.length - 1)];
    place.timer = setTimeout(() => {
      trackConnect(place).then(
        (upstream) => announce(place, upstream),
        (error: unknown) => {
          if (ending.signal.aborted) return;
          handlers.log(describeError(error));
          retry(place);
        },
      );
    }, pause);
    place.timer.unref();
  }

  /** The first attempt. With several servers one that fails is tried again. */
  async function connectFirst(place: PoolEntry): Promise<void> {
    try {
      announce(place, await trackConnect(place));
    } catch (error) {
      if (entries.length > 1 && !ending.signal.aborted) {
        handlers.log(`${describeError(error)}; its tools are missing until it is there`);
        retry(place);
      }
      throw error;
    }
  }

  return {
    /** Starts or reaches the servers. Of several, those that are slow come later. @throws Error with a sentence, when none is there */
    async open(of: ClientFacts): Promise<void> {
      client = of;
      const attempts = entries.map(connectFirst);
      if (attempts.length > 1) await settlesWithin(Promise.allSettled(attempts), INITIALIZE_TIMEOUT_MS);
      try {
        await Promise.any(attempts);
      } catch (error) {
        throw new Error((error as AggregateError).errors.map(describeError).join("; "), { cause: error });
      }
      begun = true;
    },
    get facts(): ClientFacts {
      return client;
    },
    live: (): Upstream[] => entries.flatMap(({ upstream }) => (upstream?.closed === null ? [upstream] : [])),
    async close(): Promise<void> {
      ending.abort();
      for (const { timer } of entries) clearTimeout(timer);
      await Promise.allSettled(opening);
      await Promise.all(entries.map(async ({ upstream }) => upstream?.close()));
    },
  };
}

/** Of what a client is told that there are others, when a server has gone or come back. */
export function listKindsOf({ capabilities }: Upstream): string[] {
  return LIST_KINDS.filter((kind) => isObject(capabilities[kind]));
}

const describeError = (error: unknown): string => (error instanceof Error ? error.message : String(error));
