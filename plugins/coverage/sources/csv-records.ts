/** Splits a stream of CSV (RFC 4180) into records. A quoted field can contain commas, quotes and line feeds. */
import { SourceFault } from "./source-fault.ts";

/** Maximum length of a record, in Unicode code points. */
const MAX_RECORD = 256 * 1024 * 1024;

interface CsvRecord {
  line: number;
  fields: string[];
}

/**
 * Yields each record with the number of its first line. Keeps only one record in memory. Throws `SourceFault`.
 * @example
 * for await (const { line, fields } of readCsvRecords(text)) console.log(line, fields[0]);
 */
export async function* readCsvRecords(text: AsyncIterable<string>): AsyncIterable<CsvRecord> {
  const splitter = new Splitter();
  for await (const chunk of text) yield* splitter.push(chunk);
  yield* splitter.end();
}

/**
 * Returns the fields of one record. Returns null if the string is not exactly one record.
 * @example
 * parseCsvLine('a,"b,c"'); // ["a", "b,c"]
 */
export function parseCsvLine(text: string): string[] | null {
  const splitter = new Splitter();
  try {
    const records = [...splitter.push(text), ...splitter.end()];
    return records.length === 1 ? (records[0]?.fields ?? null) : null;
  } catch (error) {
    if (error instanceof SourceFault) return null;
    throw error;
  }
}

type State = "start" | "plain" | "quoted" | "quote";

class Splitter {
  private line = 1;
  private start = 1;
  private state: State = "start";
  private fields: string[] = [];
  private field = "";
  private length = 0;

  *push(chunk: string): Iterable<CsvRecord> {
    for (const character of chunk) {
      if (++this.length > MAX_RECORD)
        throw new SourceFault(this.start, `the record is longer than ${MAX_RECORD} characters`);
      const record = this.step(character);
      if (character === "\n") this.line++;
      if (record !== null) yield record;
      if (this.length === 0) this.start = this.line;
    }
  }

  *end(): Iterable<CsvRecord> {
    if (this.state === "quoted") throw new SourceFault(this.start, "the file ends inside a quoted field");
    if (this.length > 0) yield this.finish();
  }

  private step(character: string): CsvRecord | null {
    if (this.state === "quoted") {
      if (character === '"') this.state = "quote";
      else this.field += character;
      return null;
    }
    if (character === "\n") return this.length === 1 ? this.skip() : this.finish();
    if (character === "\r") return null;
    if (character === '"' && this.state !== "plain") {
      // Two quotes inside a quoted field represent one quote.
      if (this.state === "quote") this.field += '"';
      this.state = "quoted";
    } else if (character === ",") {
      this.fields.push(this.field);
      this.field = "";
      this.state = "start";
    } else if (this.state === "quote") {
      throw new SourceFault(this.start, `a comma must follow a quoted field; got ${JSON.stringify(character)}`);
    } else {
      this.state = "plain";
      this.field += character;
    }
    return null;
  }

  private skip(): null {
    this.length = 0;
    return null;
  }

  private finish(): CsvRecord {
    const record = { line: this.start, fields: [...this.fields, this.field] };
    this.fields = [];
    this.field = "";
    this.state = "start";
    this.length = 0;
    return record;
  }
}
