/** What `signed_by` asks of a commit: a signature of a listed key, and that it goes on from what was accepted last. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { git, GitError } from "./git.ts";

/** How many commits more are asked for at a time, until the way back is there; then all of them. */
const STEPS = [64, 1024, 16_384];
const KIND = /^gpgsig(?:-sha256)? -----BEGIN ([A-Z ]+)-----$/gm;

/** Throws for a commit that may not be taken; what it says of it goes behind "the commit …". */
export class Unacceptable extends Error {}

export interface Mirror {
  folder: string;
  timeoutMs: number;
  /** Fetches so many more of the commit's ancestors, without their files; null for all. */
  deepen(commit: string, by: number | null): Promise<void>;
}

/** @param signers lines of OpenSSH public keys */
export async function assertSigned(mirror: Mirror, commit: string, signers: readonly string[]): Promise<void> {
  const { folder: dir, timeoutMs } = mirror;
  const text = (await git(["cat-file", "commit", commit], { dir, timeoutMs })).toString("utf8");
  const header = text.slice(0, text.indexOf("\n\n"));
  const kinds = [...header.matchAll(KIND)].map(([, kind]) => kind);
  if (kinds.length === 0) throw new Unacceptable("is not signed, and signed_by asks for it");
  // Git checks another kind by the keys of whoever runs the service, which signed_by does not list.
  const other = kinds.find((kind) => kind !== "SSH SIGNATURE");
  if (other !== undefined)
    throw new Unacceptable(
      `is not signed by a key of signed_by: it has a ${String(other)}, and OpenSSH keys are listed`,
    );
  const list = join(dir, "assent-signers");
  await writeFile(list, signers.map((key) => `listed namespaces="git" ${key}\n`).join(""), { mode: 0o600 });
  const status = await git(
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
    { dir, timeoutMs },
  );
  // G: a good signature of a listed key. U: a good one of another key.
  if (status.toString("utf8").trim() !== "G") throw new Unacceptable("is not signed by a key of signed_by");
}

/** A signature says who wrote a commit, and not that it is the newest: whoever may push could put an older one back. */
export async function assertDescends(mirror: Mirror, commit: string, accepted: string): Promise<void> {
  if (commit === accepted) return;
  for (const by of [0, ...STEPS, null]) {
    if (by !== 0) await mirror.deepen(commit, by);
    if (await isAncestor(mirror, accepted, commit)) return;
    if (!(await isShallow(mirror))) break;
  }
  throw new Unacceptable(
    `does not descend from ${accepted}, which was accepted last; take a change back by a new commit (git revert), or name this one in the option "accept"`,
  );
}

async function isAncestor({ folder: dir, timeoutMs }: Mirror, older: string, newer: string): Promise<boolean> {
  try {
    await git(["merge-base", "--is-ancestor", older, newer], { dir, timeoutMs });
    return true;
  } catch (error) {
    // 1: it is none. 128: the mirror does not have it.
    if (error instanceof GitError && (error.code === 1 || error.code === 128)) return false;
    throw error;
  }
}

async function isShallow({ folder: dir, timeoutMs }: Mirror): Promise<boolean> {
  const answer = await git(["rev-parse", "--is-shallow-repository"], { dir, timeoutMs });
  return answer.toString("utf8").trim() === "true";
}
