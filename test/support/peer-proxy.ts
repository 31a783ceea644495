/** Stands before a process where the others reach it, and has it killed at a moment of their messages. */
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/**
 * `before-send`: at the first byte of a message, which does not get through. `after-send`: once it has gone through.
 * `after-commit`: at the first byte of its answer, which does not get through. `half`: the same of the second answer.
 */
export type Moment = "before-send" | "after-send" | "after-commit" | "half";

export interface PeerProxy {
  readonly url: string;
  /** Where it leads. */
  to(port: number): void;
  /** Calls `strike` once, at that moment of what goes through from now on, and cuts every connection. */
  arm(moment: Moment, strike: () => void): Promise<void>;
  /** Nothing goes through, and nobody is told. */
  block(blocked: boolean): void;
  stop(): Promise<void>;
}

export async function peerProxy(): Promise<PeerProxy> {
  let target = 0;
  let blocked = false;
  let armed: { moment: Moment; strike(): void } | null = null;
  let answers = 0;
  const sockets = new Set<Socket>();

  function cut(): void {
    for (const socket of sockets) socket.destroy();
  }

  /** Whether what has just come may go through. */
  function passes(moments: readonly Moment[]): boolean {
    if (armed === null || !moments.includes(armed.moment)) return true;
    if (armed.moment === "half" && ++answers < 2) return true;
    const { strike } = armed;
    armed = null;
    strike();
    return false;
  }

  const server = createServer((client) => {
    const behind = connect(target, "127.0.0.1");
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
    client.on("data", (chunk) => {
      if (blocked) return;
      if (!passes(["before-send"])) return cut();
      behind.write(chunk, () => {
        if (!passes(["after-send"])) cut();
      });
    });
    behind.on("data", (chunk) => {
      if (blocked) return;
      if (!passes(["after-commit", "half"])) return cut();
      client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    to(port) {
      target = port;
      cut();
    },
    arm: (moment, strike) =>
      new Promise((resolve) => {
        answers = 0;
        armed = {
          moment,
          strike() {
            strike();
            resolve();
          },
        };
      }),
    block(on) {
      blocked = on;
    },
    async stop() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
