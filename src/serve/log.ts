import { setImmediate } from "node:timers";
import type { Logger } from "../contract/host.ts";

/** The `flush` functions of loggers with buffered lines. They are called before the process exits. */
const unwritten = new Set<() => void>();
process.once("exit", () => {
  for (const flush of unwritten) flush();
});

const LEVELS = ["debug", "info", "warn", "error"] as const;
type LogLevel = (typeof LEVELS)[number] | "silent";

/**
 * Creates a logger that writes one JSON object per line to standard error. Lines of one turn of the event loop are
 * written together. Warnings and errors are written immediately, after all buffered lines.
 * @param write a function that is called with complete lines, including newlines
 * @example
 * createLogger("info").info("started", { port: 8080 });
 */
export function createLogger(
  level: LogLevel,
  write: (lines: string) => void = (lines) => void process.stderr.write(lines),
): Logger {
  const minIndex = level === "silent" ? LEVELS.length : LEVELS.indexOf(level);
  let buffered = "";
  function flush(): void {
    const lines = buffered;
    buffered = "";
    unwritten.delete(flush);
    if (lines !== "") write(lines);
  }
  const at =
    (index: number) =>
    (message: string, fields?: Record<string, unknown>): void => {
      if (index < minIndex) return;
      if (buffered === "") {
        unwritten.add(flush);
        setImmediate(flush);
      }
      buffered += `${stringify({ time: new Date().toISOString(), level: LEVELS[index], message, ...fields })}\n`;
      if (index >= 2) flush();
    };
  return { debug: at(0), info: at(1), warn: at(2), error: at(3) };
}

/** Converts the value to JSON. Never throws, so that logging cannot make a request fail. */
function stringify(value: Record<string, unknown>): string {
  try {
    // Try without a replacer function first, because a replacer makes this several times slower.
    return JSON.stringify(value);
  } catch {
    return stringifyWithReplacer(value);
  }
}

/** Converts values that contain a bigint, or that JSON cannot represent. */
function stringifyWithReplacer(value: Record<string, unknown>): string {
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
