/** Reads files of a pack in pieces. */
import { sha256 } from "@noble/hashes/sha2.js";
import { toHex } from "../../../src/browser.ts";

/** A file of the pack, which a person selected in a browser or which is on disk. */
export interface PackFile {
  stream(): AsyncIterable<Uint8Array>;
}

/** Without `ignoreBOM`, the decoder removes a byte order mark, and a digest of the text is not the file's digest. */
const EXACT_DECODING = { fatal: true, ignoreBOM: true } as const;

/** Returns the SHA-256 and the size of a file. */
export async function digestFile(file: PackFile): Promise<{ sha256: string; bytes: number }> {
  const hash = sha256.create();
  let bytes = 0;
  for await (const chunk of file.stream()) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { sha256: toHex(hash.digest()), bytes };
}

/** Yields the lines of a file without their line feeds. Throws SyntaxError if the last line is incomplete. */
export async function* readLines(file: PackFile): AsyncIterable<Uint8Array> {
  let rest = new Uint8Array(0);
  for await (const chunk of file.stream()) {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      yield rest.length === 0 ? chunk.subarray(from, at) : concat(rest, chunk.subarray(from, at));
      rest = new Uint8Array(0);
      from = at + 1;
    }
    if (from < chunk.length) rest = concat(rest, chunk.subarray(from));
  }
  if (rest.length > 0) throw new SyntaxError("the file ends inside a line");
}

/** Parses a line as a JSON object. Throws SyntaxError. */
export function parseLine(line: Uint8Array): Record<string, unknown> {
  const value: unknown = JSON.parse(new TextDecoder("utf-8", EXACT_DECODING).decode(line));
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new SyntaxError("a line is not an object");
  return value as Record<string, unknown>;
}

/** Returns the text of a small file. */
export async function readText(file: PackFile): Promise<string> {
  const decoder = new TextDecoder("utf-8", EXACT_DECODING);
  let text = "";
  for await (const chunk of file.stream()) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}
