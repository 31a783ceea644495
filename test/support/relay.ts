/** A port that leads to one server or another, as an address does that follows a failover, or a proxy before them. */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface Relay {
  port: number;
  /** Leads there from now on; what stands is cut. */
  to(port: number): void;
  /** Ends every connection. */
  cut(): void;
  stop(): Promise<void>;
}

/** What goes through unchanged. */
function pipeBoth(client: Socket, behind: Socket): void {
  client.pipe(behind);
  behind.pipe(client);
}

/**
 * @param join passes on what comes on either side
 * @param port 0 chooses a free one
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
