/** The handler of a thread that speaks HTTP: it knows nothing of the API, and passes each request on. */
import { readBytes } from "../../http/body.ts";
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

  function ask(id: number, request: Request, info: RequestInfo, body: Uint8Array | null): Promise<Answer> {
    return new Promise((answer) => {
      open.set(id, { request, answer, source: null, pieces: null });
      const { method, url } = request;
      const headers = info.headers?.() ?? listOf(request.headers);
      item({ id, method, url, headers, ip: info.ip?.(), body });
    });
  }

  const sourceOf = (id: number, it: Open): Source =>
    (it.source ??= createSource(it.request.body ?? emptyStream(), (piece) => say({ id, ...piece })));

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
      let body: Uint8Array | null;
      try {
        body = await readAhead(request, info);
      } catch {
        // Whoever sent it has left.
        return new Reply("Bad Request\n", { status: 400, headers: { Connection: "close" } });
      }
      const id = ++lastId;
      const { status, headers, body: whole, inPieces } = await ask(id, request, info, body);
      const it = open.get(id) as Open;
      if (body === null && (it.source !== null || closes(headers))) await sourceOf(id, it).discard(DISCARDED);
      const init = { status, headers };
      if (!inPieces) {
        open.delete(id);
        return new Reply(whole as BodyInit | null, init);
      }
      it.pieces = createPieces((kind) => {
        if (kind === "drop") open.delete(id);
        say({ id, kind });
      });
      return new Reply(streamOf(it.pieces), init);
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
  if (length === null) return request.headers.get("transfer-encoding") === null ? new Uint8Array(0) : null;
  return Number(length) <= READ_AHEAD ? readBytes(request, READ_AHEAD, info, FREE) : null;
}

function onGone({ signal }: Request, gone: () => void): void {
  if (signal.aborted) gone();
  else signal.addEventListener("abort", gone, { once: true });
}

const closes = (headers: Answer["headers"]): boolean =>
  (Array.isArray(headers) ? headers : Object.entries(headers)).some(
    ([name, value]) => name.toLowerCase() === "connection" && value === "close",
  );

const emptyStream = (): ReadableStream<Uint8Array> => new ReadableStream({ start: (stream) => stream.close() });
