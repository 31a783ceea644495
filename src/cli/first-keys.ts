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
  output: Place,
  { url, data, console, origin }: { url: string; data: string; console: boolean; origin: string | null },
  keys: FirstKeys,
): void {
  // Browsers do not send the fragment to servers, so no proxy logs the token.
  const page = `/sign-in#enrol=${keys.link}`;
  const signIn =
    origin === null
      ? `To sign in as the first admin, set ASSENT_PUBLIC_URL to the https address at which people reach the service, and open this page there once, within 24 hours: ${page}`
      : `Sign in as the first admin: open this link once, within 24 hours, and create a passkey:\n\n  ${origin}${page}`;
  const lines = [`export ASSENT_URL=${url}`, `export ADMIN_KEY=${keys.admin}`, `export AGENT_KEY=${keys.agent}`];
  if (output === "print") {
    io.out(`\nThis store is new. These two keys are shown once; keep them:\n`);
    io.out(lines.map((line) => `  ${line}`).join("\n"));
  } else {
    const path = join(data, "first-keys");
    writePrivately(
      path,
      `${[...lines, ...(keys.link === null ? [] : [`# ${signIn.replaceAll(/\s+/g, " ")}`])].join("\n")}\n`,
    );
    io.out(
      `\nThis store is new. Its two keys are in ${path}, readable only by this user. Save them, and delete the file.`,
    );
  }
  if (keys.link !== null && output === "print") io.out(`\n${signIn}`);
  io.out(`${console ? `\nThe console is at ${origin ?? url}/: sign in there with ADMIN_KEY.\n` : ""}
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
