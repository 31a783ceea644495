/** The servers of one session: reached, watched, and reached again when they are gone. */
import { GREETING_TOGETHER, settlesPromptly } from "./slow-upstreams.ts";
import { isObject, type Notification, type Reply } from "../transport/message.ts";
import type { ServerConfig } from "../config/server-config.ts";
import { connectUpstream, type ClientFacts, type Question, type Upstream } from "./upstream.ts";

export interface FleetHandlers {
  /** What a server asks of the client, of its own accord. */
  ask(upstream: Upstream, question: Question, signal: AbortSignal): Promise<Reply>;
  onnotification(upstream: Upstream, notification: Notification): void;
  /** Its tools, prompts and resources are others now: it is gone, or back. */
  changed(upstream: Upstream): void;
  /** The only server, a process, has ended: so does what stands for it. */
  ended(why: string): void;
  log(line: string): void;
}

/** What servers have lists of, which may change. */
export const KINDS = ["tools", "prompts", "resources"] as const;
/** Before a server is reached again, by how often it was lost in a row. Milliseconds. */
const PAUSES = [250, 1000, 4000, 15_000, 60_000];
/** A server that was there so long is not one that fails at once. Milliseconds. */
const STEADY = 60_000;

interface Place {
  config: ServerConfig;
  upstream: Upstream | null;
  lost: number;
  timer: NodeJS.Timeout | undefined;
}

export type Fleet = ReturnType<typeof createFleet>;

export function createFleet(servers: readonly ServerConfig[], handlers: FleetHandlers) {
  const places: Place[] = servers.map((config) => ({ config, upstream: null, lost: 0, timer: undefined }));
  const opening = new Set<Promise<unknown>>();
  const ending = new AbortController();
  let begun = false;
  let client: ClientFacts = { version: "", info: {}, capabilities: {} };

  function reach(place: Place): Promise<Upstream> {
    const attempt = connect(place);
    opening.add(attempt);
    attempt.finally(() => opening.delete(attempt)).catch(() => {});
    return attempt;
  }

  async function connect(place: Place): Promise<Upstream> {
    let self: Upstream | null = null;
    const begun = performance.now();
    const lose = (why: string): void => {
      if (ending.signal.aborted || self === null || place.upstream !== self) return;
      place.upstream = null;
      if (performance.now() - begun > STEADY) place.lost = 0;
      if (servers.length === 1 && "command" in place.config.reach) {
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
        ask: (question, signal) =>
          self === null ? Promise.reject(new Error("too early")) : handlers.ask(self, question, signal),
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
  function announce(place: Place, upstream: Upstream): void {
    if (!begun || place.upstream !== upstream) return;
    handlers.log(`the server "${place.config.name}" is there`);
    handlers.changed(upstream);
  }

  function retry(place: Place): void {
    if (ending.signal.aborted) return;
    const pause = PAUSES[Math.min(place.lost++, PAUSES.length - 1)];
    place.timer = setTimeout(() => {
      reach(place).then(
        (upstream) => announce(place, upstream),
        (error: unknown) => {
          if (ending.signal.aborted) return;
          handlers.log(sentenceOf(error));
          retry(place);
        },
      );
    }, pause);
    place.timer.unref();
  }

  /** The first attempt. With several servers one that fails is tried again. */
  async function begin(place: Place): Promise<void> {
    try {
      announce(place, await reach(place));
    } catch (error) {
      if (places.length > 1 && !ending.signal.aborted) {
        handlers.log(`${sentenceOf(error)}; its tools are missing until it is there`);
        retry(place);
      }
      throw error;
    }
  }

  return {
    /** Starts or reaches the servers. Of several, those that are slow come later. @throws Error with a sentence, when none is there */
    async open(of: ClientFacts): Promise<void> {
      client = of;
      const attempts = places.map(begin);
      if (attempts.length > 1) await settlesPromptly(Promise.allSettled(attempts), GREETING_TOGETHER);
      try {
        await Promise.any(attempts);
      } catch (error) {
        throw new Error((error as AggregateError).errors.map(sentenceOf).join("; "), { cause: error });
      }
      begun = true;
    },
    get facts(): ClientFacts {
      return client;
    },
    live: (): Upstream[] => places.flatMap(({ upstream }) => (upstream?.closed === null ? [upstream] : [])),
    async close(): Promise<void> {
      ending.abort();
      for (const { timer } of places) clearTimeout(timer);
      await Promise.allSettled(opening);
      await Promise.all(places.map(async ({ upstream }) => upstream?.close()));
    },
  };
}

/** Of what a client is told that there are others, when a server has gone or come back. */
export function kindsOf({ capabilities }: Upstream): string[] {
  return KINDS.filter((kind) => isObject(capabilities[kind]));
}

const sentenceOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
