/** A body that comes from another thread, a piece whenever one is asked for. */
import { discard } from "../../http/body.ts";
import { alone, type BodyWord } from "./messages.ts";

export interface Pieces {
  /** Null at the end. Rejects where it will not come whole. One at a time. */
  next(): Promise<Uint8Array | null>;
  /** No more is wanted. */
  drop(): void;
  /** What the other side says. */
  heard(word: BodyWord): void;
}

export function createPieces(say: (kind: "pull" | "drop") => void): Pieces {
  let waiting: { resolve(bytes: Uint8Array | null): void; reject(error: Error): void } | null = null;
  let over: "end" | "cut" | "dropped" | null = null;
  const cut = (): Error => new Error("the body ended before it was whole");
  return {
    next() {
      if (over === "end") return Promise.resolve(null);
      if (over !== null) return Promise.reject(cut());
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        say("pull");
      });
    },
    drop() {
      if (over !== null) return;
      over = "dropped";
      waiting?.reject(cut());
      waiting = null;
      say("drop");
    },
    heard(word) {
      const reader = waiting;
      waiting = null;
      if (word.kind !== "piece" && over === null) over = word.kind;
      if (word.kind === "piece") reader?.resolve(word.bytes);
      else if (word.kind === "end") reader?.resolve(null);
      else reader?.reject(cut());
    },
  };
}

export function streamOf(pieces: Pieces): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = await pieces.next();
        if (bytes === null) controller.close();
        else controller.enqueue(bytes);
      },
      cancel: () => pieces.drop(),
    },
    { highWaterMark: 0 },
  );
}

/** The other end: says a piece of the stream for each `pull`. */
export interface Source {
  pull(): void;
  /** Reads no more of it. */
  drop(): void;
  /** Throws away what still comes of it, at most `most` bytes. Never rejects. */
  discard(most: number): Promise<void>;
}

export function createSource(stream: ReadableStream<Uint8Array>, say: (word: BodyWord) => void): Source {
  const reader = stream.getReader();
  return {
    pull() {
      reader
        .read()
        .then(({ done, value }) => say(done ? { kind: "end" } : { kind: "piece", bytes: alone(value) }))
        .catch((error: unknown) => {
          // Of a piece that is no bytes, too.
          reader.cancel(error).catch(() => undefined);
          say({ kind: "cut" });
        });
    },
    drop: () => void reader.cancel().catch(() => undefined),
    discard: (most) => discard(reader, most),
  };
}
