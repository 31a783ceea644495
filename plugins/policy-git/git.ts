/** Runs git without a shell, without the user's configuration, without prompts, and with a timeout. */
import { spawn } from "node:child_process";

const MAX_OUTPUT = 64 * 1024 * 1024;

export interface GitOptions {
  /** Folder of the repository; null for commands that do not need a repository. */
  dir: string | null;
  timeoutMs: number;
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

export async function runGit(args: readonly string[], options: GitOptions): Promise<Buffer> {
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
  const at = options.dir === null ? [] : ["--git-dir", options.dir];
  // Forbid remote URLs that make git run a program, and redirects, which could leak the credentials.
  const safe = [
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "protocol.file.allow=always",
    "-c",
    "http.followRedirects=false",
    "-c",
    "gc.auto=0",
    // Store each fetch as one pack, so that the number of packs equals the number of fetches.
    "-c",
    "fetch.unpackLimit=1",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "credential.helper=",
  ];
  return new Promise((resolve, reject) => {
    const child = spawn("git", [...at, ...safe, ...args], { env, stdio: ["pipe", "pipe", "pipe"] });
    const out: Buffer[] = [];
    let size = 0;
    let err = "";
    let late = false;
    const stop = (): void => {
      late = true;
      child.kill("SIGKILL");
    };
    const timer = setTimeout(stop, options.timeoutMs);
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_OUTPUT) stop();
      else out.push(chunk);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      err = (err + chunk.toString("utf8")).slice(-4000);
    });
    // Ignore write errors, because git may exit before it has read the whole input.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
    child.on("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(
        new GitError(
          error.code === "ENOENT" ? "git is not installed, and the policy-git plugin needs it" : error.message,
          null,
        ),
      );
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      if (late)
        reject(
          new GitError(
            size > MAX_OUTPUT
              ? `git printed more than ${MAX_OUTPUT} bytes`
              : `git did not respond within ${options.timeoutMs / 1000} s`,
            null,
          ),
        );
      else if (code === 0) resolve(Buffer.concat(out));
      else reject(new GitError(lastWords(err) || `git exited with ${code ?? "a signal"}`, code));
    });
  });
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
