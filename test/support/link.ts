/** A network link between two addresses that can be disconnected without either side being told. */
import { connect, createServer, type Socket } from "node:net";

export interface Address {
  host: string;
  port: number;
}

export interface Link {
  /** Passes nothing on from now on. Connections stay open, and new ones are accepted, but carry nothing. */
  disconnect(): void;
  /** Passes on what was held back, and everything after it. */
  reconnect(): void;
  close(): Promise<void>;
}

interface Pair {
  client: Socket;
  server: Socket | null;
  /** A side has closed while the link was disconnected. */
  isClosed: boolean;
}

/** Passes connections to `from` on to `to`. */
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
