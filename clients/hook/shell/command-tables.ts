/** Tables of commands that start other commands, with their options. */

export interface Wrapper {
  /** Short options without a value (`flags`), and short options with a value (`values`). */
  flags: string;
  values: string;
  /** Long options, without dashes. Their value follows "=", or is the next word for `longValues`. */
  long?: readonly string[];
  longValues?: readonly string[];
  /** Number of positional arguments before the command, such as the duration of `timeout`. */
  positional?: number;
  /** Whether `NAME=value` can precede the command. */
  assigns?: boolean;
}

export const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  sudo: {
    flags: "AbEHknPS",
    values: "CDghpRrtTuU",
    long: ["preserve-env", "set-home", "non-interactive", "stdin", "reset-timestamp", "background", "askpass"],
    longValues: ["user", "group", "prompt", "host", "close-from"],
    assigns: true,
  },
  doas: { flags: "n", values: "u" },
  env: {
    flags: "i0v",
    values: "u",
    long: ["ignore-environment", "null", "debug"],
    longValues: ["unset"],
    assigns: true,
  },
  nice: { flags: "0123456789", values: "n", longValues: ["adjustment"] },
  nohup: { flags: "", values: "" },
  timeout: {
    flags: "fpv",
    values: "ks",
    long: ["foreground", "preserve-status", "verbose"],
    longValues: ["kill-after", "signal"],
    positional: 1,
  },
  stdbuf: { flags: "", values: "ioe", longValues: ["input", "output", "error"] },
  setsid: { flags: "cfw", values: "", long: ["ctty", "fork", "wait"] },
  ionice: { flags: "t", values: "cn", long: ["ignore"], longValues: ["class", "classdata"] },
  time: { flags: "pv", values: "", long: ["portability", "verbose"] },
  exec: { flags: "cl", values: "a" },
  command: { flags: "p", values: "" },
  builtin: { flags: "", values: "" },
  noglob: { flags: "", values: "" },
  nocorrect: { flags: "", values: "" },
  npx: { flags: "", values: "", long: ["no-install", "no"] },
  bunx: { flags: "", values: "" },
  "cross-env": { flags: "", values: "", assigns: true },
  busybox: { flags: "", values: "" },
  toybox: { flags: "", values: "" },
  xargs: {
    flags: "0oprtxeil",
    values: "adEILnPs",
    long: ["null", "no-run-if-empty", "interactive", "verbose", "exit", "open-tty"],
    longValues: ["arg-file", "delimiter", "max-args", "max-lines", "max-procs", "max-chars", "replace", "eof"],
  },
};

/** Commands that start another command with one of these subcommands. */
export const SUBCOMMAND_WRAPPERS: Readonly<Record<string, readonly string[]>> = {
  npm: ["exec", "x"],
  pnpm: ["exec", "dlx"],
  yarn: ["exec", "dlx"],
  bun: ["x"],
  uv: ["run"],
  poetry: ["run"],
  pdm: ["run"],
  pipenv: ["run"],
  hatch: ["run"],
  bundle: ["exec"],
};

/** Commands that download a package that is not installed, and run it. */
export const DOWNLOADERS: ReadonlySet<string> = new Set(["npx", "bunx", "npm exec", "npm x", "bun x"]);
/** Programs that projects usually install from the registry of npm. Those in the last line start other programs. */
export const NPM_PROGRAMS: ReadonlySet<string> = new Set(
  `assent astro attw ava babel biome c8 commitlint cspell cypress depcheck esbuild eslint gatsby graphql-codegen husky jest knip
  lefthook madge markdownlint markdownlint-cli2 mocha next ng nuxi nuxt nyc openapi-typescript oxfmt oxlint parcel playwright
  postcss prettier prisma publint pyright remix rollup sass size-limit spectral storybook stylelint svelte-check svelte-kit
  swc tailwindcss tap terser ts-node tsc tsc-alias tslint tsup tsx typedoc vite vitest vue-tsc webpack
  bun concurrently cross-env lerna npm npm-run-all nx pnpm run-p run-s turbo yarn`.split(/\s+/),
);

