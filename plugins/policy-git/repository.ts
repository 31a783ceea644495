/**
 * Reads one branch or tag of a remote repository. Each load clones the newest commit into a new folder and removes the
 * folder afterwards. So files of an interrupted git, such as a lock or half a pack, cannot affect the next load.
 */
import { MAX_FILE_LENGTH } from "../../src/core.ts";
import {
  listFilesBeside,
  listPolicyTree,
  listUnloaded,
  type PolicyFile,
  readPolicyTree,
  readUnloadedFiles,
  sizePolicyTree,
  type TextFault,
  type TreeFile,
  type UnloadedFile,
} from "../../src/plugin.ts";
import { createCloneFolder, removeCloneFolder } from "./clone-folder.ts";
import { runGit, GitError, type GitOptions } from "./git.ts";
import { assertDescends, assertSigned, CommitRejected, type CloneOptions } from "./signed.ts";

interface RepositoryOptions {
  /** URL without credentials. */
  url: string;
  /** Branch, tag, full ref or full commit id; null for the remote's HEAD. */
  ref: string | null;
  /** Folder in which clones are created. */
  folder: string;
  timeoutMs: number;
  /** Aborts all operations. */
  signal: AbortSignal;
  secrets: GitOptions["secrets"];
  env: Readonly<Record<string, string>>;
  /** OpenSSH public keys, one per line, one of which must have signed the commit; null if no signature is required. */
  signers: readonly string[] | null;
}

/** The remote cannot be reached or read, or it lacks the branch or tag. A later attempt might succeed. */
export class RemoteError extends Error {}

/** The commit lacks the folder or the required signature, or it does not descend from the accepted commit. */
export class CommitError extends Error {}

export interface Repository {
  /** Resolves to the id of the remote's newest commit. Rejects with RemoteError. */
  newest(): Promise<string>;
  /** Clones the newest commit. Rejects with RemoteError. */
  clone(): Promise<Clone>;
}

export interface Clone {
  /** Id of the commit. */
  readonly commit: string;
  /**
   * Resolves to the policy files below `path`. Rejects with CommitError if the folder does not exist, if the commit is
   * not signed by one of the signers, or if it does not descend from `accepted`; rejects with RemoteError if the remote
   * cannot be read.
   */
  files(
    path: string,
    recursive: boolean,
    accepted: string | null,
  ): Promise<{ files: PolicyFile[]; faults: TextFault[]; unloaded: readonly UnloadedFile[] }>;
  /** Removes the folder of the clone. */
  remove(): Promise<void>;
}

const HEAD = "refs/assent/head";
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;

export function openRepository(options: RepositoryOptions): Repository {
  return {
    newest: () => asRemoteError(() => readNewest(options)),
    async clone() {
      const clone = new GitClone(options);
      try {
        await asRemoteError(() => clone.create());
      } catch (error) {
        await clone.remove();
        throw error;
      }
      return clone;
    },
  };
}

/** Asks the remote, without a local repository. */
async function readNewest({ url, ref, timeoutMs, signal, env, secrets }: RepositoryOptions): Promise<string> {
  const isCommit = ref !== null && COMMIT.test(ref);
  const names = isCommit ? ["HEAD"] : listRefs(ref);
  const output = await runGit(["ls-remote", "--", url, ...names, ...names.map((name) => `${name}^{}`)], {
    dir: null,
    timeoutMs,
    signal,
    env,
    ...(secrets === undefined ? {} : { secrets }),
  });
  // The remote is reachable, and the id of a commit never refers to another commit.
  if (isCommit) return ref;
  const ids = new Map<string, string>();
  for (const line of output.toString("utf8").split("\n")) {
    const [id = "", name = ""] = line.split("\t");
    ids.set(name, id);
  }
  // "^{}" is the commit to which an annotated tag refers.
  const commit = names.map((name) => ids.get(`${name}^{}`) ?? ids.get(name)).find((id) => id !== undefined);
  if (commit === undefined) throw new RemoteError(explainAbsence(ref));
  return commit;
}

