/** Connects a session to its servers, and reconnects lost ones. */
import { INITIALIZE_TIMEOUT_MS, settlesWithin } from "./slow-upstreams.ts";
import { isObject, type Notification, type Reply } from "../transport/rpc-message.ts";
import type { ServerConfig } from "../config/server-config.ts";
import { connectUpstream, type ClientFacts, type ServerQuestion, type Upstream } from "./upstream.ts";

interface UpstreamPoolHandlers {
  /** Forwards a server's question to the client. */
  askClient(upstream: Upstream, question: ServerQuestion, signal: AbortSignal): Promise<Reply>;
  onnotification(upstream: Upstream, notification: Notification): void;
  /** Called when a server connects or disconnects, because the lists change. */
  changed(upstream: Upstream): void;
  /** Called when the only server, a process, has exited: the session ends with it. */
  ended(reason: string): void;
  log(line: string): void;
}

/** Kinds of lists that can change. */
export const LIST_KINDS = ["tools", "prompts", "resources"] as const;
/** Delays before reconnecting, by the number of losses in a row. Milliseconds. */
const RECONNECT_DELAYS_MS = [250, 1000, 4000, 15_000, 60_000];
/** A connection that lasted this long resets the number of losses. Milliseconds. */
const STABLE_AFTER_MS = 60_000;

interface PoolEntry {
  config: ServerConfig;
  upstream: Upstream | null;
  lossesInARow: number;
  timer: NodeJS.Timeout | undefined;
}

export function createUpstreamPool(servers: readonly ServerConfig[], handlers: UpstreamPoolHandlers) {
  const entries: PoolEntry[] = servers.map((config) => ({ config, upstream: null, lossesInARow: 0, timer: undefined }));
  const pendingConnects = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let isOpen = false;
  let client: ClientFacts = { version: "", info: {}, capabilities: {} };

  function trackConnect(entry: PoolEntry): Promise<Upstream> {
    const attempt = connect(entry);
    pendingConnects.add(attempt);
    attempt.finally(() => pendingConnects.delete(attempt)).catch(() => {});
    return attempt;
  }

  async function connect(entry: PoolEntry): Promise<Upstream> {
    let current: Upstream | null = null;
    const connectingSince = performance.now();
    const handleLoss = (reason: string): void => {
      if (closing.signal.aborted || current === null || entry.upstream !== current) return;
      entry.upstream = null;
      if (performance.now() - connectingSince > STABLE_AFTER_MS) entry.lossesInARow = 0;
      if (servers.length === 1 && "command" in entry.config.target) {
        handlers.log(reason);
        return handlers.ended(reason);
      }
      handlers.log(`${reason}; reconnecting`);
      handlers.changed(current);
      retry(entry);
    };
    const upstream = await connectUpstream(
      entry.config,
      client,
      {
        askClient: (question, signal) =>
          current === null
            ? Promise.reject(new Error("the server is not connected yet"))
            : handlers.askClient(current, question, signal),
        onnotification: (notification) => current !== null && handlers.onnotification(current, notification),
        onclose: handleLoss,
      },
      handlers.log,
      closing.signal,
    );
    current = entry.upstream = upstream;
    if (upstream.closed !== null) handleLoss(upstream.closed);
    return upstream;
  }

  /** Reports a server that has connected after the session started. */
  function announce(entry: PoolEntry, upstream: Upstream): void {
    if (!isOpen || entry.upstream !== upstream) return;
    handlers.log(`the server "${entry.config.name}" is connected`);
    handlers.changed(upstream);
  }

  function retry(entry: PoolEntry): void {
    if (closing.signal.aborted) return;
    const delay = RECONNECT_DELAYS_MS[Math.min(entry.lossesInARow++, RECONNECT_DELAYS_MS.length - 1)];
    entry.timer = setTimeout(() => {
      trackConnect(entry).then(
        (upstream) => announce(entry, upstream),
        (error: unknown) => {
          if (closing.signal.aborted) return;
          handlers.log(describeError(error));
          retry(entry);
        },
      );
    }, delay);
    entry.timer.unref();
  }

  /** Connects for the first time. With several servers, a failed attempt is repeated. */
  async function connectFirst(entry: PoolEntry): Promise<void> {
    try {
      announce(entry, await trackConnect(entry));
    } catch (error) {
      if (entries.length > 1 && !closing.signal.aborted) {
        handlers.log(`${describeError(error)}; its tools are missing until it connects`);
        retry(entry);
      }
      throw error;
    }
  }

  return {
    /**
     * Connects to all servers. With several, does not wait for slow ones.
     * @throws Error whose message can be shown to the user, if no server is connected
     */
    async open(facts: ClientFacts): Promise<void> {
      client = facts;
      const attempts = entries.map(connectFirst);
      if (attempts.length > 1) await settlesWithin(Promise.allSettled(attempts), INITIALIZE_TIMEOUT_MS);
      try {
        await Promise.any(attempts);
      } catch (error) {
        throw new Error((error as AggregateError).errors.map(describeError).join("; "), { cause: error });
      }
      isOpen = true;
    },
    get facts(): ClientFacts {
      return client;
    },
    live: (): Upstream[] => entries.flatMap(({ upstream }) => (upstream?.closed === null ? [upstream] : [])),
    async close(): Promise<void> {
      closing.abort();
      for (const { timer } of entries) clearTimeout(timer);
      await Promise.allSettled(pendingConnects);
      await Promise.all(entries.map(async ({ upstream }) => upstream?.close()));
    },
  };
}

/** Returns the kinds of lists that a server has. */
export function supportedListKinds({ capabilities }: Upstream): string[] {
  return LIST_KINDS.filter((kind) => isObject(capabilities[kind]));
}

const describeError = (error: unknown): string => (error instanceof Error ? error.message : String(error));
