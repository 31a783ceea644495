/** Checks of `signed_by`: a commit must be signed by a key of the option, and descend from the last accepted commit. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runGit, GitError, type GitOptions } from "./git.ts";

/**
 * Numbers of ancestors to fetch, in this order, until the accepted commit is found. If they do not suffice, all
 * ancestors are fetched.
 */
const STEPS = [64, 1024, 16_384];
const KIND = /^gpgsig(?:-sha256)? -----BEGIN ([A-Z ]+)-----$/gm;

/** Thrown for a commit that must not be accepted. The message completes "the commit …". */
export class CommitRejected extends Error {}

/** Options of git commands in the clone. */
export type CloneOptions = GitOptions & { dir: string };

/** Fetches this number of additional ancestors of the commit, without their files; null for all. */
type Deepen = (by: number | null) => Promise<void>;

/** @param signers lines of OpenSSH public keys */
export async function assertSigned(clone: CloneOptions, commit: string, signers: readonly string[]): Promise<void> {
  const text = (await runGit(["cat-file", "commit", commit], clone)).toString("utf8");
  const header = text.slice(0, text.indexOf("\n\n"));
  const kinds = [...header.matchAll(KIND)].map(([, kind]) => kind);
  if (kinds.length === 0) throw new CommitRejected("is not signed, but signed_by requires a signature");
  // Reject other kinds of signatures, because git would verify them with keys of the operating system user that runs
  // the service.
  const other = kinds.find((kind) => kind !== "SSH SIGNATURE");
  if (other !== undefined)
    throw new CommitRejected(
      `is not signed by a key of signed_by: it has a ${String(other)}, but signed_by lists OpenSSH keys`,
    );
  const list = join(clone.dir, "assent-signers");
  await writeFile(list, signers.map((key) => `listed namespaces="git" ${key}\n`).join(""), { mode: 0o600 });
  const status = await runGit(
    [
      "-c",
      "gpg.format=ssh",
      "-c",
      `gpg.ssh.allowedSignersFile=${list}`,
      "-c",
      "gpg.openpgp.program=false",
      "-c",
      "gpg.x509.program=false",
      "log",
      "-1",
      "--format=%G?",
      commit,
    ],
    clone,
  );
  // G means a valid signature by a key in `signed_by`. U means a valid signature by a different key.
  if (status.toString("utf8").trim() !== "G") throw new CommitRejected("is not signed by a key of signed_by");
}

/**
 * Throws CommitRejected unless the commit descends from the last accepted commit. A signature does not prove that a
 * commit is the newest: anyone who can push could otherwise restore an older commit.
 */
export async function assertDescends(
  clone: CloneOptions,
  deepen: Deepen,
  commit: string,
  accepted: string,
): Promise<void> {
  if (commit === accepted) return;
  for (const by of [0, ...STEPS, null]) {
    if (by !== 0) await deepen(by);
    if (await isAncestor(clone, accepted, commit)) return;
    if (!(await isShallow(clone))) break;
  }
  throw new CommitRejected(
    `does not descend from ${accepted}, the last accepted commit; revert a change with a new commit (git revert), or name this commit in the option "accept"`,
  );
}

async function isAncestor(clone: CloneOptions, older: string, newer: string): Promise<boolean> {
  try {
    await runGit(["merge-base", "--is-ancestor", older, newer], clone);
    return true;
  } catch (error) {
    // Code 1: the commit is not an ancestor. Code 128: the clone does not have the commit.
    if (error instanceof GitError && (error.code === 1 || error.code === 128)) return false;
    throw error;
  }
}

async function isShallow(clone: CloneOptions): Promise<boolean> {
  const answer = await runGit(["rev-parse", "--is-shallow-repository"], clone);
  return answer.toString("utf8").trim() === "true";
}
