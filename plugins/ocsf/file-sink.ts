/**
 * Appends events to a file, one JSON object per line. The last line of the file determines where to continue, so that
 * no event is written twice.
 */
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "../../src/core.ts";
import type { ApiActivity } from "./api-activity.ts";
import type { Sink } from "./sink.ts";

const CHUNK = 65_536;
/** Start of each line of an export. */
const LINE_START = Buffer.from('{"class_uid":6003,');
const NEWLINE = 0x0a;

/** @param path path of the file, which is opened for each batch, so that logrotate can move it at any time */
export function createFileSink(path: string): Sink {
  return {
    async resume() {
      const file = await open(path, "a+", 0o600);
      try {
        const { size } = await file.stat();
        const end = (await lastNewline(file, size)) + 1;
        const rest = await readBytes(file, end, Math.min(size, end + LINE_START.length));
        if (!rest.equals(LINE_START.subarray(0, rest.length))) throw foreignFileError(path);
        // Remove an incomplete last line, which a crash can leave.
        await file.truncate(end);
        await file.sync();
        return end === 0 ? null : lastEvent(await readLastLine(file, end), path);
      } finally {
        await file.close();
      }
    },
    async write(events: readonly ApiActivity[]) {
      const file = await open(path, "a", 0o600);
      try {
        const { size } = await file.stat();
        await file.appendFile(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
        await file.sync();
        if (size === 0) await syncFolder(dirname(path));
      } finally {
        await file.close();
      }
    },
    close: () => Promise.resolve(),
  };
}

type File = Awaited<ReturnType<typeof open>>;

async function readLastLine(file: File, end: number): Promise<string> {
  const start = (await lastNewline(file, end - 1)) + 1;
  return (await readBytes(file, start, end - 1)).toString("utf8");
}

/** Returns the offset of the last newline before `end`; -1 if there is none. */
async function lastNewline(file: File, end: number): Promise<number> {
  for (let to = end; to > 0; to -= CHUNK) {
    const from = Math.max(0, to - CHUNK);
    const found = (await readBytes(file, from, to)).lastIndexOf(NEWLINE);
    if (found >= 0) return from + found;
  }
  return -1;
}

async function readBytes(file: File, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.alloc(to - from);
  const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
  return bytes.subarray(0, bytesRead);
}

function lastEvent(line: string, path: string): { sequence: number; uid: string } {
  try {
    const { sequence, uid } = (JSON.parse(line) as ApiActivity).metadata;
    if (Number.isSafeInteger(sequence) && typeof uid === "string") return { sequence, uid };
  } catch {
    // The error is thrown below.
  }
  throw foreignFileError(path);
}

const foreignFileError = (path: string): Error =>
  new Error(`the last line of ${path} is not an event of this export; move the file away to start a new one`);
