/**
 * Reads the text of a program in JavaScript, TypeScript or Python. A program is local if it only computes and uses files that its text
 * or its arguments name: it uses no network, database, environment variable or other module than those of the lists, deletes nothing,
 * and starts only programs whose names and arguments are in its text. Code that hides what it does is not recognized, so text that
 * the agent wrote in the command line itself must also name each file.
 */
import type { ProjectFiles } from "./tasks/task-body.ts";
import { isSourcePattern, suggestsSecrets } from "../action/place-table.ts";
import { isHarmlessVariable } from "./command-tables.ts";

export type Language = "javascript" | "python";

/** What a local program does. */
export interface LocalProgram {
  /** Words in quotes that may be files. */
  names: Set<string>;
  /** Commands that the program starts. A word with a computed part is null. */
  commands: (string | null)[][];
  writesFiles: boolean;
  listsFolders: boolean;
}

interface Syntax {
  /** Modules that only compute and use files of the workspace. */
  modules: ReadonlySet<string>;
  /** Modules for text in the command line: these open no files by themselves. */
  computing: ReadonlySet<string>;
  /** Names that can do more than that, or hide what the program does. */
  unsafe: RegExp;
  /** The same for text in the command line. */
  hiding: RegExp;
  writes: RegExp;
  lists: RegExp;
  /** Finds the folders and patterns of which a program lists files. */
  places: RegExp;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const SYNTAX: Readonly<Record<Language, Syntax>> = {
  javascript: {
    modules: words(
      "assert assert/strict buffer child_process crypto events fs fs/promises os path path/posix perf_hooks process querystring readline " +
        "readline/promises stream stream/promises string_decoder test timers timers/promises tty url util zlib",
    ),
    computing: words("assert assert/strict buffer crypto events fs os path perf_hooks querystring url util"),
    unsafe: new RegExp(
      [
        String.raw`(?<![.\w])(eval|Function|fetch|globalThis|global|window|self|Worker|WebAssembly|WebSocket|EventSource|XMLHttpRequest|Deno|Bun|navigator|Reflect)(?![\w:])`,
        String.raw`\b(constructor|__proto__|homedir|userInfo|networkInterfaces|binding|dlopen|getBuiltinModule|createRequire|mainModule|runInNewContext)\b`,
        String.raw`\b(rm|unlink|rmdir|f?truncate|l?chmod|l?chown|symlink|link|rename|cp|copyFile|open|watch|watchFile)(Sync)?\s*\(`,
        String.raw`\bprocess\b(?!\s*\.\s*(argv|exit|exitCode|stdout|stderr|stdin|cwd|platform|arch|version|versions|hrtime|memoryUsage|uptime|on|env\.[A-Z_]+)\b|['"/])`,
        String.raw`\bimport\s*\(|\bimport\s*\.\s*meta\b(?!\.(url|dirname|filename))|\brequire\b(?!\s*\(\s*['"][^'"]*['"]\s*\))|\bmodule\b(?!\.exports|['"])`,
      ].join("|"),
    ),
    hiding:
      /\\[ux]|\]\s*\(|\bfromCharCode\b|\batob\b|base64|(?<!["'/:])\bfs\b(?!\s*\.|\s*=\s*require\b|\s+from\b|['"/])|\b(watch|glob)\b/,
    writes: /write|append|mkdir/i,
    lists: /readdir|opendir|glob/,
    places: /\b(?:readdir|opendir|glob)(?:Sync)?\s*\(\s*['"`]([^'"`]*)['"`]/g,
  },
  python: {
    modules: words(
      "__future__ abc argparse ast bisect calendar collections collections.abc colorsys configparser contextlib copy csv dataclasses datetime " +
        "decimal difflib enum fnmatch fractions functools glob graphlib hashlib heapq html io itertools json keyword locale math operator os " +
        "os.path pathlib platform pprint random re statistics string struct subprocess sys textwrap time tokenize tomllib traceback types " +
        "typing unicodedata unittest uuid warnings yaml zlib",
    ),
    computing: words(
      "__future__ ast bisect calendar collections copy csv dataclasses datetime decimal difflib enum fractions functools hashlib heapq html " +
        "itertools json keyword math operator os.path pathlib platform pprint random re statistics string struct sys textwrap time tomllib " +
        "typing unicodedata uuid yaml zlib glob io",
    ),
    unsafe: new RegExp(
      [
        String.raw`(?<!\.)\b(eval|exec|compile|getattr|setattr|globals|locals|vars|breakpoint|input)\s*\(`,
        String.raw`__(?!(name|file|future|init|main|str|repr|doc|all|version|enter|exit|iter|next|len|eq|lt|hash|call|post_init|getitem|contains|slots|annotations)__)\w+__`,
        String.raw`\bos\s*\.\s*(?!(path|walk|listdir|scandir|sep|getcwd|makedirs|mkdir|linesep|name|stat|fspath|curdir|cpu_count|pathsep|get_terminal_size|PathLike|DirEntry)\b)`,
        String.raw`\bfrom\s+os\s+import\s+(?!(path|walk|listdir|scandir|sep|getcwd|makedirs|PathLike)\s*$)`,
        String.raw`\bsys\s*\.\s*(?!(argv|exit|stdin|stdout|stderr|version|version_info|platform|maxsize|byteorder)\b)|\bfrom\s+sys\s+import\s+(?!(argv|exit|stdin|stdout|stderr)\s*$)`,
        String.raw`\.\s*(unlink|rmdir|rename|symlink_to|hardlink_to|chmod|lchmod|home|expanduser|remove\s*\(\s*['"][^'"]*[/.]|replace\s*\([^,()]*\))|\bshell\s*=`,
        String.raw`\bimport\s[\w., ]*\b(os|sys|subprocess|path)\s+as\b`,
        // Modules of modules: "random._os".
        String.raw`\.\s*_?(os|sys|builtins|subprocess|importlib|modules|posix|nt)\b`,
        String.raw`\bpath\s*\.\s*expand|\byaml\s*\.\s*(?!safe_(load|dump)\b)|\bfrom\s+yaml\b`,
      ].join("|"),
      "m",
    ),
    hiding:
      /\._[a-z]|\b(walk|listdir|scandir|joinpath|parents?|with_name|with_suffix|with_stem|absolute|resolve|cwd|b64decode|fromhex|chr|format_map|io)\b|\\[ux]|\bos\s*\.\s*(walk|listdir|scandir)|\biterdir\b/,
    writes: /write|mkdir|touch|makedirs|\bopen\s*\([^()]*,|dump\s*\(/,
    lists: /\b(walk|listdir|scandir|glob|rglob|iterdir)\b/,
    places: /(?:\bPath|\bwalk|\blistdir|\bscandir|\bglob\s*\.\s*i?glob|(?<!\.\s*)\bi?glob)\s*\(\s*r?['"]([^'"]*)['"]/g,
  },
};

const QUOTED = String.raw`(?:r?'[^'\\\n{}]*'|r?"[^"\\\n{}]*")`;
const BACKQUOTED = "`[^`\\\\$]*`";

const MAX_MODULES = 40;
const MAX_NAMES = 60;

export class ProgramReader {
  private readonly seen = new Set<string>();
  private readonly roots: string[] = [];
  private readonly language: Language;
  private readonly project: ProjectFiles;
  readonly program: LocalProgram = { names: new Set(), commands: [], writesFiles: false, listsFolders: false };

  constructor(language: Language, project: ProjectFiles) {
    this.language = language;
    this.project = project;
  }

  /** Reads a file and the modules of the project that it imports. Returns false if it is not local. */
  readFile(path: string): boolean {
    if (this.seen.has(path)) return true;
    if (this.seen.add(path).size > MAX_MODULES) return false;
    const text = this.project.read(path);
    return text !== null && this.readText(text, path.slice(0, path.lastIndexOf("/")), false);
  }

  /** @param isInline whether the agent wrote the text in the command line */
  readText(source: string, folder: string, isInline: boolean): boolean {
    const syntax = SYNTAX[this.language];
    // Modules are also searched in the folders that the program adds.
    const added = /\bsys\.path\.(?:insert\(\s*0\s*,|append\()\s*['"]([\w./-]+)['"]\s*\)/g;
    const text = this.withoutComments(source).replace(added, (_, place: string) => {
      this.roots.push(`${folder}/${place}`);
      return "pass";
    });
    if (syntax.unsafe.test(text) || (isInline && !namesEveryFile(text, this.language))) return false;
    for (const [, name] of text.matchAll(/\bprocess\s*\.\s*env\.([A-Z_]+)/g))
      if (!isHarmlessVariable(name as string)) return false;
    const writes = syntax.writes.test(text);
    // Between two quotation marks is a word, or code, which is no name of a file.
    const found = new Set(
      text.split(/["'`]/).filter((piece) => /^[\w@~./][\w@.*/~-]*$/.test(piece) && /\w/.test(piece)),
    );
    for (const [, place = ""] of text.matchAll(syntax.places)) found.add(place);
    // Modules are read below.
    for (const [, name = ""] of text.matchAll(/\b(?:from|import|require\s*\()\s*['"](\.[^'"]*)['"]/g))
      found.delete(name);
    for (const name of found) {
      if (suggestsSecrets(`/${name}`)) return false;
      // `.ts` and `1.5` are no files, unless they exist.
      const isName =
        /\/|^[^.].*[.]|^[.]+$|[*]/.test(name) || (writes && name.startsWith(".") && !isSourcePattern(name));
      if (isName || this.exists(folder, name)) this.program.names.add(name);
    }
    this.program.writesFiles ||= writes;
    this.program.listsFolders ||= syntax.lists.test(text);
    if (this.program.names.size > MAX_NAMES) return false;
    return this.readImports(text, folder, isInline ? syntax.computing : syntax.modules) && this.readCommands(text);
  }

  private exists(folder: string, name: string): boolean {
    const path = `${folder}/${name}`.replace(/\/+$/, "");
    const at = path.lastIndexOf("/");
    return this.project.list(path.slice(0, at))?.includes(path.slice(at + 1)) === true;
  }

  private withoutComments(text: string): string {
    // Removes only whole lines, which cannot be parts of code. Comments after code are read like code.
    return this.language === "python"
      ? text.replace(/^\s*#.*$/gm, "")
      : text.replace(/^#!.*$/m, "").replace(/^\s*\/\/.*$/gm, "");
  }

  private readImports(text: string, folder: string, allowed: ReadonlySet<string>): boolean {
    return this.language === "python"
      ? this.pythonImports(text, folder, allowed)
      : this.javascriptImports(text, folder, allowed);
  }

  private javascriptImports(text: string, folder: string, allowed: ReadonlySet<string>): boolean {
    const patterns = [
      /\b(?:import|export)\b(?!\s+type\b)[^;'"`]*?\bfrom\s*['"]([^'"]+)['"]/g,
      /\bimport\s*['"]([^'"]+)['"]/g,
      /\brequire\s*\(\s*['"]([^'"]*)['"]\s*\)/g,
    ];
    return patterns
      .flatMap((pattern) => [...text.matchAll(pattern)])
      .every(([, name = ""]) => {
        if (name.includes("node_modules")) return false;
        if (!name.startsWith(".")) return allowed.has(name.replace(/^node:/, ""));
        if (name.endsWith(".json")) return this.program.names.add(name).size > 0;
        const base = `${folder}/${name}`;
        const candidates = ["", ".ts", ".tsx", ".mts", ".js", ".mjs", ".cjs", "/index.ts", "/index.js"].map(
          (each) => base + each,
        );
        const path = [...candidates, base.replace(/\.([cm]?)js(x?)$/, ".$1ts$2")].find(
          (each) => this.project.read(each) !== null,
        );
        return path !== undefined && this.readFile(path);
      });
  }

  private pythonImports(text: string, folder: string, allowed: ReadonlySet<string>): boolean {
    const names: string[] = [];
    // Other statements can precede an import on the same line.
    for (const [statement] of text.matchAll(/(?<=^|[;:\n])[ \t]*(import|from)\s[^;\n]*/g)) {
      const [, from, imported] = /^\s*from\s+([\w.]+)\s+import\s+(.+)$/.exec(statement) ?? [];
      const [, list] = /^\s*import\s+(.+)$/.exec(statement) ?? [];
      if (from !== undefined)
        names.push(
          ...(/^\.+$/.test(from)
            ? (imported as string)
                .replace(/[()]/g, "")
                .split(",")
                .map((each) => from + each.trim())
            : [from]),
        );
      else if (list !== undefined) names.push(...list.split(",").map((each) => each.trim().split(/\s/)[0] as string));
    }
    const count = text.match(/(?<![\w.])import(?=[\s(])/g)?.length ?? 0;
    const statements = text.match(/(?<=^|[;:\n])[ \t]*(import|from)\s[^;\n]*/g) ?? [];
    return statements.length >= count && names.every((name) => this.pythonModule(name, folder, allowed));
  }

  private pythonModule(name: string, folder: string, allowed: ReadonlySet<string>): boolean {
    const [, dots = "", rest = ""] = /^(\.*)([\w.]*)$/.exec(name) ?? [];
    const base = folder + "/..".repeat(Math.max(dots.length - 1, 0));
    const path = rest.replaceAll(".", "/");
    const files = [base, ...(dots === "" ? this.roots : [])].flatMap((each) => [
      `${each}/${path}.py`,
      `${each}/${path}/__init__.py`,
    ]);
    // A file of the project hides the module of the same name.
    const file = files.find((each) => this.project.read(each) !== null);
    if (file !== undefined) return this.readFile(file);
    return dots === "" && allowed.has(name);
  }

  private readCommands(text: string): boolean {
    const isPython = this.language === "python";
    if (!(isPython ? /\bsubprocess\b/ : /\bchild_process\b/).test(text)) return true;
    const functions = isPython ? "run|check_output|check_call|call|Popen" : "execFileSync|execFile|spawnSync|spawn";
    const all = isPython ? `${functions}|getoutput|getstatusoutput` : `${functions}|execSync|exec|fork`;
    const word = String.raw`\s*(?:f?'[^'\\\n]*'|f?"[^"\\\n]*"|${"`[^`\\\\]*`"})\s*`;
    const call = isPython
      ? new RegExp(String.raw`\bsubprocess\s*\.\s*(?:${functions})\s*\(\s*\[((?:${word},?)+)\]`, "g")
      : new RegExp(String.raw`(?<![.\w])(?:${functions})\s*\((${word})(?:,\s*\[((?:${word},?)*)\]|\))`, "g");
    const calls = [...text.matchAll(call)];
    const uses =
      text.match(isPython ? /\bsubprocess\b/g : new RegExp(String.raw`(?<![.\w])(?:${all})\b(?=\s*\()`, "g")) ?? [];
    const imports = isPython ? (text.match(/\bimport\s+subprocess\b/g)?.length ?? 0) : 0;
    // `import cp from "child_process"` gives the functions another name.
    if (!isPython && !/\{[^{}]*\}\s*(from|=\s*require\s*\()\s*\(?\s*['"](node:)?child_process/.test(text)) return false;
    if (/\bas\b|\w\s*:\s*\w+\s*[,}]/.test(/\{([^{}]*)\}[^{}]*child_process/.exec(text)?.[0] ?? "")) return false;
    if (calls.length === 0 || calls.length !== uses.length - imports) return false;
    for (const [, ...parts] of calls)
      this.program.commands.push(
        [...parts.join(",").matchAll(/(f?)(?:'([^']*)'|"([^"]*)"|`([^`]*)`)/g)].map(
          ([, format, single, double, template]) => {
            const value = single ?? double ?? template ?? "";
            return (format === "f" && value.includes("{")) || template?.includes("${") === true ? null : value;
          },
        ),
      );
    return true;
  }
}

/** Functions of Node that use a file. */
const NODE_FILE_FUNCTIONS =
  /\b(readFile|writeFile|appendFile|createReadStream|createWriteStream|exists|stat|lstat|access|mkdir|opendir|readdir)(Sync)?\b/g;

/** Whether a program names each file that it uses in quotes, so that no file is hidden. */
function namesEveryFile(text: string, language: Language): boolean {
  // Two words in quotes have no reason to be apart, except to hide a name.
  if (SYNTAX[language].hiding.test(text) || /['"`]\s*\+\s*[rbu]?['"`]/.test(text)) return false;
  return language === "python" ? namesPythonFiles(text) : namesNodeFiles(text);
}

function namesNodeFiles(text: string): boolean {
  const quoted = new RegExp(String.raw`^\s*\(\s*(?:${QUOTED}|${BACKQUOTED})\s*[,)]`);
  const functions = [...text.matchAll(NODE_FILE_FUNCTIONS)].every(({ 0: name, index }) => {
    const rest = text.slice(index + name.length);
    // A list in an import, such as `{ readFileSync }`.
    return quoted.test(rest) || (/^\s*[,}]/.test(rest) && /[{,]\s*$/.test(text.slice(0, index)));
  });
  // `fs` itself can only be used with a function: `fs.readFileSync(…)`.
  const modules = [...text.matchAll(/(?:require\s*\(\s*)?['"](?:node:)?fs(?:\/promises)?['"]\s*\)?/g)].every(
    ({ 0: name, index }) =>
      /^\s*\.\s*\w+\s*\(/.test(text.slice(index + name.length)) ||
      /(\bfs|\})\s*(=|from)\s*$/.test(text.slice(0, index)),
  );
  return functions && modules;
}

/** Files of Python: `open("x")`, `Path("x").read_text()`, and variables over the files that a pattern in quotes matches. */
function namesPythonFiles(text: string): boolean {
  const path = String.raw`(?:pathlib\s*\.\s*)?Path\s*\(\s*${QUOTED}\s*\)`;
  const list = String.raw`(?:sorted\s*\(\s*)?(?:glob\s*\.\s*)?(?:glob\s*\(\s*${QUOTED}\s*(?:,\s*recursive\s*=\s*True\s*)?\)|${path}\s*\.\s*r?glob\s*\(\s*${QUOTED}\s*\))`;
  const bound = new RegExp(
    String.raw`\b(?:for\s+(\w+)\s+in\s+${list}|(\w+)\s*=\s*(?:${path}|${QUOTED})\s*(?=[;\n]|$))`,
    "g",
  );
  const names = new Set([...text.matchAll(bound)].map(([, loop, variable]) => loop ?? variable ?? ""));
  // A name that has other values, too, is unknown.
  for (const name of names) {
    const all =
      text.match(
        new RegExp(
          String.raw`\b${name}\s*(?:[-+*/|&]?=(?!=)|:=)|\bfor\b[^\n:]*?\b${name}\b[^\n:]*?\bin\b|\b(?:as|lambda|global|nonlocal|import)\b[^\n:]*\b${name}\b|\bdef\b[^\n:]*\b${name}\b`,
          "g",
        ),
      ) ?? [];
    const own = [...text.matchAll(bound)].filter(([, loop, variable]) => (loop ?? variable) === name);
    if (all.length !== own.length) names.delete(name);
  }
  const known = [...names].join("|") || "(?!)";
  const operand = new RegExp(String.raw`^\s*\(\s*(?:${QUOTED}|${known})\s*[,)]`);
  const receiver = new RegExp(String.raw`(?:${path}|(?<![\w.])(?:${known}))\s*\.\s*$`);
  const globs = new RegExp(String.raw`${list}`, "g");
  const listed = text.match(globs)?.length ?? 0;
  return (
    [...text.matchAll(/(?<!\.)\bopen\b|\bPath\b(?=\s*\()/g)].every(({ 0: name, index }) =>
      operand.test(text.slice(index + name.length)),
    ) &&
    [...text.matchAll(/\.\s*(read_text|read_bytes|write_text|write_bytes|open)\b/g)].every(({ index, 0: found }) =>
      receiver.test(text.slice(0, index + found.length - (found.match(/\w+$/)?.[0].length ?? 0))),
    ) &&
    (text.match(/\br?glob\s*\(/g)?.length ?? 0) === listed &&
    !/\bPath\b(?!\s*\(|\s*[;\n,]|\s*$)|\bopen\b(?!\s*\()|\bPath\s*\([^()]*\)\s*\/|\bread_csv\b/.test(
      text.replace(/^\s*from\s+pathlib\s+import\s+Path\s*$/gm, ""),
    )
  );
}
