/** Stands before a process where the others reach it, and has it killed at a moment of their messages. */
import { relay } from "./relay.ts";

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
  let blocked = false;
  let armed: { moment: Moment; strike(): void } | null = null;
  let answers = 0;

  /** Whether what has just come may go through. */
  function passes(moments: readonly Moment[]): boolean {
    if (armed === null || !moments.includes(armed.moment)) return true;
    if (armed.moment === "half" && ++answers < 2) return true;
    const { strike } = armed;
    armed = null;
    strike();
    return false;
  }

  const way = await relay(0, (client, behind) => {
    client.on("data", (chunk) => {
      if (blocked) return;
      if (!passes(["before-send"])) return way.cut();
      behind.write(chunk, () => {
        if (!passes(["after-send"])) way.cut();
      });
    });
    behind.on("data", (chunk) => {
      if (blocked) return;
      if (!passes(["after-commit", "half"])) return way.cut();
      client.write(chunk);
    });
  });
  return {
    url: `http://127.0.0.1:${way.port}`,
    to: way.to,
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
    stop: way.stop,
  };
}
