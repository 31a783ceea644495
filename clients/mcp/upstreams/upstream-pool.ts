/** Connects a session to its servers, and restores lost connections. */
import { SHARED_INITIALIZE_TIMEOUT_MS, settlesWithin } from "./slow-upstreams.ts";
import { isObject, type Notification, type Reply } from "../transport/rpc-message.ts";
import type { ServerConfig } from "../config/server-config.ts";
import { connectUpstream, type ClientInfo, type RequestFromServer, type Upstream } from "./upstream.ts";

interface UpstreamPoolHandlers {
  /** Forwards a server's question to the client. */
  askClient(upstream: Upstream, question: RequestFromServer, signal: AbortSignal): Promise<Reply>;
  onnotification(upstream: Upstream, notification: Notification): void;
  /** Called when a server connects or disconnects, because that changes the lists. */
  changed(upstream: Upstream): void;
  /** Called when the session's only server is a process and has exited, because the session then ends. */
  ended(reason: string): void;
  log(line: string): void;
}

/** Kinds of lists that can change. */
export const LIST_KINDS = ["tools", "prompts", "resources"] as const;
/**
 * Reconnect delays. The first delay applies after one lost connection, the last after five or more consecutive ones.
 * Milliseconds.
 */
const RECONNECT_DELAYS_MS = [250, 1000, 4000, 15_000, 60_000];
/** A connection that lasts this long resets the number of lost connections. Milliseconds. */
const STABLE_AFTER_MS = 60_000;

interface PoolEntry {
  config: ServerConfig;
  upstream: Upstream | null;
  lossesInARow: number;
  timer: NodeJS.Timeout | undefined;
}

export class UpstreamPool {
  private readonly servers: readonly ServerConfig[];
  private readonly handlers: UpstreamPoolHandlers;
  private readonly entries: PoolEntry[];
  /** Attempts to connect, and connections that are closing. */
  private readonly pendingWork = new Set<Promise<unknown>>();
  private readonly closing = new AbortController();
  private isOpen = false;
  private client: ClientInfo = { version: "", info: {}, capabilities: {} };

  constructor(servers: readonly ServerConfig[], handlers: UpstreamPoolHandlers) {
    this.servers = servers;
    this.handlers = handlers;
    this.entries = servers.map((config) => ({ config, upstream: null, lossesInARow: 0, timer: undefined }));
  }

  /**
   * Connects to all servers. With several servers, does not wait for slow servers.
   * @throws Error whose message can be shown to the user, if no server is connected
   */
  async open(facts: ClientInfo): Promise<void> {
    this.client = facts;
    const attempts = this.entries.map((entry) => this.connectFirst(entry));
    if (attempts.length > 1) await settlesWithin(Promise.allSettled(attempts), SHARED_INITIALIZE_TIMEOUT_MS);
    try {
      await Promise.any(attempts);
    } catch (error) {
      throw new Error((error as AggregateError).errors.map(describeError).join("; "), { cause: error });
    }
    this.isOpen = true;
  }

  get facts(): ClientInfo {
    return this.client;
  }

  live(): Upstream[] {
    return this.entries.flatMap(({ upstream }) => (upstream?.closed === null ? [upstream] : []));
  }

  async close(): Promise<void> {
    this.closing.abort();
    for (const { timer } of this.entries) clearTimeout(timer);
    await Promise.allSettled(this.pendingWork);
    await Promise.all(this.entries.map(async ({ upstream }) => upstream?.close()));
  }

  private trackConnect(entry: PoolEntry): Promise<Upstream> {
    return this.track(this.connect(entry));
  }

  private track<T>(work: Promise<T>): Promise<T> {
    this.pendingWork.add(work);
    work.finally(() => this.pendingWork.delete(work)).catch(() => {});
    return work;
  }

  private async connect(entry: PoolEntry): Promise<Upstream> {
    let current: Upstream | null = null;
    const connectingSince = performance.now();
    const handleLoss = (reason: string): void => {
      if (this.closing.signal.aborted || current === null || entry.upstream !== current) return;
      entry.upstream = null;
      // The process of a server may still run, for example if it closed its standard output.
      void this.track(current.close());
      if (performance.now() - connectingSince > STABLE_AFTER_MS) entry.lossesInARow = 0;
      if (this.servers.length === 1 && "command" in entry.config.target) {
        this.handlers.log(reason);
        return this.handlers.ended(reason);
      }
      this.handlers.log(`${reason}; reconnecting`);
      this.handlers.changed(current);
      this.retry(entry);
    };
    const upstream = await connectUpstream(
      entry.config,
      this.client,
      {
        askClient: (question, signal) =>
          current === null
            ? Promise.reject(new Error("the server is not connected yet"))
            : this.handlers.askClient(current, question, signal),
        onnotification: (notification) => current !== null && this.handlers.onnotification(current, notification),
        onclose: handleLoss,
      },
      this.handlers.log,
      this.closing.signal,
    );
    current = entry.upstream = upstream;
    if (upstream.closed !== null) handleLoss(upstream.closed);
    return upstream;
  }

  /** Reports a server that has connected after the session started. */
  private announce(entry: PoolEntry, upstream: Upstream): void {
    if (!this.isOpen || entry.upstream !== upstream) return;
    this.handlers.log(`the server "${entry.config.name}" is connected`);
    this.handlers.changed(upstream);
  }

  private retry(entry: PoolEntry): void {
    if (this.closing.signal.aborted) return;
    const delay = RECONNECT_DELAYS_MS[Math.min(entry.lossesInARow++, RECONNECT_DELAYS_MS.length - 1)];
    entry.timer = setTimeout(() => {
      this.trackConnect(entry).then(
        (upstream) => this.announce(entry, upstream),
        (error: unknown) => {
          if (this.closing.signal.aborted) return;
          this.handlers.log(describeError(error));
          this.retry(entry);
        },
      );
    }, delay);
    entry.timer.unref();
  }

  /** Connects for the first time. If there are several servers, retries a failed attempt. */
  private async connectFirst(entry: PoolEntry): Promise<void> {
    try {
      this.announce(entry, await this.trackConnect(entry));
    } catch (error) {
      if (this.entries.length > 1 && !this.closing.signal.aborted) {
        this.handlers.log(`${describeError(error)}; its tools are missing until it connects`);
        this.retry(entry);
      }
      throw error;
    }
  }
}

/** Returns the kinds of lists that a server has. */
export function supportedListKinds({ capabilities }: Upstream): string[] {
  return LIST_KINDS.filter((kind) => isObject(capabilities[kind]));
}

const describeError = (error: unknown): string => (error instanceof Error ? error.message : String(error));