/** Names of tasks that are harmless even if their text is not known, because the project has none of this name. */
export const STANDARD_TASKS: ReadonlySet<string> = new Set(
  "test start build lint check typecheck type-check format dev docs coverage".split(" "),
);

/** Wrappers whose command is not parsed. They require approval. */
export const OPAQUE_WRAPPERS: ReadonlySet<string> = new Set(
  (
    "parallel script expect pkexec runuser chroot unshare nsenter strace ltrace gdb flock at batch entr tmux screen " +
    "dbus-run-session systemd-run start-stop-daemon setpriv capsh taskset chrt numactl prlimit cgexec firejail bwrap " +
    "proot fakeroot xvfb-run unbuffer chronic watch faketime torsocks proxychains caffeinate arch direnv coproc"
  ).split(" "),
);

export const SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash", "rbash"]);
export const OTHER_SHELLS: ReadonlySet<string> = new Set(
  "fish csh tcsh nu pwsh powershell powershell.exe pwsh.exe cmd cmd.exe xonsh elvish rc es".split(" "),
);

/** Interpreters, with the arguments that make them run code from the command line or load a module. */
export const INTERPRETERS: Readonly<Record<string, RegExp>> = {
  python: /^-[A-Za-z]*c/,
  perl: /^-[A-Za-z0-9]*[eE]/,
  ruby: /^-[A-Za-z0-9]*e/,
  node: /^(-[a-z]*[ep]|--eval|--print|-r|--require|--import)/,
  deno: /^(eval|repl)$/,
  bun: /^(-e|-p|--eval|--print|-r|--preload)/,
  php: /^-[A-Za-z]*[rBRE]/,
  lua: /^-e/,
  osascript: /^-e/,
  Rscript: /^-e/,
};

const HARMLESS_VARIABLES: ReadonlySet<string> = new Set(
  (
    "NODE_ENV CI TZ NO_COLOR FORCE_COLOR COLUMNS LINES DEBUG VERBOSE LOG_LEVEL RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED " +
    "PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING CARGO_TERM_COLOR CARGO_TERM_PROGRESS_WHEN CARGO_INCREMENTAL RUST_TEST_THREADS " +
    "GOMAXPROCS GOGC GIT_TERMINAL_PROMPT GOOS GOARCH CGO_ENABLED"
  ).split(" "),
);

/** Variables whose values contain no secrets. */
export const SHOWN_VARIABLES: ReadonlySet<string> = new Set([
  ...HARMLESS_VARIABLES,
  ..."PATH SHELL TERM USER LOGNAME LANG LC_ALL EDITOR PWD OLDPWD HOSTNAME".split(" "),
]);

/** Variables with lowercase names that have a meaning in zsh or fish. */
const SPECIAL_VARIABLES: ReadonlySet<string> = new Set(
  (
    "path fpath cdpath manpath mailpath fignore psvar watch prompt histchars argv status pipestatus options commands functions aliases " +
    "galiases saliases builtins reswords patchars parameters modules dirstack history historywords jobtexts jobdirs jobstates nameddirs " +
    "userdirs usergroups funcstack functrace signals errnos keymaps widgets mapfile termcap terminfo sysparams langinfo epochtime umask version"
  ).split(" "),
);

/** Upper-case names that scripts use for their own values and that no program reads. */
const LOCAL_VARIABLES = /^([A-Z]|FILES?|DIR|TMP_?(DIR|FILE)|WORKDIR|COUNT|RESULT|COMMIT|SHA|START|END|OLD|NEW)$/;