/** Converts errors of git and of the file system to RemoteError. */
async function asRemoteError<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RemoteError) throw error;
    throw new RemoteError(
      `the repository could not be fetched: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

class GitClone implements Clone {
  commit = "";
  private readonly options: RepositoryOptions;
  /** Folder of the bare repository; null before it is created and after it is removed. */
  private folder: string | null = null;

  constructor(options: RepositoryOptions) {
    this.options = options;
  }

  /** Creates the folder, and fetches the commit into it. */
  async create(partial = true): Promise<void> {
    await this.remove();
    const { folder, timeoutMs, signal } = this.options;
    this.folder = await createCloneFolder(folder);
    await runGit(["init", "--bare", "--quiet", "--template=", this.folder], { dir: null, timeoutMs, signal });
    this.commit = await this.pull(partial);
  }

  async remove(): Promise<void> {
    const { folder } = this;
    this.folder = null;
    if (folder !== null) await removeCloneFolder(folder);
  }

  async files(path: string, recursive: boolean, accepted: string | null): ReturnType<Clone["files"]> {
    const { commit } = this;
    await this.verify(accepted);
    const tree = path === "" ? `${commit}^{tree}` : `${commit}:${path}`;
    const findUnloaded = async (others: Awaited<ReturnType<typeof listFilesBeside>>): Promise<UnloadedFile[]> => {
      const beside = await listFilesBeside(this.run, commit, path).catch(() => []);
      return readUnloadedFiles(this.run, [...beside, ...others], (files) => this.sizes(files));
    };
    const listing = await listPolicyTree(
      this.run,
      tree,
      recursive,
      "links in a repository are not followed; replace the link with the file",
    ).catch(async (error: unknown) => {
      if (error instanceof GitError && error.code !== null)
        throw new CommitError(`the commit ${commit} has no folder "${path}"${listUnloaded(await findUnloaded([]))}`);
      throw new RemoteError(`the folders of commit ${commit} could not be read: ${String(error)}`);
    });
    const bytes = await this.sizes(listing.files).catch((error: unknown) => {
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
      (id) => new RemoteError(`the clone does not have the object ${id}`),
    );
    return {
      files: files.map(({ name }, i) => ({ name, content: contents[i] as Uint8Array })),
      faults: [...listing.faults, ...tooLarge],
      unloaded: await findUnloaded(listing.others),
    };
  }

  /** Runs a git command in the clone that does not connect to the remote. */
  private readonly run = (args: readonly string[], input?: string): Promise<Buffer> =>
    runGit(args, { ...this.local, ...(input === undefined ? {} : { input }) });

  private async text(args: readonly string[]): Promise<string> {
    return (await this.run(args)).toString("utf8").trim();
  }

  /** Options of git commands that do not connect to the remote. */
  private get local(): CloneOptions {
    const { timeoutMs, signal } = this.options;
    if (this.folder === null) throw new Error("the clone has been removed");
    return { dir: this.folder, timeoutMs, signal };
  }

  /** Options of git commands that connect to the remote. */
  private get remote(): GitOptions {
    const { env, secrets } = this.options;
    return { ...this.local, env, ...(secrets === undefined ? {} : { secrets }) };
  }

  /**
   * Fetches the newest commit and its trees. Fetches file contents only if the server cannot omit them. Tries branches
   * before tags, like git does.
   */
  private async pull(partial: boolean): Promise<string> {
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

  /** Resolves to the sizes of the files in bytes. Fetches files that the partial clone does not have. */
  private async sizes(files: readonly TreeFile[]): Promise<(number | null)[]> {
    const present = await sizePolicyTree(this.run, files).catch(() => files.map(() => null));
    if (!present.includes(null)) return present;
    try {
      await this.fetchObjects(files.map(({ id }) => id));
    } catch (error) {
      if (!(error instanceof GitError) || error.code === null) throw error;
      // The server may not serve single objects. Fetch the whole commit instead.
      const { commit } = this;
      await this.create(false);
      if (this.commit !== commit)
        throw new RemoteError(`the repository moved on from commit ${commit} while it was fetched`);
    }
    return sizePolicyTree(this.run, files);
  }

  private async fetchObjects(ids: readonly string[]): Promise<void> {
    await runGit(
      // Do not report the commits that the clone has, as git does when it fetches missing objects: the server would
      // then omit their files.
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

  private async verify(accepted: string | null): Promise<void> {
    const { commit } = this;
    const { signers, url } = this.options;
    if (signers === null) return;
    const deepen = async (by: number | null): Promise<void> => {
      const options = by === null ? "--unshallow" : `--deepen=${by}`;
      await runGit(
        ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--filter=tree:0", options, "--", url, commit],
        this.remote,
      );
    };
    try {
      await assertSigned(this.local, commit, signers);
      if (accepted !== null) await assertDescends(this.local, deepen, commit, accepted);
    } catch (error) {
      if (error instanceof CommitRejected) throw new CommitError(`the commit ${commit} ${error.message}`);
      throw new RemoteError(`the commit ${commit} could not be checked: ${(error as Error).message}`);
    }
  }
}

/** Returns the refs to fetch, in the order in which to try them. */
function listRefs(ref: string | null): string[] {
  if (ref === null) return ["HEAD"];
  return COMMIT.test(ref) || ref.startsWith("refs/") ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`];
}

function explainAbsence(ref: string | null): string {
  if (ref === null)
    return "the repository is empty, or its HEAD refers to a branch that does not exist; set `ref` to an existing branch or tag";
  if (COMMIT.test(ref))
    return `the repository has no commit ${ref}, or its server does not serve single commits (uploadpack.allowReachableSHA1InWant)`;
  return ref.startsWith("refs/")
    ? `the repository has no ref "${ref}"`
    : `the repository has neither a branch nor a tag "${ref}"`;
}
