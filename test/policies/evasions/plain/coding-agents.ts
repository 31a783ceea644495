import { number, flag, has, type Meant, type Plain } from "./meaning.ts";

/** What the hook makes of a command that only looks (clients/hook/action/canonical-action.ts), whose word the pack takes. */
const WORKSPACE = "/work/app";
const inside = (value: unknown): boolean =>
  typeof value === "string" && (value === WORKSPACE || value.startsWith(`${WORKSPACE}/`));
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((each) => typeof each === "string");
const options =
  (harmless: RegExp) =>
  (args: string[]): boolean =>
    args.every((word) => !word.startsWith("-") || harmless.test(word));
const any = (): boolean => true;
/** Every beginning of an option of git that writes, starts a program or reads other files. */
const isUnsafeGitOption = (word: string): boolean =>
  /^--\w/.test(word) &&
  "output remote exec exec-path add-file add-virtual-file expire rewrite updateref ext-diff textconv filters no-index open-files-in-pager no-exclude-standard untracked stdin batch batch-command recurse-submodules parseopt"
    .split(" ")
    .some((name) => `--${name}`.startsWith(word.split("=")[0] as string));
/** Commands that write nothing and start nothing, the project's tests and builds, and removing what a build made. */
const LOOKS: Readonly<Record<string, (args: string[]) => boolean>> = {
  // No option of these writes a file or starts a program. The hook determines which files they read.
  ...Object.fromEntries("cd echo ls cat head tail diff grep".split(" ").map((name) => [name, any])),
  // The hook reads its program.
  sed: any,
  sort: options(/^-[bcdfghiknruRVz0-9.,]+$/),
  uniq: (args) => options(/^-[cdiu]+$/)(args) && args.filter((each) => !each.startsWith("-")).length < 2,
  tree: (args) => !args.some((word) => /^-[a-zA-Z]*[oR]|^--(output|from)/.test(word)),
  rg: options(
    /^-[nilcwsvxFUoaHINSPpqbhV0-9]*([ABCmMtTgerjdE][^]*)?$|^--(?!pre|hostname-bin|search-zip|no-ignore|unrestricted|hidden|follow|no-config|ignore-file|no-require)/,
  ),
  find: (args) => !args.some((word) => /^-(delete|fprint|fls|files0-from)/.test(word)),
  git: ([verb = "", ...args]) =>
    (["status", "diff", "log", "show"].includes(verb) && !args.some(isUnsafeGitOption)) ||
    (verb === "branch" &&
      args.every((word) =>
        /^-(-show-current|-list|-all|a|r|l|v|vv|-no-color|-remotes|n[0-9]*)$|^[A-Za-z0-9._/*-]*$/.test(word),
      ) &&
      args.filter((word) => !word.startsWith("-")).length < 2),
  rm: (args) => args.every((word) => /^(-rf?|dist\/?)$/.test(word)),
  docker: (args) => args.join(" ") === "ps",
  // The hook adds the commands of the script, so its name does not matter.
  npm: ([verb, ...args]) => {
    const rest = verb === "run" ? args.slice(1) : args;
    return (
      ["test", "run"].includes(verb as string) &&
      (verb === "test" || args.length > 0) &&
      (rest[0] === "--" || !rest.some((word) => word.startsWith("-")))
    );
  },
};
interface Command {
  name: unknown;
  args: string[];
  via: unknown[];
}
const isPlainCommand = ({ name, args, via }: Command): boolean =>
  isTexts(args) &&
  Array.isArray(via) &&
  via.every((each) => name !== "git" && (each === "timeout" || each === "time")) &&
  typeof name === "string" &&
  Object.hasOwn(LOOKS, name) &&
  (LOOKS[name] as (args: string[]) => boolean)(args);
/** The hook writes which temporary files do not exist, or belong to the agent. */
const isScratch = (scratch: unknown, path: unknown): boolean =>
  isTexts(scratch) && (scratch as unknown[]).includes(path) && /^\/tmp\/./.test(path as string);
const looksInside: Meant = (value) => {
  const parsed = value as Record<string, unknown>;
  const commands = parsed?.["commands"] as Command[];
  return (
    parsed?.["version"] === 2 &&
    ["unclear", "secrets", "untracked", "later", "hosts"].every(
      (name) => Array.isArray(parsed[name]) && (parsed[name] as unknown[]).length === 0,
    ) &&
    isTexts(parsed["writes"]) &&
    (parsed["writes"] as unknown[]).every((path) => inside(path) || /^(\/private)?\/tmp\//.test(path as string)) &&
    Array.isArray(parsed["reads"]) &&
    Array.isArray(parsed["paths"]) &&
    (parsed["paths"] as unknown[]).every((path) => inside(path) || isScratch(parsed["scratch"], path)) &&
    Array.isArray(commands) &&
    commands.length > 0 &&
    commands.every((command) => typeof command === "object" && command !== null && isPlainCommand(command))
  );
};
const workspaceFiles: Meant = (value) =>
  isTexts(value) &&
  (value as string[]).length > 0 &&
  (value as string[]).every(
    (path) => inside(path) && !/\/\.\.?(\/|$)|\/\.(env|git|claude|github)/.test(path) && !/\.(pem|key)$/i.test(path),
  );

const NOTHING = { version: 2, reads: [], writes: [], hosts: [], secrets: [], untracked: [], later: [], unclear: [] };
const isEmpty: Meant = (value) => Array.isArray(value) && value.length === 0;
const documentation: Meant = (value) =>
  isTexts(value) && (value as string[]).length > 0 && (value as string[]).every((host) => host === "nodejs.org");

export const codingAgents: readonly Plain[] = [
  {
    tools: ["web"],
    operations: ["fetch"],
    params: {
      // Whatever it says: the hook writes the hosts that it names.
      urls: () => true,
      hosts: documentation,
      options: (value) =>
        typeof value === "object" &&
        value !== null &&
        !Array.isArray(value) &&
        Object.keys(value).every((key) => key === "prompt"),
    },
    also: (params) => has(params, "hosts"),
    samples: [{ urls: ["https://nodejs.org/api/"], hosts: ["nodejs.org"], options: { prompt: "x" } }],
  },
  {
    tools: ["web"],
    operations: ["search"],
    params: { query: (value) => typeof value === "string" && value.length <= 200 },
    also: (params) => has(params, "query"),
    samples: [{ query: "round half to even" }],
  },
  {
    tools: ["shell"],
    operations: ["run"],
    params: {
      // Whatever it says: what the hook read in it stands beside it.
      command: (value) => typeof value === "string",
      cwd: inside,
      workspace: (value) => value === WORKSPACE,
      parsed: looksInside,
      timeout: number,
      background: flag,
    },
    also: (params) => has(params, "command", "cwd", "workspace", "parsed"),
    samples: [
      {
        command: "ls -la src",
        cwd: WORKSPACE,
        workspace: WORKSPACE,
        timeout: 10,
        parsed: {
          ...NOTHING,
          commands: [{ name: "ls", args: ["-la", "src"], via: [] }],
          paths: ["/work/app/src"],
        },
      },
      {
        command: "npm test",
        cwd: WORKSPACE,
        workspace: WORKSPACE,
        parsed: {
          ...NOTHING,
          commands: [{ name: "npm", args: ["test"], via: [] }],
          paths: ["/work/app/test"],
        },
      },
    ],
  },
  {
    tools: ["files"],
    operations: ["read", "search", "write"],
    params: {
      paths: workspaceFiles,
      workspace: (value) => value === WORKSPACE,
      options: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
      secrets: isEmpty,
      untracked: isEmpty,
      // A list, even of files that run later, has no meaning for a read.
      later: (value) => Array.isArray(value),
    },
    also: (params) => has(params, "paths", "workspace", "secrets", "untracked", "later"),
    samples: [
      {
        paths: ["/work/app/src/main.ts"],
        workspace: WORKSPACE,
        options: { content: "x" },
        secrets: [],
        untracked: [],
        later: [],
      },
    ],
  },
  {
    tools: ["agent"],
    operations: ["task", "todowrite", "todoread", "update_plan"],
    params: { input: (value) => typeof value === "object" && value !== null && !Array.isArray(value) },
    also: (params) => has(params, "input"),
    samples: [{ input: { todos: [] } }],
  },
];
