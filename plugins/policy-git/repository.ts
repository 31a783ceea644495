/** A bare mirror of one branch or tag. Files of a commit are read from it. */
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { MAX_FILE_LENGTH } from "../../src/core.ts";
import {
  listPolicyTree,
  type PolicyFile,
  readPolicyTree,
  sizePolicyTree,
  type TextFault,
  type TreeFile,
} from "../../src/plugin.ts";
import { runGit, GitError, type GitOptions } from "./git.ts";
import { assertDescends, assertSigned, CommitRejected, type MirrorFolder } from "./signed.ts";

interface RepositoryOptions {
  /** URL without credentials. */
  url: string;
  /** Branch, tag, full ref or full commit id; null for the remote's HEAD. */
  ref: string | null;
  /** Folder of the mirror. */
  folder: string;
  timeoutMs: number;
  secrets: GitOptions["secrets"];
  env: Readonly<Record<string, string>>;
  /** OpenSSH public keys, one per line, one of which must have signed the commit; null if no signature is required. */
  signers: readonly string[] | null;
}

/** The remote cannot be reached or read, it lacks the branch or tag, or its commit lacks the required signature. */
export class RemoteError extends Error {}

export interface Repository {
  /** Fetches the newest commit. Resolves to its id. Rejects with RemoteError. */
  fetch(): Promise<string>;
  /**
   * Resolves to the policy files below `path` in the commit. Rejects with RemoteError if the folder does not exist, if
   * the commit is not signed by one of the signers, or if it does not descend from `accepted`.
   */
  files(
    commit: string,
    path: string,
    recursive: boolean,
    accepted: string | null,
  ): Promise<{ files: PolicyFile[]; faults: TextFault[] }>;
}

const HEAD = "refs/assent/head";
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;
/**
 * Maximum number of packs. A change creates one or two. Above this number, the mirror is created again, with one fetch.
 */
const MAX_PACKS = 20;

export function openRepository(options: RepositoryOptions): Repository {
  return new GitRepository(options);
}

class GitRepository implements Repository {
  private readonly options: RepositoryOptions;
  /** Options of git commands that connect to the remote. */
  private readonly remote: GitOptions;

  constructor(options: RepositoryOptions) {
    const { folder, timeoutMs, env, secrets } = options;
    this.options = options;
    this.remote = { dir: folder, timeoutMs, env, ...(secrets === undefined ? {} : { secrets }) };
  }

  async fetch(): Promise<string> {
    for (let isRetry = false; ; isRetry = true) {
      try {
        if (isRetry || !(await this.isUsable())) await this.create();
        const commit = await this.pull();
        // Detect a damaged object now rather than when it is needed.
        await this.run(["cat-file", "-e", `${commit}^{tree}`]);
        return commit;
      } catch (error) {
        if (error instanceof RemoteError) throw error;
        // The mirror may be damaged. If it is damaged, create a new mirror and try again.
        if (isRetry || !(await this.isDamaged()))
          throw new RemoteError(
            `the repository could not be fetched: ${error instanceof Error ? error.message : String(error)}`,
          );
      }
    }
  }

  async files(
    commit: string,
    path: string,
    recursive: boolean,
    accepted: string | null,
  ): Promise<{ files: PolicyFile[]; faults: TextFault[] }> {
    await this.verify(commit, accepted);
    const tree = path === "" ? `${commit}^{tree}` : `${commit}:${path}`;
    const listing = await listPolicyTree(
      this.run,
      tree,
      recursive,
      "links in a repository are not followed; replace the link with the file",
    ).catch((error: unknown) => {
      throw new RemoteError(
        `the commit ${commit} has no folder "${path}"${error instanceof GitError ? "" : `: ${String(error)}`}`,
      );
    });
    const bytes = await this.sizes(commit, listing.files).catch((error: unknown) => {
      if (error instanceof RemoteError) throw error;
      throw new RemoteError(`the files of commit ${commit} could not be fetched: ${(error as Error).message}`);
    });
    const isTooLarge = (_: unknown, i: number): boolean => (bytes[i] ?? 0) > MAX_FILE_LENGTH;
    const tooLarge = listing.files.filter(isTooLarge).map(({ name }): TextFault => ({
      file: name,
      line: null,
      column: null,
      message: `the file has more than ${MAX_FILE_LENGTH} bytes`,
    }));
    const files = listing.files.filter((file, i) => !isTooLarge(file, i));
    const contents = await readPolicyTree(
      this.run,
      files,
      (id) => new RemoteError(`the mirror does not have the object ${id}`),
    );
    return {
      files: files.map(({ name }, i) => ({ name, content: contents[i] as Uint8Array })),
      faults: [...listing.faults, ...tooLarge],
    };
  }

  /** Runs a git command in the mirror that does not connect to the remote. */
  private readonly run = (args: readonly string[], input?: string): Promise<Buffer> => {
    const { folder, timeoutMs } = this.options;
    return runGit(args, { dir: folder, timeoutMs, ...(input === undefined ? {} : { input }) });
  };

