/**
 * A proxy between a service and Postgres that cuts the writer's connection after a planned number of bytes or messages
 * from the client.
 */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export type Cut = "fin" | "rst" | "terminate";

export interface CutPlan {
  how: Cut;
  /** Number of bytes or protocol messages from the client that are still forwarded before the cut. */
  after: { bytes: number } | { messages: number };
}

export interface CuttingProxy {
  port: number;
  /** Cuts the writer's connection once, as planned. Resolves at the cut. */
  arm(plan: CutPlan): Promise<void>;
  disarm(): void;
  stop(): Promise<void>;
}

/**
 * Starts the proxy on a free port.
 * @param target port of Postgres
 * @param terminate terminates the writer's backend, for a plan whose cut is `terminate`
 */
export async function cuttingProxy(target: number, terminate: () => Promise<void>): Promise<CuttingProxy> {
  let plan: (CutPlan & { done: () => void }) | null = null;
  const sockets = new Set<Socket>();

  function cut(how: Cut, client: Socket, server: Socket): void {
    plan?.done();
    plan = null;
    if (how === "terminate") void terminate().catch(() => undefined);
    else for (const socket of [client, server]) void (how === "rst" ? socket.resetAndDestroy() : socket.end());
  }

  const proxy = createServer((client) => {
    const server = connect(target, "127.0.0.1");
    let isWriter: boolean | null = null;
    let partial = Buffer.alloc(0);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    server.on("data", (chunk: Buffer) => void client.write(chunk));
    server.on("end", () => client.end());
    client.on("end", () => server.end());
    client.on("data", (chunk: Buffer) => {
      const first = isWriter === null;
      isWriter ??= chunk.includes("assent writer");
      if (!isWriter || plan === null) return void server.write(chunk);
      const { how, after } = plan;
      if ("bytes" in after) {
        if (chunk.length < after.bytes) {
          after.bytes -= chunk.length;
          return void server.write(chunk);
        }
        server.write(chunk.subarray(0, after.bytes));
        return cut(how, client, server);
      }
      // The startup message has no type byte. Every other message is a type byte and a length.
      partial = Buffer.concat([partial, chunk]);
      for (let start = first; partial.length >= 5; start = false) {
        const length = start ? partial.readUInt32BE(0) : 1 + partial.readUInt32BE(1);
        if (partial.length < length) break;
        if (after.messages === 0) return cut(how, client, server);
        after.messages--;
        server.write(partial.subarray(0, length));
        partial = partial.subarray(length);
      }
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    port: (proxy.address() as AddressInfo).port,
    arm: (planned) =>
      new Promise((done) => {
        plan = { ...planned, after: { ...planned.after }, done };
      }),
    disarm() {
      plan = null;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
