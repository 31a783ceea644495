/**
 * Reads one stream for all tabs of this browser. Over HTTP/1.1, a browser opens at most six connections to a service,
 * so six tabs with one stream each would leave no connection for requests. The worker ends when the last tab is closed.
 */
import { readStream, type LedgerEvent, type StreamState } from "./core/stream.ts";

interface Source {
  /**
   * The ports of the tabs, each with the number of its latest subscription. Each event or state that is sent to a port
   * contains this number.
   */
  ports: Map<MessagePort, number>;
  over: AbortController;
  state: StreamState | null;
}

/** Streams, keyed by credential, because tabs can be signed in with different credentials. */
const sources = new Map<string, Source>();

function join(key: string, port: MessagePort, subscription: number): void {
  const source = sources.get(key) ?? start(key);
  source.ports.set(port, subscription);
  if (source.state !== null) port.postMessage({ subscription, state: source.state });
}

function start(key: string): Source {
  const source: Source = { ports: new Map(), over: new AbortController(), state: null };
  const send = (message: { event?: LedgerEvent; state?: StreamState }): void => {
    for (const [port, subscription] of source.ports) port.postMessage({ subscription, ...message });
  };
  sources.set(key, source);
  void readStream({
    key,
    signal: source.over.signal,
    onEvent(event) {
      // Remember the position, because a tab that joins later starts after this event.
      if (source.state !== null) source.state = { ...source.state, last: event.seq };
      send({ event });
    },
    onState(state) {
      source.state = state;
      send({ state });
      // Remove the source so that the next tab tries again, because the key may have been given more scopes in the
      // meantime.
      if (state.state === "refused") end(key, source);
    },
  });
  return source;
}

function end(key: string, source: Source): void {
  source.over.abort();
  if (sources.get(key) === source) sources.delete(key);
}

function leave(port: MessagePort): void {
  for (const [key, source] of sources) if (source.ports.delete(port) && source.ports.size === 0) end(key, source);
}

globalThis.addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port === undefined) return;
  port.onmessage = ({ data }: MessageEvent<{ join: string | null; subscription: number }>) => {
    leave(port);
    if (typeof data.join === "string") join(data.join, port, data.subscription);
  };
  port.postMessage({ ready: true });
});
