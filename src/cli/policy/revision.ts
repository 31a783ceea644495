/** Reads the policies of a git revision without changing the working folder. */
import { relative, resolve, sep } from "node:path";
import { parsePolicyFolder, type PolicyFile, type PolicyFolder } from "../../policies/folder.ts";
import { listPolicyTree, readPolicyTree, type RunGit } from "../../policies/git-tree.ts";
import { ProgramError, runProgram } from "../../programs/run-program.ts";
import { CommandError, EXIT_CODES, toPrintable } from "../command.ts";

const MAX_OUTPUT = 512 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

interface Revision {
  rev: string;
  /**
   * Folder in the revision, relative to the root of the repository, or to the working folder if it begins with "./" or
   * "../". Null if not given.
   */
  folder: string | null;
}

/** Parses `REV` or `REV:folder`. Throws CommandError. */
export function parseRevision(text: string): Revision {
  const colon = text.indexOf(":");
  const rev = colon < 0 ? text : text.slice(0, colon);
  // Git would parse such a revision as an option, and some options run programs.
  if (rev === "" || rev.startsWith("-"))
    throw new CommandError(`"${text}" is neither a folder nor a revision of git`, EXIT_CODES.usage);
  return { rev, folder: colon < 0 ? null : text.slice(colon + 1) };
}

/**
 * Loads the policies of a revision. Rejects with CommandError.
 * @param fallback folder to use if the revision does not contain a folder, relative to the working folder
 */
export async function loadRevision(
  { rev, folder }: Revision,
  fallback: string,
  { recursive = false, environment = null }: { recursive?: boolean; environment?: string | null },
): Promise<PolicyFolder> {
  const name = toPrintable(rev);
  // A bare repository, such as in a server-side hook, has no work tree. Paths are then relative to the working
  // folder.
  const inTree =
    decode(
      await git(
        ["rev-parse", "--is-inside-work-tree"],
        `"${name}" is not a folder, and cannot be a revision because the working folder is not in a git repository`,
      ),
    ).trim() === "true";
  const root = inTree ? decode(await git(["rev-parse", "--show-toplevel"])).replace(/\n$/, "") : process.cwd();
  const commit = decode(
    await git(
      ["rev-parse", "--verify", "--quiet", `${rev}^{commit}`],
      `"${name}" is neither a folder nor a revision of ${root}`,
    ),
  ).trim();
  const path = await pathInRepository(root, folder, fallback);
  const where = `${rev}:${path}`;
  const tree = path === "" ? `${commit}^{tree}` : `${commit}:${path}`;
  const kind = decode(
    await git(["cat-file", "-t", tree], `the revision "${name}" has no folder ${toPrintable(path)}`),
  ).trim();
  if (kind !== "tree") throw new CommandError(`${where} is a file, not a folder`, EXIT_CODES.usage);
  const { files, faults } = await listPolicyTree(run, tree, recursive, "a link is not followed in a revision");
  const contents = await readPolicyTree(
    run,
    files,
    (id) => new CommandError(`git does not have the object ${id}; a shallow or partial clone has to fetch it first`),
  );
  return parsePolicyFolder(
    where,
    files.map(({ name }, i): PolicyFile => ({ name, content: contents[i] as Uint8Array })),
    { unread: faults, environment },
  );
}

const run: RunGit = (args, input) => git([...args], null, input);

async function pathInRepository(root: string, folder: string | null, fallback: string): Promise<string> {
  if (folder !== null && !/^\.\.?(\/|$)/.test(folder)) return folder.replaceAll(/\/+$/g, "");
  const prefix = decode(await git(["rev-parse", "--show-prefix"])).replace(/\n$/, "");
  const path = relative(root, resolve(root, prefix, folder ?? relativeToCwd(fallback)));
  if (path === ".." || path.startsWith(`..${sep}`))
    throw new CommandError(
      `${folder ?? fallback} is outside the repository ${root}; name a folder, as in REV:folder`,
      EXIT_CODES.usage,
    );
  return path.split(sep).join("/");
}

function relativeToCwd(folder: string): string {
  return relative(process.cwd(), folder) || ".";
}

function decode(bytes: Buffer): string {
  return new TextDecoder().decode(bytes);
}

/**
 * Runs git without a shell. Rejects with CommandError.
 * @param refusal error message; null for the message of git
 */
async function git(args: string[], refusal: string | null = null, input = ""): Promise<Buffer> {
  try {
    const { code, stdout, stderr } = await runProgram("git", args, {
      // A clone that fetches missing objects on its own could wait for a server or for a password.
      env: { ...process.env, GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0", GIT_NO_LAZY_FETCH: "1" },
      input,
      timeoutMs: TIMEOUT_MS,
      maxOutput: MAX_OUTPUT,
    });
    if (code === 0) return stdout;
    throw new CommandError(refusal ?? toPrintable(stderr.trim().replace(/^fatal: /, "")), EXIT_CODES.usage);
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    if (error.reason === "not-found")
      throw new CommandError("git is not installed, so a revision cannot be read", EXIT_CODES.usage);
    throw new CommandError(error.message, EXIT_CODES.usage);
  }
}
