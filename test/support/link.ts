/** A network link between two addresses that a test can interrupt without closing its connections. */
import { connect, createServer, type Socket } from "node:net";

export interface Address {
  host: string;
  port: number;
}

export interface Link {
  /** Stops forwarding. Existing connections stay open, and new ones are accepted, but no data passes. */
  disconnect(): void;
  /** Forwards the data that was held back, and everything after it. */
  reconnect(): void;
  close(): Promise<void>;
}

interface Pair {
  client: Socket;
  server: Socket | null;
  /** True if one side closed its connection during an interruption. */
  isClosed: boolean;
}

/** Listens on `from` and forwards connections to `to`. */
export async function openLink(from: Address, to: Address): Promise<Link> {
  const pairs = new Set<Pair>();
  let isConnected = true;

  function join(pair: Pair): void {
    const server = (pair.server ??= dial(pair));
    pair.client.pipe(server);
    server.pipe(pair.client);
  }

  function part({ client, server }: Pair): void {
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      if (one === null) continue;
      if (other !== null) one.unpipe(other);
      one.pause();
    }
  }

  function dial(pair: Pair): Socket {
    const server = connect(to);
    watch(server, pair);
    return server;
  }

  function end(pair: Pair): void {
    pairs.delete(pair);
    pair.client.destroy();
    pair.server?.destroy();
  }

  function watch(socket: Socket, pair: Pair): void {
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      if (isConnected) end(pair);
      else pair.isClosed = true;
    });
  }

  const server = createServer((client) => {
    const pair: Pair = { client, server: null, isClosed: false };
    pairs.add(pair);
    watch(client, pair);
    if (isConnected) join(pair);
    else client.pause();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(from.port, from.host, resolve);
  });
  return {
    disconnect() {
      isConnected = false;
      for (const pair of pairs) part(pair);
    },
    reconnect() {
      isConnected = true;
      for (const pair of pairs) {
        if (pair.isClosed) end(pair);
        else join(pair);
      }
    },
    async close() {
      for (const pair of pairs) end(pair);
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
