/** Reads the ledger's events as an endless stream with fetch, because EventSource cannot send a header. */
import { ApiError, sendRequest, buildUrl } from "./api.ts";

/**
 * Reconnects after this time without data, because a connection can break silently. The service sends a
 * comment at least every 30 s. Milliseconds.
 */
const MAX_SILENCE_MS = 60_000;
const MAX_BACK_OFF_MS = 15_000;

export interface LedgerEvent {
  seq: number;
  hash: string;
  type: string;
  at: string;
  action_id: string | null;
  entry: Record<string, unknown>;
}

export interface StreamState {
  state: "starting" | "live" | "waiting" | "refused";
  why: string;
  /** HTTP status of a refused request. */
  status: number;
  /** Sequence number of the last delivered event, or of the last event before the start. */
  last: number;
}

export interface StreamListener {
  onEvent(event: LedgerEvent): void;
  onState(state: StreamState): void;
}

interface StreamOptions extends StreamListener {
  key: string;
  last?: number;
  signal: AbortSignal;
}

/**
 * Reads the stream until the signal aborts or the service refuses the stream. A new connection continues after the last
 * sequence number, so that each event is delivered exactly once.
 */
export async function readStream({ key, last: from, signal, onEvent, onState }: StreamOptions): Promise<void> {
  let last = from;
  let wait = 1000;
  const report = (state: StreamState["state"], why: string, status = 0): void =>
    onState({ state, why, status, last: last ?? -1 });
  while (!signal.aborted) {
    const silent = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const restartTimer = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), MAX_SILENCE_MS);
    };
    restartTimer();
    // The browser does not end the connection when the network goes, so the page would claim to be live for a minute.
    const drop = (): void => silent.abort();
    addEventListener("offline", drop);
    try {
      const response = await sendRequest(buildUrl("/v1/events", { after: last }), {
        key,
        signal: AbortSignal.any([signal, silent.signal]),
        headers: { accept: "text/event-stream" },
      });
      let isLive = false;
      for await (const { id, name, data } of blocksOf(response, restartTimer)) {
        if (id !== null) last = id;
        // The first block contains the sequence number at which the stream begins.
        if (!isLive) {
          isLive = true;
          wait = 1000;
          report("live", "");
        }
        if (name === "") onEvent(JSON.parse(data) as LedgerEvent);
      }
      if (!signal.aborted) report("waiting", "the stream ended");
    } catch (error) {
      if (signal.aborted) return;
      const refusal = error instanceof ApiError ? error : null;
      // Retrying a 4xx is useless, except for too many streams (429).
      if (refusal !== null && refusal.status >= 400 && refusal.status < 500 && refusal.status !== 429)
        return report("refused", refusal.message, refusal.status);
      report("waiting", refusal !== null && refusal.status !== 0 ? refusal.message : "the connection broke");
    } finally {
      clearTimeout(timer);
      removeEventListener("offline", drop);
    }
    await pause(wait, signal);
    wait = Math.min(wait * 2, MAX_BACK_OFF_MS);
  }
}

interface Block {
  id: number | null;
  name: string;
  data: string;
}

/** Yields the stream's blocks that have data. Comments in the stream only call `onBytes`. */
async function* blocksOf(response: Response, onBytes: () => void): AsyncGenerator<Block> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let block: Block = { id: null, name: "", data: "" };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) block.id = Number(line.slice(4));
      else if (line.startsWith("event: ")) block.name = line.slice(7);
      else if (line.startsWith("data: ")) block.data = line.slice(6);
      else if (line === "") {
        if (block.data !== "") yield block;
        block = { id: null, name: "", data: "" };
      }
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
