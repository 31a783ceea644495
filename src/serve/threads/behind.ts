/** Behind a front: has the requests that it passes on handled, on the thread that decides. */
import { createCollector } from "../../http/collector.ts";
import type { FetchHandler } from "../../http/handler.ts";
import { BodyTooLarge, type RequestInfo } from "../../http/request-info.ts";
import { carriedRequest, CarriedResponse, partsOf } from "./carried.ts";
import {
  createOutgoing,
  isOfBody,
  packAnswers,
  unpackCalls,
  type Answer,
  type Call,
  type Downward,
  type Upward,
  type Word,
} from "./messages.ts";
import { createPieces, createSource, streamOf, type Pieces, type Source } from "./pieces.ts";

interface Open {
  /** Made when somebody wants to hear that the client has left. */
  gone: AbortController | null;
  /** Of a body that the front did not read ahead. */
  pieces: Pieces | null;
  /** Of an answer that goes in pieces. */
  source: Source | null;
}

export interface Behind {
  heard(message: Upward): void;
  /** The front is gone, and its clients with it. */
  lost(): void;
}

export function createBehind(fetch: FetchHandler, post: (message: Downward) => void): Behind {
  const open = new Map<number, Open>();
  let isLost = false;
  const { item, say } = createOutgoing<Answer>((answers, words) => {
    if (!isLost) post({ ...packAnswers(answers), words });
  });

  async function serve(call: Call): Promise<void> {
    const { id, method, url, headers, body } = call;
    const it: Open = { gone: null, pieces: null, source: null };
    open.set(id, it);
    const pieces = (): Pieces => (it.pieces ??= createPieces((kind) => say({ id, kind })));
    const request = carriedRequest({
      method,
      url,
      headers,
      signal() {
        if (it.gone === null) {
          it.gone = new AbortController();
          if (isLost) it.gone.abort();
          else say({ id, kind: "watch" });
        }
        return it.gone.signal;
      },
      body: () => (body === null ? streamOf(pieces()) : new Blob([body as BlobPart]).stream()),
    });
    const info: RequestInfo = {
      ip: () => call.ip,
      readBody: (max, take) => (body === null ? collect(pieces(), max, take) : within(body, max, take)),
      // The front does.
      discardBody: () => Promise.resolve(),
    };
    try {
      answer(id, it, await fetch(request, info));
    } catch {
      // As where there are no fronts: the handler answers every fault itself.
      answer(id, it, new CarriedResponse("Internal Server Error\n", { status: 500 }));
    }
  }

  function answer(id: number, it: Open, response: Response): void {
    const { status, headers, body } = partsOf(response);
    const inPieces = body instanceof ReadableStream;
    if (isLost || !inPieces) open.delete(id);
    if (isLost) return void (inPieces && body.cancel().catch(() => undefined));
    if (inPieces)
      it.source = createSource(body, (word) => {
        if (word.kind !== "piece") open.delete(id);
        say({ id, ...word });
      });
    item({ id, status, headers, inPieces, body: inPieces ? null : body });
  }

  function hear(id: number, it: Open, word: Word): void {
    if (isOfBody(word)) it.pieces?.heard(word);
    else if (word.kind === "pull") it.source?.pull();
    else if (word.kind === "gone") it.gone?.abort();
    else if (word.kind === "drop") {
      open.delete(id);
      it.source?.drop();
    }
  }

  return {
    heard(message) {
      for (const call of unpackCalls(message)) void serve(call);
      for (const word of message.words) {
        const it = open.get(word.id);
        if (it !== undefined) hear(word.id, it, word);
      }
    },
    lost() {
      isLost = true;
      for (const it of open.values()) {
        it.gone?.abort();
        it.pieces?.heard({ kind: "cut" });
        it.source?.drop();
      }
      open.clear();
    },
  };
}

async function within(body: Uint8Array, max: number, take: (bytes: number) => void): Promise<Uint8Array> {
  if (body.length > max) throw new BodyTooLarge();
  take(body.length);
  return body;
}

async function collect(pieces: Pieces, max: number, take: (bytes: number) => void): Promise<Uint8Array> {
  const body = createCollector(max, take);
  for (let piece = await pieces.next(); piece !== null; piece = await pieces.next()) body.add(piece);
  return body.whole();
}
