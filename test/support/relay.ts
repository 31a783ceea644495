/** A TCP relay on a fixed port whose target can change, like an address that follows a failover. */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface Relay {
  port: number;
  /** Changes the target of new connections, and cuts the existing ones. */
  to(port: number): void;
  /** Cuts every connection. */
  cut(): void;
  stop(): Promise<void>;
}

/** Forwards all data unchanged in both directions. */
function pipeBoth(client: Socket, behind: Socket): void {
  client.pipe(behind);
  behind.pipe(client);
}

/**
 * Starts a relay to the port `target`.
 * @param join forwards the data between the two sockets
 * @param port port to listen on; 0 chooses a free one
 */
export async function relay(target: number, join = pipeBoth, port = 0): Promise<Relay> {
  let leadsTo = target;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const behind = connect(leadsTo, "127.0.0.1");
    for (const [socket, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    join(client, behind);
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    to(port) {
      leadsTo = port;
      cut();
    },
    cut,
    async stop() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
