/**
 * Reads the text of a program in JavaScript, TypeScript or Python. A program is local if it only computes and uses files that its text
 * or its arguments name: it uses no network, database, environment variable or other module than those of the lists, deletes nothing,
 * and starts only programs whose names and arguments are in its text. Code that hides what it does is not recognized, so text that
 * the agent wrote in the command line itself must also name each file.
 */
import type { ProjectFiles } from "./tasks/task-body.ts";
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
        String.raw`\bimport\s*\(|\bimport\s*\.\s*meta\b(?!\.(url|dirname|filename))|\brequire\b(?!\s*\(\s*['"][^'"]*['"]\s*\)|\()|\bmodule\b(?!\.exports|['"])`,
      ].join("|"),
    ),
    hiding: /\\[ux]|\]\s*\(|\$\{|\bfromCharCode\b|\batob\b|base64|\bfs\s*[^.\s'"]|\b(readdir|opendir|glob|watch)/,
    writes: /write|append|mkdir/i,
    lists: /readdir|opendir|glob/,
  },
  python: {
    modules: words(
      "__future__ abc argparse ast bisect calendar collections collections.abc colorsys configparser contextlib copy csv dataclasses datetime " +
        "decimal difflib enum fnmatch fractions functools glob graphlib hashlib heapq html io itertools json keyword locale math operator os " +
        "os.path pathlib platform pprint random re statistics string struct subprocess sys textwrap time tokenize tomllib traceback types " +
        "typing unicodedata unittest uuid warnings zlib",
    ),
    computing: words(
      "__future__ ast bisect calendar collections copy csv dataclasses datetime decimal difflib enum fractions functools hashlib heapq html " +
        "itertools json keyword math operator os.path pathlib platform pprint random re statistics string struct sys textwrap time tomllib " +
        "typing unicodedata uuid zlib",
    ),
    unsafe: new RegExp(
      [
        String.raw`(?<!\.)\b(eval|exec|compile|getattr|setattr|globals|locals|vars|breakpoint|input)\s*\(`,
        String.raw`__(?!(name|file|future|init|main|str|repr|doc|all|version|enter|exit|iter|next|len|eq|lt|hash|call|post_init|getitem|contains|slots|annotations)__)\w+__`,
        String.raw`\bos\s*\.\s*(?!(path|walk|listdir|scandir|sep|getcwd|makedirs|mkdir|linesep|name|stat|fspath|curdir|cpu_count|pathsep|get_terminal_size|PathLike|DirEntry)\b)`,
        String.raw`\bfrom\s+os\s+import\s+(?!(path|walk|listdir|scandir|sep|getcwd|makedirs|PathLike)\s*$)`,
        String.raw`\bsys\s*\.\s*(?!(argv|exit|stdin|stdout|stderr|version|version_info|platform|maxsize|byteorder)\b)|\bfrom\s+sys\s+import\s+(?!(argv|exit|stdin|stdout|stderr)\s*$)`,
        String.raw`\.\s*(unlink|rmdir|rename|symlink_to|hardlink_to|chmod|lchmod|home|expanduser|remove\s*\(\s*['"][^'"]*[/.]|replace\s*\([^,()]*\))|\bshell\s*=`,
        String.raw`\bpath\s*\.\s*expand`,
      ].join("|"),
      "m",
    ),
    hiding:
      /\bpathlib\s*\.|\bPath\b(?!\s*\(\s*['"][^'"{}]*['"]\s*\)\s*\.(read_text|read_bytes|exists|stat|is_file|is_dir|write_text)\b|\s*(;|$|\n))|\b(walk|listdir|scandir|glob|rglob|iterdir|joinpath|parent|with_name|with_suffix|fileinput|linecache|b64decode|fromhex|chr)\b|\\[ux]|\bos\s*\.\s*(walk|listdir|scandir)/,
    writes: /write|mkdir|touch|makedirs|\bopen\s*\([^()]*,|dump\s*\(/,
    lists: /\b(walk|listdir|scandir|glob|rglob|iterdir)\b/,
  },
};

/** Functions that open a file of their first argument. In the command line, that must be a word in quotes. */
const OPENING = /\b(open|readFile|writeFile|appendFile|createReadStream|createWriteStream|exists|stat|lstat|access|mkdir)(Sync)?\b/g;
const QUOTED_FIRST = /^\s*\(\s*(?:'[^'\\\n]*'|"[^"\\\n]*"|`[^`\\$]*`)\s*[,)]/;

const MAX_MODULES = 40;
const MAX_NAMES = 60;

export class ProgramReader {
  private readonly seen = new Set<string>();
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
    const text = this.withoutComments(source);
    if (syntax.unsafe.test(text) || (isInline && !namesEveryFile(text, syntax))) return false;
    for (const [, name] of text.matchAll(/\bprocess\s*\.\s*env\.([A-Z_]+)/g))
      if (!isHarmlessVariable(name as string)) return false;
    // Between two quotation marks is a word, or code, which is no name of a file.
    const found = text.split(/["'`]/).filter((piece) => /^[\w@~][\w@.*/~ -]*$|^\.[\w.*/-]*$/.test(piece));
    for (const name of found) if (/[./]/.test(name) || this.exists(`${folder}/${name}`)) this.program.names.add(name);
    this.program.writesFiles ||= syntax.writes.test(text);
    this.program.listsFolders ||= syntax.lists.test(text);
    if (this.program.names.size > MAX_NAMES) return false;
    return this.readImports(text, folder, isInline ? syntax.computing : syntax.modules) && this.readCommands(text);
  }

  private exists(path: string): boolean {
    return this.project.list(path) !== null || this.project.read(path) !== null;
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
        if (!name.startsWith(".")) return allowed.has(name.replace(/^node:/, ""));
        if (name.endsWith(".json")) return this.program.names.add(name).size > 0;
        const base = `${folder}/${name}`;
        const candidates = ["", ".ts", ".tsx", ".mts", ".js", ".mjs", ".cjs", "/index.ts", "/index.js"].map((each) => base + each);
        const path = [...candidates, base.replace(/\.([cm]?)js(x?)$/, ".$1ts$2")].find((each) => this.project.read(each) !== null);
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
        names.push(...(/^\.+$/.test(from) ? (imported as string).replace(/[()]/g, "").split(",").map((each) => from + each.trim()) : [from]));
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
    const files = [`${base}/${path}.py`, `${base}/${path}/__init__.py`];
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
    const uses = text.match(isPython ? /\bsubprocess\b/g : new RegExp(String.raw`(?<![.\w])(?:${all})\b(?=\s*\()`, "g")) ?? [];
    const imports = isPython ? (text.match(/\bimport\s+subprocess\b/g)?.length ?? 0) : 0;
    // `import cp from "child_process"` gives the functions another name.
    if (!isPython && !/\{[^{}]*\}\s*(from|=\s*require\s*\()\s*\(?\s*['"](node:)?child_process/.test(text)) return false;
    if (/\bas\b|\w\s*:\s*\w+\s*[,}]/.test(/\{([^{}]*)\}[^{}]*child_process/.exec(text)?.[0] ?? "")) return false;
    if (calls.length === 0 || calls.length !== uses.length - imports) return false;
    for (const [, ...parts] of calls)
      this.program.commands.push(
        [...parts.join(",").matchAll(/(f?)(?:'([^']*)'|"([^"]*)"|`([^`]*)`)/g)].map(([, format, single, double, template]) => {
          const value = single ?? double ?? template ?? "";
          return (format === "f" && value.includes("{")) || (template?.includes("${") === true) ? null : value;
        }),
      );
    return true;
  }
}

/** Whether each function that opens a file has a word in quotes as its argument. */
function namesEveryFile(text: string, { hiding }: Syntax): boolean {
  if (hiding.test(text)) return false;
  const names = [...text.matchAll(OPENING)].every(({ 0: name, index }) => {
    const rest = text.slice(index + name.length);
    // A list in an import, such as `{ readFileSync }`.
    return QUOTED_FIRST.test(rest) || (/^\s*[,}]/.test(rest) && /[{,]\s*$/.test(text.slice(0, index)));
  });
  const modules = [...text.matchAll(/(?:require\s*\(\s*)['"](?:node:)?fs(?:\/promises)?['"]\s*\)?/g)].every(
    ({ 0: name, index }) => /^\s*\.\s*\w+\s*\(/.test(text.slice(index + name.length)) || /\bfs\s*=\s*$/.test(text.slice(0, index)) || /\}\s*=\s*$/.test(text.slice(0, index)),
  );
  return names && modules;
}
