/**
 * What a thread that speaks HTTP and the one that decides say to each other. All that comes up in one turn of the event
 * loop travels together, as few and large values: to clone an object for each request costs more than its HTTP.
 */
import { setImmediate } from "node:timers";

/** Names and values by turns. */
export type HeaderList = readonly string[];

/** `body`: all of it; null where it is to be asked for. */
export interface Call {
  id: number;
  method: string;
  url: string;
  headers: HeaderList;
  ip: string | undefined;
  body: Uint8Array | null;
}

/** `body`: null where there is none, and where it is to be asked for (`inPieces`). */
export interface Answer {
  id: number;
  status: number;
  headers: Readonly<Record<string, string>> | [string, string][];
  body: string | Uint8Array | null;
  inPieces: boolean;
}

/** Of a body, in answer to `pull`: a piece, its end, or that it will not come whole. */
export type BodyWord = { kind: "piece"; bytes: Uint8Array } | { kind: "end" | "cut" };

/**
 * About one call. `pull`: a piece of the other side's body is wanted. `drop`: no more of it is. `watch`: the caller
 * wants to hear when the client has left, which `gone` says.
 */
export type Word = { id: number } & (BodyWord | { kind: "pull" | "drop" | "watch" | "gone" });

export const isOfBody = (word: Word): word is { id: number } & BodyWord =>
  word.kind === "piece" || word.kind === "end" || word.kind === "cut";

/** From a front to the thread that decides. `calls`: JSON, with the length of each body, -1 where it is to be asked for; `bodies` one after another. */
export interface Upward {
  calls: string;
  bodies: Uint8Array;
  words: Word[];
}

/** And back. `answers`: JSON, with the length of each text, -1 for the next of `blobs`; `texts` one after another. */
export interface Downward {
  answers: string;
  texts: string;
  blobs: Uint8Array[];
  words: Word[];
}

/** How a front begins, and what ends it: when it says that it failed or has stopped, it is to be terminated. */
export type FrontState =
  | { state: "listening"; url: string }
  | { state: "failed"; message: string }
  | { state: "stopped" }
  | { state: "here" };
/** `ping` is answered with `here`. */
export type FrontOrder = { order: "stop"; graceMs: number } | { order: "ping" };

export function packCalls(calls: readonly Call[]): Pick<Upward, "calls" | "bodies"> {
  const bodies = new Uint8Array(calls.reduce((sum, { body }) => sum + (body?.length ?? 0), 0));
  let at = 0;
  const heads = calls.map(({ body, ...head }) => {
    bodies.set(body ?? NOTHING, at);
    at += body?.length ?? 0;
    return [head.id, head.method, head.url, head.headers, head.ip ?? null, body?.length ?? -1] satisfies CallHead;
  });
  return { calls: JSON.stringify(heads), bodies };
}

export function unpackCalls({ calls, bodies }: Pick<Upward, "calls" | "bodies">): Call[] {
  let at = 0;
  return (JSON.parse(calls) as CallHead[]).map(([id, method, url, headers, ip, length]) => ({
    id,
    method,
    url,
    headers,
    ip: ip ?? undefined,
    // A copy: one request that waits would hold the bodies of all.
    body: length < 0 ? null : bodies.slice(at, (at += length)),
  }));
}

type CallHead = [id: number, method: string, url: string, headers: HeaderList, ip: string | null, length: number];
type AnswerHead = [id: number, status: number, headers: Answer["headers"], length: number | null, inPieces: 0 | 1];

export function packAnswers(answers: readonly Answer[]): Pick<Downward, "answers" | "texts" | "blobs"> {
  let texts = "";
  const blobs: Uint8Array[] = [];
  const heads = answers.map(({ id, status, headers, body, inPieces }): AnswerHead => {
    if (typeof body === "string") texts += body;
    else if (body !== null) blobs.push(alone(body));
    const length = body === null ? null : typeof body === "string" ? body.length : -1;
    return [id, status, headers, length, inPieces ? 1 : 0];
  });
  return { answers: JSON.stringify(heads), texts, blobs };
}

export function unpackAnswers({ answers, texts, blobs }: Pick<Downward, "answers" | "texts" | "blobs">): Answer[] {
  let at = 0;
  let blob = 0;
  return (JSON.parse(answers) as AnswerHead[]).map(([id, status, headers, length, inPieces]) => ({
    id,
    status,
    headers,
    body: length === null ? null : length < 0 ? (blobs[blob++] ?? null) : texts.slice(at, (at += length)),
    inPieces: inPieces === 1,
  }));
}

/** One that travels without the buffer that it is a view of. */
export const alone = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);

const NOTHING = new Uint8Array(0);

/** Gathers what is said in one turn of the event loop. */
export function createOutgoing<T>(send: (items: T[], words: Word[]) => void): {
  item(item: T): void;
  say(word: Word): void;
} {
  let items: T[] = [];
  let words: Word[] = [];
  function soon(): void {
    if (items.length + words.length > 0) return;
    setImmediate(() => {
      const [these, those] = [items, words];
      items = [];
      words = [];
      send(these, those);
    });
  }
  return {
    item(item) {
      soon();
      items.push(item);
    },
    say(word) {
      soon();
      words.push(word);
    },
  };
}
