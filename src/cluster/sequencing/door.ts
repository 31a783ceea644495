/** Where messages of other processes come in. */
import { sha256Hex, utf8 } from "../../domain/hash.ts";
import type { Desk } from "./desk.ts";
import { declinedText, MOST_FRAME_BYTES } from "./frames.ts";
import type { Arrivals } from "./freshness.ts";
import { HEADER, type Seals } from "./seal.ts";

/** Bytes of a message that is too old as it comes: it only wants to be told the time. */
const MOST_STALE_BYTES = 1_024;

export interface Door {
  /**
   * Null for what is no message of another process: it is answered like any path that is not there.
   * @param read reads the body, of at most so many bytes
   */
  enter(request: Request, read: (most: number) => Promise<Uint8Array>): Promise<Response | null>;
}

export function createDoor(seals: Pick<Seals, "open" | "answer">, arrivals: Arrivals, desk: Desk): Door {
  return {
    async enter(request, read) {
      const question = seals.open(request.headers.get(HEADER));
      if (question === null) return null;
      const body = await read(arrivals.isStale(question) ? MOST_STALE_BYTES : MOST_FRAME_BYTES);
      if (sha256Hex(body) !== question.digest) return null;
      // The body can be held back for as long as somebody likes: the age is that of the whole message.
      const arrival = arrivals.take(question);
      if (arrival === "again") return null;
      const answer = utf8(
        arrival === "stale"
          ? declinedText("it was too long on the way")
          : await desk.take(body, question.sent, request.signal),
      );
      return new Response(answer as Uint8Array<ArrayBuffer>, {
        headers: {
          "content-type": "application/json",
          "cache-control": "no-store",
          [HEADER]: seals.answer(question, answer),
        },
      });
    },
  };
}
