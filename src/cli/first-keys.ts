/** Prints the keys of a new store once, or writes them to a file (the default in a container). */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { FIRST_AGENT, type FirstKeys } from "../identity/first-keys.ts";
import { CommandError, parseChoice, type Output } from "./command.ts";
import { programCommand } from "./invocation.ts";

type Place = "print" | "file";

/**
 * Returns where to write the first keys: the value of `--first-keys`, or else ASSENT_FIRST_KEYS. The default is `file`
 * in a container, where standard output goes to a log that many people can read, and `print` elsewhere.
 */
export function chooseKeyOutput(word: string | undefined, env: Record<string, string | undefined>): Place {
  const choice = word ?? (env["ASSENT_FIRST_KEYS"] || undefined);
  if (choice !== undefined) return parseChoice("--first-keys (ASSENT_FIRST_KEYS)", choice, ["print", "file"]);
  return process.pid === 1 || env["KUBERNETES_SERVICE_HOST"] !== undefined ? "file" : "print";
}

export function showFirstKeys(
  io: Output,
  place: Place,
  { url, data, console, publicUrl }: { url: string; data: string; console: boolean; publicUrl: string | null },
  keys: FirstKeys,
): void {
  const link = keys.link === null ? null : enrolmentLink(url, publicUrl, keys.link);
  const lines = [`export ASSENT_URL=${url}`, `export ADMIN_KEY=${keys.admin}`, `export AGENT_KEY=${keys.agent}`];
  if (place === "print") {
    io.out(`\nThis store is new. These two keys are shown once; keep them:\n`);
    io.out(lines.map((line) => `  ${line}`).join("\n"));
  } else {
    const path = join(data, "first-keys");
    writePrivately(
      path,
      `${[...lines, ...(link === null ? [] : [`# Open once, within 24 hours, to sign in: ${link}`])].join("\n")}\n`,
    );
    io.out(
      `\nThis store is new. Its two keys are in ${path}, readable only by this user. Save them, and delete the file.`,
    );
  }
  if (link !== null && place === "print")
    io.out(`\nSign in as the first admin: open this link once, within 24 hours, and create a passkey:\n\n  ${link}`);
  io.out(`${console ? `\nThe console is at ${url}/: sign in there with ADMIN_KEY.\n` : ""}
An agent submits with its key. This one is the key of "${FIRST_AGENT}"; each other agent gets one of its own:

  curl -s $ASSENT_URL/v1/actions -H "Authorization: Bearer $AGENT_KEY" \\
    -H 'Content-Type: application/json' \\
    -d '{"agent_id":"${FIRST_AGENT}","tool":"stripe","operation":"refund","params":{"amount":50,"currency":"USD"}}'

You approve with ADMIN_KEY. List what waits for approval; the command asks for the key:

  ${programCommand()} actions --status pending_approval
`);
}

/** Writes a file that only the current user can read, and syncs it. Replaces a file that an interrupted start left. */
function writePrivately(path: string, text: string): void {
  const temporary = `${path}.${process.pid}`;
  try {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    rmSync(temporary, { force: true });
    const fd = openSync(temporary, "wx", 0o600);
    try {
      writeSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    throw new CommandError(
      `the keys of this new store cannot be written to ${path}: ${(error as Error).message}; "--first-keys print" prints them`,
    );
  }
}

/**
 * Returns the enrolment link. It uses localhost instead of 127.0.0.1, because passkeys need a host name. The fragment
 * is not sent to servers or logged by proxies.
 */
function enrolmentLink(url: string, publicUrl: string | null, token: string): string {
  const { port } = new URL(url);
  const origin = publicUrl === null ? `http://localhost${port === "" ? "" : `:${port}`}` : new URL(publicUrl).origin;
  return `${origin}/sign-in#enrol=${token}`;
}
