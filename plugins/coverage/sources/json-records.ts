/** Splits a stream into JSON objects. The stream is JSON Lines, an array, or an object with an array `Records`. */
import { isJsonObject, type JsonObject } from "../../../src/core.ts";
import { SourceFault } from "./source-fault.ts";

/** Maximum length of a record, in UTF-16 code units. */
const MAX_RECORD = 256 * 1024 * 1024;
const WRAPPER = /^\uFEFF?\s*(?:\[|\{\s*"Records"\s*:\s*\[)/;
/** Number of characters that suffices to recognize what precedes the first record. */
const HEAD = 256;

interface JsonRecord {
  line: number;
  value: JsonObject;
}

/**
 * Yields each object with the number of its first line. Keeps only one record in memory. Throws `SourceFault`.
 * @example
 * for await (const { line, value } of readJsonRecords(text)) console.log(line, value["eventName"]);
 */
export async function* readJsonRecords(text: AsyncIterable<string>): AsyncIterable<JsonRecord> {
  const splitter = new Splitter();
  for await (const chunk of text) yield* splitter.push(chunk);
  yield* splitter.end();
}

class Splitter {
  private line = 1;
  private head: string | null = "";
  /** Whether the records are items of an array. */
  private wrapped = false;
  private closed = false;
  private record = "";
  private start = 0;
  private depth = 0;
  private inString = false;
  private escaped = false;

  *push(chunk: string): Iterable<JsonRecord> {
    if (this.head !== null) {
      this.head += chunk;
      if (this.head.length < HEAD) return;
      chunk = this.open();
    }
    yield* this.scan(chunk);
  }

  *end(): Iterable<JsonRecord> {
    if (this.head !== null) yield* this.scan(this.open());
    if (this.depth > 0) throw new SourceFault(this.start, "the file ends inside this record");
    if (this.wrapped && !this.closed) throw new SourceFault(this.line, "the file ends inside its list of records");
  }

  /** Consumes the beginning of the file. Returns the characters that follow the start of the array. */
  private open(): string {
    const head = this.head ?? "";
    this.head = null;
    const wrapper = WRAPPER.exec(head)?.[0] ?? null;
    this.wrapped = wrapper !== null;
    this.line += wrapper?.match(/\n/g)?.length ?? 0;
    return wrapper === null ? head.replace(/^\uFEFF/, "") : head.slice(wrapper.length);
  }

  private *scan(chunk: string): Iterable<JsonRecord> {
    let from = this.depth > 0 ? 0 : -1;
    for (let i = 0; i < chunk.length; i++) {
      const character = chunk[i] as string;
      if (character === "\n") this.line++;
      if (this.depth === 0) {
        if (character === "{" && !this.closed) {
          from = i;
          this.depth = 1;
          this.start = this.line;
        } else if (!this.isSeparator(character)) throw new SourceFault(this.line, this.describeUnexpected(chunk, i));
        continue;
      }
      this.step(character);
      if (this.depth > 0) continue;
      yield this.parse(this.record + chunk.slice(from, i + 1));
      this.record = "";
      from = -1;
    }
    if (from < 0) return;
    this.record += chunk.slice(from);
    if (this.record.length > MAX_RECORD)
      throw new SourceFault(this.start, `the record is longer than ${MAX_RECORD} characters`);
  }

  /** Updates the state for one character: whether it is in a string, and how deeply it is nested. */
  private step(character: string): void {
    if (this.inString) {
      if (this.escaped) this.escaped = false;
      else if (character === "\\") this.escaped = true;
      else if (character === '"') this.inString = false;
      // A string cannot contain a line feed, so an unterminated string is detected on its own line.
      else if (character === "\n") throw new SourceFault(this.start, "the record is not JSON: a string is not closed");
    } else if (character === '"') this.inString = true;
    else if (character === "{" || character === "[") this.depth++;
    else if (character === "}" || character === "]") this.depth--;
  }

  private isSeparator(character: string): boolean {
    if (/\s/.test(character)) return true;
    if (!this.wrapped) return false;
    if (this.closed) return character === "}";
    if (character === "]") this.closed = true;
    return character === "," || character === "]";
  }

  private describeUnexpected(chunk: string, at: number): string {
    return `expected a JSON object; got ${JSON.stringify(chunk.slice(at, at + 40))}`;
  }

  private parse(text: string): JsonRecord {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw new SourceFault(this.start, `the record is not JSON: ${(error as Error).message}`);
    }
    if (!isJsonObject(value)) throw new SourceFault(this.start, "the record is not a JSON object");
    return { line: this.start, value };
  }
}
