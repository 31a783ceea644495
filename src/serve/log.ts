import { setImmediate } from "node:timers";
import type { Logger } from "../contract/host.ts";

/** Of every logger, what is to be written before the process ends. */
const unwritten = new Set<() => void>();
process.once("exit", () => {
  for (const flush of unwritten) flush();
});

const LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LEVELS)[number] | "silent";

/**
 * One JSON object a line, on standard error. Lines of one turn of the event loop go out in one
 * write; warnings and errors go at once, with what waits before them.
 * @param write gets whole lines with their newlines
 */
export function createLogger(
  level: LogLevel,
  write: (lines: string) => void = (lines) => void process.stderr.write(lines),
): Logger {
  const least = level === "silent" ? LEVELS.length : LEVELS.indexOf(level);
  let waiting = "";
  function flush(): void {
    const lines = waiting;
    waiting = "";
    unwritten.delete(flush);
    if (lines !== "") write(lines);
  }
  const at =
    (index: number) =>
    (message: string, fields?: Record<string, unknown>): void => {
      if (index < least) return;
      if (waiting === "") {
        unwritten.add(flush);
        setImmediate(flush);
      }
      waiting += `${stringify({ time: new Date().toISOString(), level: LEVELS[index], message, ...fields })}\n`;
      if (index >= 2) flush();
    };
  return { debug: at(0), info: at(1), warn: at(2), error: at(3) };
}

/** A log line is never the reason of a failure. */
function stringify(value: Record<string, unknown>): string {
  try {
    // Mostly all there is to do: with a function for each member it takes several times as long.
    return JSON.stringify(value);
  } catch {
    return stringifyOdd(value);
  }
}

/** What holds a bigint, or cannot be written at all. */
function stringifyOdd(value: Record<string, unknown>): string {
  try {
    return JSON.stringify(value, (_, member: unknown) => (typeof member === "bigint" ? member.toString() : member));
  } catch {
    return JSON.stringify({
      time: value["time"],
      level: value["level"],
      message: value["message"],
      fields: "not serialisable",
    });
  }
}
