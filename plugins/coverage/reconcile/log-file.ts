/** Reads the log files of a source in chunks. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { basename } from "node:path";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { CommandError } from "../../../src/command.ts";
import type { EffectSource, SourceRecord } from "../../../src/plugin.ts";
import { SourceFault } from "../sources/source-fault.ts";

/** The facts about a file that the coverage statement contains. */
export interface LogFileFacts {
  name: string;
  sha256: string;
  bytes: number;
  records: number;
}

/**
 * Calls `onRecord` for each record of the file. Decompresses a gzip file (`.gz`). Throws CommandError with the record's
 * line if the record cannot be read, or if `onRecord` throws a RangeError.
 */
export async function readLogFile(
  path: string,
  source: EffectSource,
  onRecord: (record: SourceRecord) => void,
): Promise<LogFileFacts> {
  const hash = createHash("sha256");
  let bytes = 0;
  let records = 0;
  let line = 0;
  const file = createReadStream(path);
  file.on("data", (chunk) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  // `pipeline` forwards errors of the file.
  const content = path.endsWith(".gz") ? pipeline(file, createGunzip(), () => {}) : file;
  try {
    for await (const record of source.read(decode(content))) {
      line = record.line;
      records++;
      assertTime(record);
      onRecord(record);
    }
  } catch (error) {
    if (error instanceof SourceFault) throw new CommandError(`${path}:${error.line}: ${error.message}`);
    if (error instanceof RangeError) throw new CommandError(`${path}:${line}: ${error.message}`);
    throw new CommandError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    file.destroy();
  }
  return { name: basename(path), sha256: hash.digest("hex"), bytes, records };
}

/**
 * Throws RangeError for an invalid time. Without this check, the event would be outside every window and would not be
 * reported.
 */
function assertTime({ event }: SourceRecord): void {
  if (event !== null && !Number.isSafeInteger(event.at))
    throw new RangeError(`the event ${JSON.stringify(event.id)} has no valid time: ${event.at}`);
}

/**
 * Decodes UTF-8. Replaces other bytes with U+FFFD, because the audited party could otherwise make the file unreadable. A
 * text with U+FFFD equals no parameter.
 */
async function* decode(content: AsyncIterable<unknown>): AsyncIterable<string> {
  const decoder = new TextDecoder("utf-8");
  for await (const chunk of content) yield decoder.decode(chunk as Uint8Array, { stream: true });
  yield decoder.decode();
}
