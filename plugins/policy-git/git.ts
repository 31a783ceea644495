/** Runs git without a shell, without the user's configuration, without prompts, and with a timeout. */
import { ProgramError, runProgram } from "../../src/core.ts";

const MAX_OUTPUT = 64 * 1024 * 1024;

export interface GitOptions {
  /** Folder of the repository; null for commands that do not need a repository. */
  dir: string | null;
  timeoutMs: number;
  /** Aborts the command. */
  signal: AbortSignal;
  /** Settings that must not appear in the process list, such as `http.extraHeader`. */
  secrets?: readonly (readonly [name: string, value: string])[];
  env?: Readonly<Record<string, string>>;
  input?: string;
}

export class GitError extends Error {
  /** Exit code; null if git was killed or could not be started. */
  readonly code: number | null;
  constructor(message: string, code: number | null) {
    super(message);
    this.name = "GitError";
    this.code = code;
  }
}

/** Runs git. Rejects with GitError, or with the reason of the signal. */
export async function runGit(args: readonly string[], options: GitOptions): Promise<Buffer> {
  const { dir, timeoutMs, signal, input } = options;
  const settings = [...(options.secrets ?? [])];
  const env: Record<string, string> = {
    PATH: process.env["PATH"] ?? "",
    HOME: process.env["HOME"] ?? "/nonexistent",
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    // Never prompt. Git then fails if it needs a credential that is not configured.
    GIT_ASKPASS: "true",
    // Do not let git fetch missing objects on its own, because it would not use the credentials.
    GIT_NO_LAZY_FETCH: "1",
    GIT_CONFIG_COUNT: String(settings.length),
    ...options.env,
  };
  for (const name of [
    "SSH_AUTH_SOCK",
    "https_proxy",
    "HTTPS_PROXY",
    "http_proxy",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "TMPDIR",
  ]) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  for (const [i, [name, value]] of settings.entries()) {
    env[`GIT_CONFIG_KEY_${i}`] = name;
    env[`GIT_CONFIG_VALUE_${i}`] = value;
  }
  // Without a repository of our own, do not read the configuration of a repository around the working folder.
  const at = ["--git-dir", dir ?? "/dev/null"];
  const seconds = String(Math.ceil(timeoutMs / 1000));
  // Forbid remote URLs that make git run a program, and redirects, which could leak the credentials.
  const safe = [
    "protocol.ext.allow=never",
    "protocol.file.allow=always",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1",
    `http.lowSpeedTime=${seconds}`,
    "gc.auto=0",
    "maintenance.auto=false",
    "core.hooksPath=/dev/null",
    "credential.helper=",
  ].flatMap((setting) => ["-c", setting]);
  try {
    const { code, endedBy, stdout, stderr } = await runProgram("git", [...at, ...safe, ...args], {
      env,
      timeoutMs,
      signal,
      endsWithParent: true,
      maxOutput: MAX_OUTPUT,
      ...(input === undefined ? {} : { input }),
    });
    if (code === 0) return stdout;
    throw new GitError(lastWords(stderr) || `git exited with ${code ?? endedBy}`, code);
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    const message =
      error.reason === "not-found"
        ? "git is not installed, and the policy-git plugin needs it"
        : error.reason === "timeout"
          ? `git did not respond within ${timeoutMs / 1000} s`
          : error.message;
    throw new GitError(message, null);
  }
}

/** Returns the last error message of git on one line. */
function lastWords(err: string): string {
  const lines = err
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("hint:") && !line.startsWith("warning:"));
  const telling = lines.filter((line) => /^(fatal|error|remote|ssh|Permission denied)/i.test(line));
  return (telling.length > 0 ? telling : lines)
    .slice(-2)
    .map((line) => line.replace(/^(fatal|error): /, ""))
    .join("; ");
}
