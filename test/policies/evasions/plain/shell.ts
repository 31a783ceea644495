import { whole, like, has, type Plain } from "./meaning.ts";

/** A line of a shell with nothing in it that a shell would act on. */
const looksOnly = like(
  /^(ls|cat|head|git status)( -[A-Za-z0-9]+| --short| [A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*\/?| [0-9]+)*$/,
);

export const shell: readonly Plain[] = [
  {
    tools: ["shell", "bash", "sh", "zsh", "terminal"],
    operations: ["run", "exec", "execute", "run_command"],
    params: {
      command: looksOnly,
      cwd: like(/^\/workspace(\/[A-Za-z0-9_][A-Za-z0-9_-]*)*$/),
      timeout: whole(1, 3_600),
    },
    also: (params) => has(params, "command"),
    samples: [
      { command: "head -n 20 notes.txt", cwd: "/workspace/app", timeout: 10 },
      { command: "git status --short" },
    ],
  },
];