  private async text(args: readonly string[]): Promise<string> {
    return (await this.run(args)).toString("utf8").trim();
  }

  private async create(): Promise<void> {
    const { folder, timeoutMs } = this.options;
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await runGit(["init", "--bare", "--quiet", folder], { dir: null, timeoutMs });
  }

  private async isUsable(): Promise<boolean> {
    try {
      await this.text(["rev-parse", "--is-bare-repository"]);
      // Packs only accumulate, because git does not garbage-collect a partial clone.
      return (await this.packs()) <= MAX_PACKS;
    } catch {
      return false;
    }
  }

  private async packs(): Promise<number> {
    const names = await readdir(join(this.options.folder, "objects", "pack"));
    return names.filter((name) => name.endsWith(".pack")).length;
  }

  /** Resolves to true if the mirror is damaged, and to false if it is only empty. */
  private async isDamaged(): Promise<boolean> {
    try {
      await this.run(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]);
      return false;
    } catch {
      return true;
    }
  }

  /**
   * Fetches the newest commit and its trees. Fetches file contents only if the server cannot omit them. Tries branches
   * before tags, like git does. The refspec overwrites the ref, because a branch may be force-pushed.
   */
  private async pull(partial = true): Promise<string> {
    const { url, ref } = this.options;
    const requestedRefs = listRefs(ref);
    for (const [i, name] of requestedRefs.entries()) {
      try {
        await runGit(
          [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--depth=1",
            ...(partial ? ["--filter=blob:none"] : []),
            "--force",
            "--",
            url,
            `${name}:${HEAD}`,
          ],
          this.remote,
        );
        const commit = await this.text(["rev-parse", "--verify", "--quiet", `${HEAD}^{commit}`]);
        // The id of an annotated tag would resolve to a commit with a different id.
        if (ref !== null && COMMIT.test(ref) && commit !== ref)
          throw new RemoteError(`"${ref}" is not the id of a commit; it resolves to the commit ${commit}`);
        return commit;
      } catch (error) {
        if (!(error instanceof GitError)) throw error;
        const absent = /couldn't find remote ref|not our ref|unadvertised object/i.test(error.message);
        if (absent && i + 1 < requestedRefs.length) continue;
        if (absent) throw new RemoteError(explainAbsence(ref));
        throw error;
      }
    }
    throw new RemoteError("there is no ref to fetch");
  }

  /** Resolves to the sizes of the files in bytes. Fetches files that the partial clone does not have yet. */
  private async sizes(commit: string, files: readonly TreeFile[]): Promise<(number | null)[]> {
    const present = await sizePolicyTree(this.run, files).catch(() => files.map(() => null));
    if (!present.includes(null)) return present;
    try {
      await this.fetchObjects(files.map(({ id }) => id));
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      // The server may not serve single objects. Fetch the whole commit instead.
      await this.create();
      if ((await this.pull(false)) !== commit)
        throw new RemoteError(`the repository moved on from commit ${commit} while it was fetched`);
    }
    return sizePolicyTree(this.run, files);
  }

  private async fetchObjects(ids: readonly string[]): Promise<void> {
    await runGit(
      // Do not report the commits that the mirror has (as git does when it fetches missing objects), because the server
      // would then omit their files.
      [
        "-c",
        "fetch.negotiationAlgorithm=noop",
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--recurse-submodules=no",
        "--filter=blob:none",
        "--stdin",
        "--",
        this.options.url,
      ],
      { ...this.remote, input: `${ids.join("\n")}\n` },
    );
  }

  private async verify(commit: string, accepted: string | null): Promise<void> {
    const { signers, folder, timeoutMs, url } = this.options;
    if (signers === null) return;
    const mirror: MirrorFolder = {
      folder,
      timeoutMs,
      deepen: async (of, by) => {
        const how = by === null ? "--unshallow" : `--deepen=${by}`;
        await runGit(
          ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--filter=tree:0", how, "--", url, of],
          this.remote,
        );
      },
    };
    try {
      await assertSigned(mirror, commit, signers);
      if (accepted !== null) await assertDescends(mirror, commit, accepted);
    } catch (error) {
      const why = error instanceof CommitRejected ? error.message : `could not be checked: ${(error as Error).message}`;
      throw new RemoteError(`the commit ${commit} ${why}`);
    }
  }
}

/** Returns the refs to fetch, in the order in which to try them. */
function listRefs(ref: string | null): string[] {
  if (ref === null) return ["HEAD"];
  return COMMIT.test(ref) || ref.startsWith("refs/") ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`];
}

function explainAbsence(ref: string | null): string {
  if (ref === null) return "the repository is empty";
  if (COMMIT.test(ref))
    return `the repository has no commit ${ref}, or its server does not serve single commits (uploadpack.allowReachableSHA1InWant)`;
  return ref.startsWith("refs/")
    ? `the repository has no ref "${ref}"`
    : `the repository has neither a branch nor a tag "${ref}"`;
}
