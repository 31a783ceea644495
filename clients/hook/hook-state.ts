/**
 * Stores state between calls of the hook: the action of each running tool call, the calls that the host asked its user
 * about, the sessions that used the hook, and the files that agents created.
 */
import { createHash } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Host } from "./hosts/answers.ts";

/** Minimum time for which the action of a call is stored if no event reports the end of the call. */
const CALL_RETENTION_MS = 24 * 3_600_000;
/**
 * Maximum time between the hook's decision about a call and the host's question about the same call. Short, so that a
 * decision does not settle a later call.
 */
const MAX_PROMPT_DELAY_MS = 60_000;
const SESSION_RETENTION_MS = 7 * 24 * 3_600_000;
/** Retention of each kind of record. A kind is a folder of files. */
const RETENTION_MS = {
  calls: CALL_RETENTION_MS,
  decisions: MAX_PROMPT_DELAY_MS,
  prompts: CALL_RETENTION_MS,
  files: SESSION_RETENTION_MS,
  sessions: SESSION_RETENTION_MS,
};
const MAX_OWN_FILES_BYTES = 1024 * 1024;

export function stateFolder(env: Readonly<Record<string, string | undefined>>): string | null {
  const home = env["HOME"] || env["USERPROFILE"];
  const folder = env["XDG_STATE_HOME"] || (home ? join(home, ".local", "state") : null);
  return folder === null ? null : join(folder, "assent", "hook");
}

/** Follows the id of an action whose output the service inspects. */
const INSPECTED_SUFFIX = " inspect";

/** Session id of test calls. It is not recorded, because a test call does not prove that a host calls the hook. */
export const TEST_SESSION = "assent-doctor";

interface SessionRecord {
  host: Host;
  session: string;
  /** Start of the session in milliseconds since 1970. */
  started: number | null;
  last_call: number | null;
  calls: number;
}

/** Stores the state in files. Callers ignore its errors: without this state, more calls require approval. */
export class HookState {
  private readonly folder: string | null;
  constructor(folder: string | null) {
    this.folder = folder;
  }

