/** The handler of a thread that speaks HTTP: it knows nothing of the API, and passes each request on. */
import { isUnsent, readBytes } from "../../http/body.ts";
import type { FetchHandler } from "../../http/handler.ts";
import { FREE } from "../../http/in-flight.ts";
import type { RequestInfo } from "../../http/request-info.ts";
import { listOf } from "./carried.ts";
import {
  createOutgoing,
  isOfBody,
  packCalls,
  unpackAnswers,
  type Answer,
  type Call,
  type Downward,
  type HeaderList,
  type Upward,
  type Word,
} from "./messages.ts";
import { createPieces, createSource, streamOf, type Pieces, type Source } from "./pieces.ts";

/** A body of at most so many bytes is read before the request is passed on; a larger one when it is asked for. */
const READ_AHEAD = 16_384;
/** What is read of a body that was refused while it is still coming, so that its client sees the answer. */
const DISCARDED = 4 * 1_048_576;

interface Open {
  request: Request;
  info: RequestInfo;
  answer(answer: Answer): void;
  /** Of a body that was not read ahead. */
  source: Source | null;
  /** Of an answer that comes in pieces. */
  pieces: Pieces | null;
}

export interface Front {
  fetch: FetchHandler;
  heard(message: Downward): void;
}

/** @param Reply the response class that is fastest here */
export function createFront(post: (message: Upward) => void, Reply: typeof Response): Front {
  const open = new Map<number, Open>();
  let lastId = 0;
  const { item, say } = createOutgoing<Call>((calls, words) => post({ ...packCalls(calls), words }));

  function ask(call: Call, request: Request, info: RequestInfo): Promise<Answer> {
    return new Promise((answer) => {
      open.set(call.id, { request, info, answer, source: null, pieces: null });
      item(call);
    });
  }

  const sourceOf = (id: number, it: Open): Source =>
    (it.source ??= createSource(it.info.body?.() ?? it.request.body ?? emptyStream(), (piece) =>
      say({ id, ...piece }),
    ));

  function hear(id: number, it: Open, word: Word): void {
    if (isOfBody(word)) {
      if (word.kind !== "piece") open.delete(id);
      it.pieces?.heard(word);
    } else if (word.kind === "pull") sourceOf(id, it).pull();
    else if (word.kind === "drop") it.source?.drop();
    else if (word.kind === "watch") onGone(it.request, () => say({ id, kind: "gone" }));
  }

  return {
    async fetch(request, info = {}) {
      // Before anything else: it is gone with the client.
      const ip = info.ip?.();
      let body: Uint8Array | null;
      try {
        body = await readAhead(request, info);
      } catch {
        // Whoever sent it has left.
        return new Reply("Bad Request\n", { status: 400, headers: { Connection: "close" } });
      }
      const id = ++lastId;
      const { method, url } = request;
      const sent = info.headers?.() ?? listOf(request.headers);
      const call: Call = { id, method, url, headers: body === null ? announced(request, sent) : sent, ip, body };
      const { status, headers, body: whole, inPieces } = await ask(call, request, info);
      const it = open.get(id) as Open;
      if (body === null && (it.source !== null || closes(headers))) await sourceOf(id, it).discard(DISCARDED);
      const init = { status, headers };
      if (!inPieces) {
        open.delete(id);
        return new Reply(whole as BodyInit | null, init);
      }
      const pieces = (it.pieces = createPieces((kind) => {
        if (kind === "drop") open.delete(id);
        say({ id, kind });
      }));
      // Bun forgets the answer of a client that has left before it.
      onGone(request, pieces.drop);
      try {
        return new Reply(streamOf(pieces), init);
      } catch (error) {
        pieces.drop();
        throw error;
      }
    },
    heard(message) {
      for (const answer of unpackAnswers(message)) open.get(answer.id)?.answer(answer);
      for (const word of message.words) {
        const it = open.get(word.id);
        if (it !== undefined) hear(word.id, it, word);
      }
    },
  };
}

/** Null: it is to be asked for. */
async function readAhead(request: Request, info: RequestInfo): Promise<Uint8Array | null> {
  const length = request.headers.get("content-length");
  if (length === null) return isUnsent(request, info) ? new Uint8Array(0) : null;
  return Number(length) <= READ_AHEAD ? readBytes(request, READ_AHEAD, info, FREE) : null;
}

/** A body over HTTP/2 needs no header, and the thread that decides has nothing else to know of one by. */
const announced = ({ headers }: Request, sent: HeaderList): HeaderList =>
  headers.has("content-length") || headers.has("transfer-encoding") ? sent : [...sent, "Transfer-Encoding", "chunked"];

function onGone({ signal }: Request, gone: () => void): void {
  if (signal.aborted) gone();
  else signal.addEventListener("abort", gone, { once: true });
}

const closes = (headers: Answer["headers"]): boolean =>
  (Array.isArray(headers) ? headers : Object.entries(headers)).some(
    ([name, value]) => name.toLowerCase() === "connection" && value === "close",
  );

const emptyStream = (): ReadableStream<Uint8Array> => new ReadableStream({ start: (stream) => stream.close() });
