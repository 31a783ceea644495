/** Runs programs on a pseudo-terminal, with `script` from util-linux, and reads the screen. */
import { spawn, spawnSync } from "node:child_process";
import { eventually } from "./wait.ts";

/** Value for the `skip` option of a test: false, or the reason why it cannot run here. */
export const withoutTerminal: string | false =
  spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux") === true
    ? false
    : "needs script of util-linux";

export interface Terminal {
  /** Returns the lines of the screen and of the scrollback. A line can span several rows. */
  lines(): string[];
  /** Resolves to the match when the screen contains it. */
  shows(pattern: RegExp): Promise<RegExpExecArray>;
  type(keys: string): void;
  /** Resolves to the exit code. */
  ended: Promise<number | null>;
  kill(): void;
}

/** Starts a shell command in a terminal with this number of columns. */
export function startTerminal(command: string, columns: number, env: Record<string, string>): Terminal {
  const shell = `stty cols ${columns} rows 24; exec ${command}`;
  const child = spawn("script", ["-qfec", shell, "/dev/null"], {
    env: { PATH: process.env["PATH"], TERM: "xterm", SHELL: "/bin/sh", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const lines = (): string[] => drawScreen(output, columns);
  return {
    lines,
    shows: (pattern) =>
      eventually(
        async () => pattern.exec(lines().join("\n")) ?? undefined,
        () => `the terminal does not show ${pattern}:\n${lines().join("\n")}`,
      ),
    type: (keys) => void child.stdin.write(keys),
    ended: new Promise((resolve) => child.once("close", resolve)),
    kill: () => void child.kill(),
  };
}

/**
 * Interprets readline's output: text, carriage returns, line feeds, and the sequences that move the cursor and clear.
 */
function drawScreen(output: string, columns: number): string[] {
  const cells: string[][] = [[]];
  /** Rows that continue the line above. */
  const wrapped = new Set<number>();
  let [row, column] = [0, 0];
  const rowAt = (index: number): string[] => (cells[index] ??= []);
  // oxlint-disable-next-line no-control-regex -- the sequences of a terminal
  for (const [token, count, final] of output.matchAll(/\u001b\[\??([\d;]*)([A-Za-z])|[^]/gu)) {
    const number = Number(count) || 1;
    if (final === "A") row = Math.max(0, row - number);
    else if (final === "B") row += number;
    else if (final === "C") column += number;
    else if (final === "D") column = Math.max(0, column - number);
    else if (final === "G") column = number - 1;
    else if (final === "J" || final === "K") {
      rowAt(row).length = Math.min(rowAt(row).length, column);
      if (final === "J") cells.length = Math.min(cells.length, row + 1);
    } else if (final !== undefined) continue;
    else if (token === "\r") column = 0;
    else if (token === "\n") wrapped.delete(++row);
    else {
      if (column >= columns) {
        [row, column] = [row + 1, 0];
        wrapped.add(row);
      }
      const line = rowAt(row);
      while (line.length < column) line.push(" ");
      line[column++] = token;
    }
    rowAt(row);
  }
  return Array.from(cells, (line, i) => ({ text: (line ?? []).join(""), isWrapped: wrapped.has(i) })).reduce<string[]>(
    (lines, { text, isWrapped }) =>
      isWrapped ? [...lines.slice(0, -1), (lines.at(-1) ?? "") + text] : [...lines, text],
    [],
  );
}
