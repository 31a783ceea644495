/** A port that leads to one server or another, as an address does that follows a failover. */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface Relay {
  port: number;
  /** Leads there from now on; what stands is cut. */
  to(port: number): void;
  stop(): Promise<void>;
}

export async function relay(target: number): Promise<Relay> {
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
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    to(port) {
      leadsTo = port;
      cut();
    },
    async stop() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