  private async pathFor(kind: keyof typeof RETENTION_MS, parts: readonly unknown[]): Promise<string | null> {
    if (this.folder === null || parts.includes(null)) return null;
    const folder = join(this.folder, kind);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return join(folder, createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32));
  }

  private async save(kind: keyof typeof RETENTION_MS, parts: readonly unknown[], text: string): Promise<void> {
    const path = await this.pathFor(kind, parts);
    if (path !== null) await writeFile(path, text, { mode: 0o600 });
  }

  /** @param inspects whether the service inspects the output of the call */
  async saveAction(
    host: Host,
    session: string | null,
    call: string | null,
    action: string,
    inspects: boolean,
  ): Promise<void> {
    await this.save("calls", [host, session, call], `${action}${inspects ? INSPECTED_SUFFIX : ""}`);
  }

  /** Returns the action of a call that has ended, and deletes it. */
  async takeAction(
    host: Host,
    session: string | null,
    call: string | null,
  ): Promise<{ id: string; inspects: boolean } | null> {
    const path = await this.pathFor("calls", [host, session, call]);
    if (path === null) return null;
    const text = await readFile(path, "utf8").catch(() => null);
    if (text === null) return null;
    // The output has to be inspected even if the file system has become read-only.
    await rm(path, { force: true }).catch(() => undefined);
    return { id: text.replace(INSPECTED_SUFFIX, ""), inspects: text.endsWith(INSPECTED_SUFFIX) };
  }

  /** Returns the action of a running call. */
  async actionOf(host: Host, session: string | null, call: string): Promise<string | null> {
    const path = await this.pathFor("calls", [host, session, call]);
    const text = path === null ? null : await readFile(path, "utf8").catch(() => null);
    return text?.replace(INSPECTED_SUFFIX, "") ?? null;
  }

  /**
   * Records the action that was started for a request, so that the hook can answer the host's prompt about the call.
   */
  async saveDecision(host: Host, session: string | null, request: unknown, action: string): Promise<void> {
    await this.save("decisions", [host, session, request], action);
  }

  /**
   * Returns the action that was started for a request just now, and deletes the record, so that it settles only one
   * prompt. Rejects if there is no record; the host then asks its user.
   */
  async takeDecision(host: Host, session: string | null, request: unknown): Promise<string | null> {
    const path = await this.pathFor("decisions", [host, session, request]);
    if (path === null) return null;
    const savedAt = (await stat(path)).mtimeMs;
    const action = await readFile(path, "utf8");
    // Without `force`, this fails if another process has taken the decision.
    await rm(path);
    return Math.abs(Date.now() - savedAt) <= MAX_PROMPT_DELAY_MS ? action : null;
  }

  /** Records that the host asks its user about an action. */
  async savePrompt(action: string): Promise<void> {
    await this.save("prompts", [action], "");
  }

  /** Returns true if the host asked its user about an action. Deletes the record. */
  async takePrompt(action: string): Promise<boolean> {
    const path = await this.pathFor("prompts", [action]);
    return (
      path !== null &&
      rm(path).then(
        () => true,
        () => false,
      )
    );
  }

  /** Returns the files that agents created in a workspace through the hook. */
  async ownFiles(workspace: string): Promise<ReadonlySet<string>> {
    const path = await this.pathFor("files", [workspace]).catch(() => null);
    const text = path === null ? "" : await readFile(path, "utf8").catch(() => "");
    return new Set(text.split("\0"));
  }

  /** Records files that do not exist yet and that an allowed call creates. */
  async addOwnFiles(workspace: string, paths: readonly string[]): Promise<void> {
    const path = paths.length === 0 ? null : await this.pathFor("files", [workspace]);
    if (path === null) return;
    // Start again instead of growing without bound. The agent's older files then require approval.
    if (((await stat(path).catch(() => null))?.size ?? 0) > MAX_OWN_FILES_BYTES) await rm(path, { force: true });
    await appendFile(path, paths.map((each) => `${each}\0`).join(""), { mode: 0o600 });
  }

  async recordSession(host: Host, session: string | null, event: "start" | "call"): Promise<void> {
    const path = await this.pathFor("sessions", [host, session]);
    if (path === null || session === null || session === TEST_SESSION) return;
    const previous = await readSession(path);
    const now = Date.now();
    const next: SessionRecord = {
      host,
      session,
      started: event === "start" ? now : (previous?.started ?? null),
      last_call: event === "call" ? now : (previous?.last_call ?? null),
      calls: (previous?.calls ?? 0) + (event === "call" ? 1 : 0),
    };
    await writeFile(path, JSON.stringify(next), { mode: 0o600 });
    if (event === "start") await this.deleteExpired();
  }

  async sessions(): Promise<SessionRecord[]> {
    if (this.folder === null) return [];
    const folder = join(this.folder, "sessions");
    const names = await readdir(folder).catch(() => []);
    const records = await Promise.all(names.map((name) => readSession(join(folder, name))));
    return records
      .filter((each) => each !== null)
      .sort((a, b) => (b.last_call ?? b.started ?? 0) - (a.last_call ?? a.started ?? 0));
  }

  private async deleteExpired(): Promise<void> {
    for (const [kind, retention] of Object.entries(RETENTION_MS)) {
      const folder = join(this.folder as string, kind);
      for (const name of await readdir(folder).catch(() => [])) {
        const modifiedAt = (await stat(join(folder, name)).catch(() => null))?.mtimeMs ?? Infinity;
        if (Date.now() - modifiedAt > retention) await rm(join(folder, name), { force: true });
      }
    }
  }
}

async function readSession(path: string): Promise<SessionRecord | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as SessionRecord;
  } catch {
    return null;
  }
}
