/** Reads the remote repository and its credentials from the options. */
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import type { RepositoryOptions } from "./options.ts";
import { openRepository, RemoteError, type Repository } from "./repository.ts";

export interface RemoteRepository {
  /** URL without credentials. */
  readonly url: string;
  /** Folder in the repository; empty for its root. */
  readonly folder: string;
  readonly username: string | null;
  readonly password: string | null;
}

const SSH_ONLY = /^(ssh:\/\/|[^/:]+@[^/:]+:)/;

/**
 * Reads the options of a repository. Throws an error if they contradict each other.
 * @param givenUrl the option "url"
 */
export function readRemote(options: RepositoryOptions, givenUrl: string): RemoteRepository {
  const { url, username, password } = withoutCredentials(givenUrl);
  if (url.startsWith("-") || /^ext::/i.test(url)) throw new Error(`"${url}" is not the address of a repository`);
  if (options.password !== undefined && options.password_file !== undefined)
    throw new Error('option "password_file": set either password or password_file, not both');
  const http = /^https?:\/\//i.test(url);
  if ((options.password !== undefined || options.password_file !== undefined) && !http)
    throw new Error('option "password": only for http and https URLs; for ssh, set ssh_key_file');
  if (options.ssh_key_file !== undefined && !SSH_ONLY.test(url))
    throw new Error('option "ssh_key_file": only for ssh URLs');
  return { url, folder: posix.normalize(`/${options.folder}`).slice(1).replace(/\/$/, ""), username, password };
}

/**
 * Opens the repository with the credentials of the options. Call this before each fetch, because the token in the
 * password file can change while the service runs. Throws RemoteError if that file cannot be read.
 *
 * @param folder folder in which clones are created
 * @param signal aborts all operations
 */
export function openRemote(
  { url, username, password }: RemoteRepository,
  options: RepositoryOptions,
  folder: string,
  signal: AbortSignal,
): Repository {
  const secret =
    options.password_file === undefined ? (options.password ?? password) : readSecret(options.password_file);
  const basic =
    secret === null || secret === undefined
      ? null
      : Buffer.from(`${options.username ?? username ?? "git"}:${secret}`).toString("base64");
  return openRepository({
    url,
    ref: options.ref ?? null,
    folder,
    timeoutMs: options.timeout_seconds * 1000,
    signal,
    secrets: basic === null ? [] : [["http.extraHeader", `Authorization: Basic ${basic}`]],
    env: SSH_ONLY.test(url) ? { GIT_SSH_COMMAND: sshCommand(options) } : {},
    signers: options.signed_by ?? null,
  });
}

/** Removes credentials from the URL, so that they do not appear in logs and in the ledger. */
function withoutCredentials(givenUrl: string): { url: string; username: string | null; password: string | null } {
  if (!/^https?:\/\//i.test(givenUrl)) return { url: givenUrl, username: null, password: null };
  const url = new URL(givenUrl);
  const credentials = {
    username: url.username === "" ? null : decodeURIComponent(url.username),
    password: url.password === "" ? null : decodeURIComponent(url.password),
  };
  url.username = "";
  url.password = "";
  return { url: url.href, ...credentials };
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new RemoteError(`the password file cannot be read: ${(error as Error).message}`);
  }
}

function sshCommand({ ssh_key_file, known_hosts_file, timeout_seconds }: RepositoryOptions): string {
  const seconds = Math.ceil(timeout_seconds);
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  return [
    // The timeouts end an ssh whose service was killed.
    "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ControlMaster=no -o ControlPath=none",
    `-o ConnectTimeout=${seconds} -o ServerAliveInterval=${seconds} -o ServerAliveCountMax=1`,
    ...(ssh_key_file === undefined ? [] : [`-o IdentitiesOnly=yes -i ${quoted(ssh_key_file)}`]),
    ...(known_hosts_file === undefined ? [] : [`-o UserKnownHostsFile=${quoted(known_hosts_file)}`]),
  ].join(" ");
}