/** Returns true if a variable has no meaning for a shell or for the programs that it starts, even if it is exported. */
export const isPrivateVariable = (name: string): boolean =>
  (/^[a-z][a-z0-9]*$/.test(name) && !SPECIAL_VARIABLES.has(name)) ||
  /^(?!(npm|pnpm|yarn|fish|zsh|ac|rvm|nvm)_)[a-z]+(_[a-z0-9]+)+(?<!_proxy)$/.test(name) ||
  (LOCAL_VARIABLES.test(name) && name !== "TMPDIR");

/** Names of variables that may choose programs, code, servers, credentials or checks. */
const POWERFUL_VARIABLE =
  /PATH|PWD|PRELOAD|LIBRAR|^(LD|DYLD|GIT|SSH|NPM|PIP|UV|CARGO|RUST|GO|JAVA|JDK|MAVEN|GRADLE|PERL|RUBY|PYTHON|NODE|BUN|DENO|BASH|ZDOTDIR|XDG|AWS|GCP|AZURE|KUBE|DOCKER|HUSKY)|OPT|FLAGS|^ENV$|SHELL|HOME|TMP|EDITOR|PAGER|BROWSER|COMMAND|CMD|EXEC|PROXY|SSL|TLS|CERT|VERIFY|SECUR|TOKEN|SECRET|KEY|PASS|AUTH|HOST|URL|ADDR|ENDPOINT|DSN|REGISTRY|IFS|^PS[0-9]|CONFIG|RC$|PROD|TARGET|DEPLOY|PUBLISH|RELEASE|UPLOAD|FORCE|CONFIRM|YES|DANGER|DESTR|DROP|WIPE|RESET|PURGE|DELETE|CLEAN|SEED|MIGRAT|REMOTE|SKIP|DISABLE|BYPASS|ALLOW|UNSAFE/;
/** Values that switch something on or off, or choose a level, a number or the memory instead of a file. */
const SWITCH =
  /^([0-9]{1,9}|true|false|on|off|yes|no|test|testing|dev|development|debug|info|warn|warning|error|silent|:memory:)$/;
/** Options of Node that do not load code. */
const NODE_OPTION =
  /^--(max-old-space-size=[0-9]+|no-warnings|enable-source-maps|trace-warnings|trace-deprecation|experimental-vm-modules)$/;

/**
 * Returns true if an assignment cannot change which commands run, or how they run. Only the locales UTF-8 and C are
 * harmless, because in other character sets a backslash can be the second byte of a letter.
 */
export function isHarmlessAssignment(variable: string, value: string): boolean {
  return (
    // Check the values too, because zsh evaluates COLUMNS and LINES as numeric expressions.
    (HARMLESS_VARIABLES.has(variable) && /^[\w.,:+/-]*$/.test(value)) ||
    (/^[A-Z][A-Z0-9_]*$/.test(variable) && !POWERFUL_VARIABLE.test(variable) && SWITCH.test(value)) ||
    (/^(GIT_)?(SEQUENCE_)?EDITOR$/.test(variable) && /^(true|:)$/.test(value)) ||
    (variable === "NODE_OPTIONS" && value.split(" ").every((option) => NODE_OPTION.test(option))) ||
    // Modules of the project, which tests run anyway.
    (variable === "PYTHONPATH" && /^(\w[\w-]*(\/[\w-]+)*|[.])(:(\w[\w-]*(\/[\w-]+)*|[.]))*$/.test(value)) ||
    (variable === "RUSTFLAGS" && /^-D ?warnings$/.test(value)) ||
    (/^(GIT_)?PAGER$/.test(variable) && /^(cat|)$/.test(value)) ||
    (/^(LANG|LC_[A-Z]+)$/.test(variable) && /^(C|POSIX|\w+[.]UTF-?8|C[.]UTF-?8)$/i.test(value))
  );
}

/** Folders that contain the system's commands. */
export const SYSTEM_FOLDERS: ReadonlySet<string> = new Set([
  "/bin",
  "/sbin",
  "/usr/bin",
  "/usr/sbin",
  "/usr/local/bin",
  "/usr/local/sbin",
  "/opt/homebrew/bin",
]);
