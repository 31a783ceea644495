/**
 * Reads short programs in Python, as agents write them into a command line. A program is plain if it only computes, displays, and reads or
 * writes files that it names in string literals: every name, member and module in it is on a list, so it cannot reach anything else.
 */

import type { PlainProgram } from "./shell-types.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const KEYWORDS = words(
  "and as assert break continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False",
);
/** Builtin names that reach other objects, files or code. A program that mentions one is not plain, also as the name of a variable. */
const FORBIDDEN = words(
  "aiter anext breakpoint classmethod compile copyright credits delattr dir eval exec getattr execfile globals hasattr help input license locals memoryview object property quit reload setattr staticmethod super type vars BaseException class async await match case",
);
const MODULES = words(
  "json re math cmath decimal fractions statistics datetime collections itertools functools textwrap random hashlib base64 binascii difflib pprint unicodedata calendar time sys pathlib glob csv ast struct heapq bisect zlib html urllib.parse tomllib copy string",
);
/** Names that "from … import" can bind: they are functions and classes, and no modules. */
const IMPORTED =
  /^(Decimal|ROUND_[A-Z_]+|Fraction|Counter|OrderedDict|defaultdict|deque|namedtuple|ChainMap|Path|date|datetime|timedelta|timezone|reduce|partial|lru_cache|cache|chain|product|permutations|combinations|groupby|islice|zip_longest|accumulate|count|pairwise|mean|median|mode|stdev|pstdev|variance|quantiles|fmean|pprint|pformat|dedent|indent|wrap|fill|sqrt|floor|ceil|log|log2|log10|pi|isclose|gcd|sha256|sha1|md5|b64encode|b64decode|unified_diff|ndiff|SequenceMatcher|glob|DictReader|DictWriter|reader|writer|literal_eval|quote|unquote|urlparse|urlsplit|parse_qs|urlencode|escape|unescape|deepcopy|heappush|heappop|nlargest|nsmallest|bisect_left|bisect_right|monotonic|perf_counter|stdin|stdout|stderr|argv|ascii_letters|ascii_lowercase|digits)$/;
/** Members that compute, or read from a file that is open. They have the same meaning for every object that a plain program can have. */
const MEMBERS = words(
  "append extend insert pop popleft appendleft clear index count sort reverse copy get keys values items update setdefault add discard union intersection difference issubset issuperset most_common elements total subtract " +
    "split rsplit splitlines strip lstrip rstrip join replace startswith endswith removeprefix removesuffix lower upper title capitalize casefold swapcase center ljust rjust zfill find rfind partition rpartition encode decode isdigit isalpha isalnum isspace isupper islower isnumeric expandtabs translate maketrans hex bit_length to_bytes from_bytes is_integer as_integer_ratio " +
    "load loads dumps dump safe_load JSONDecodeError match search fullmatch findall finditer sub subn compile group groups groupdict start end span escape pattern flags I IGNORECASE M MULTILINE S DOTALL X VERBOSE A ASCII " +
    "sqrt floor ceil log log2 log10 exp sin cos tan atan2 pi e inf nan isclose isnan gcd lcm comb perm factorial hypot prod fsum mean median mode stdev pstdev variance quantiles fmean Decimal quantize normalize ROUND_HALF_EVEN ROUND_HALF_UP ROUND_DOWN ROUND_UP ROUND_CEILING ROUND_FLOOR getcontext prec Fraction numerator denominator real imag conjugate " +
    "date datetime timedelta timezone fromisoformat isoformat strftime strptime today now utcnow fromtimestamp utcfromtimestamp timestamp combine utc days seconds total_seconds year month day hour minute second microsecond weekday isoweekday isocalendar toordinal astimezone tzinfo time monotonic perf_counter time_ns ctime monthrange isleap " +
    "Counter OrderedDict defaultdict deque namedtuple ChainMap maxlen rotate chain from_iterable product permutations combinations groupby islice zip_longest accumulate pairwise starmap takewhile dropwhile repeat cycle reduce partial lru_cache cache " +
    "dedent indent wrap fill shorten random randint choice choices shuffle sample uniform seed sha256 sha1 sha512 md5 blake2b digest hexdigest b64encode b64decode urlsafe_b64encode urlsafe_b64decode hexlify unhexlify crc32 adler32 compress decompress pack unpack calcsize unified_diff ndiff context_diff SequenceMatcher ratio get_close_matches pprint pformat normalize category name lookup east_asian_width unescape quote unquote urlparse urlsplit parse_qs parse_qsl urlencode urljoin netloc query scheme fragment hostname port heappush heappop heapify nlargest nsmallest bisect_left bisect_right deepcopy ascii_letters ascii_lowercase ascii_uppercase digits punctuation " +
    "stdin stdout stderr argv exit version version_info maxsize platform byteorder getsizeof read readline readlines write writelines close flush seek tell " +
    "reader writer DictReader DictWriter fieldnames writerow writerows writeheader parse walk literal_eval iter_child_nodes body args func names lineno Import ImportFrom FunctionDef AsyncFunctionDef ClassDef Call Name Assign id asname targets decorator_list " +
    "Path glob rglob iglob read_text read_bytes write_text write_bytes exists is_file is_dir stem suffix suffixes parts as_posix st_size stat sleep",
);
/** Modules that the modules above load. A file of this name next to the program would be loaded instead. */
const LOADED = words(
  "abc argparse array ast atexit base64 binascii bisect builtins bz2 calendar cmath codecs collections contextlib copy copyreg csv dataclasses datetime decimal difflib dis encodings enum errno fnmatch fractions functools genericpath gettext glob hashlib heapq hmac html importlib inspect io ipaddress itertools json keyword linecache locale logging lzma marshal math ntpath numbers opcode operator org os pathlib pickle posixpath pprint queue random re reprlib secrets select selectors shutil signal site sitecustomize socket sre_compile sre_constants sre_parse stat statistics string stringprep struct subprocess sys tempfile textwrap threading time token tokenize tomllib traceback types typing unicodedata urllib usercustomize warnings weakref yaml zipfile zipimport zlib",
);

/** Whether Python could load this file, or folder, instead of a module of its library. */
export const shadowsModule = (name: string): boolean =>
  (LOADED.has(name.replace(/[.].*/s, "")) || /^_(?!_init__|_main__)/.test(name)) &&
  /^[^.]*$|[.](py[cdw]?|so)$/.test(name);

interface Token {
  kind: "name" | "number" | "string" | "operator";
  text: string;
  /** Value of a string without escapes and expressions; null for other strings. */
  value: string | null;
}

const STRING = /^([rRbBuUfF]{0,2})("""|'''|"|')/;

/** Separates a program into tokens; null if it contains something unusual. The expressions of f-strings follow their string. */
function tokensOf(text: string, depth = 0): Token[] | null {
  const tokens: Token[] = [];
  for (let rest = text; rest !== "";) {
    const [, prefix, quote] = STRING.exec(rest) ?? [];
    if (quote !== undefined && prefix !== undefined) {
      const start = prefix.length + quote.length;
      const end = endOfString(rest, start, quote);
      if (end === null || depth > 1) return null;
      const content = rest.slice(start, end);
      const isPlain = !content.includes("\\") && !/[bBfF]/.test(prefix);
      tokens.push({ kind: "string", text: content, value: isPlain ? content : null });
      if (/f/i.test(prefix)) {
        const fields = fieldsOf(content, quote);
        if (fields === null) return null;
        for (const field of fields) {
          const inner = tokensOf(field, depth + 1);
          if (inner === null) return null;
          tokens.push(...inner, { kind: "operator", text: "\n", value: null });
        }
      }
      rest = rest.slice(end + quote.length);
      continue;
    }
    const [found = "", space, name, number] =
      /^(?:(\s+|#[^\n]*)|([A-Za-z_]\w*)|((?:0[xXoObB][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?[jJ]?)(?!\w))|[-+*/%=<>!&|^~.,:;()[\]{}@])/.exec(
        rest,
      ) ?? [];
    if (found === "" || /[^\n\t -~]/.test(found.replace(/^#.*/, ""))) return null;
    // A comment could choose another encoding.
    if (found.startsWith("#") && found.includes("coding")) return null;
    // "t" is a prefix of strings with expressions.
    if (name !== undefined && !KEYWORDS.has(name) && /^["']/.test(rest.slice(name.length))) return null;
    if (space === undefined)
      tokens.push({
        kind: name !== undefined ? "name" : number !== undefined ? "number" : "operator",
        text: found,
        value: null,
      });
    else if (space.includes("\n")) tokens.push({ kind: "operator", text: "\n", value: null });
    rest = rest.slice(found.length);
  }
  return tokens;
}

function endOfString(text: string, start: number, quote: string): number | null {
  for (let at = start; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text.startsWith(quote, at)) return at;
    else if (text[at] === "\n" && quote.length === 1) return null;
  }
  return null;
}

/** Returns the expressions in braces; null if versions of Python disagree on them. */
function fieldsOf(content: string, quote: string): string[] | null {
  const fields: string[] = [];
  for (const [found, field] of content.matchAll(/\{\{|\}\}|\{((?:[^{}]|\{[^{}]*\})*)\}|[{}]/g)) {
    if (found === "{{" || found === "}}") continue;
    if (field === undefined || /[\\#\n]/.test(field) || field.includes(quote[0] as string)) return null;
    // A brace in a string is no end of a field.
    if (/['"]/.test(field) && /[{}]/.test(field)) return null;
    fields.push(`(${field.replace(/![rsa](?=:|$)/, "").replaceAll(/[{}]/g, " ")})`);
  }
  return fields;
}

/** Returns what a program uses if it is plain; null otherwise. */
export function readPythonProgram(text: string, isPython3: boolean): PlainProgram | null {
  if (text.length > 8_000 || /\r|\f|\0/.test(text)) return null;
  const tokens = tokensOf(text);
  // A builtin of Python 2 that opens files.
  if (tokens === null || (!isPython3 && tokens.some(({ kind, text: name }) => kind === "name" && name === "file")))
    return null;
  return new Reader(withoutInnerLines(tokens)).read();
}

/** Removes the ends of lines within brackets, which do not end a statement. */
function withoutInnerLines(tokens: readonly Token[]): Token[] {
  let depth = 0;
  return tokens.filter(({ kind, text }) => {
    if (kind === "operator" && "([{".includes(text)) depth++;
    if (kind === "operator" && ")]}".includes(text)) depth--;
    return text !== "\n" || kind === "string" || depth <= 0;
  });
}

class Reader {
  private readonly tokens: readonly Token[];
  private readonly opened: string[] = [];
  private readonly globs: { folder: string | null; glob: string }[] = [];
  private writes = false;
  private usesPaths = false;
  private copies = false;
  private opensMatches = false;

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens;
  }

  private text(at: number): string {
    const token = this.tokens[at];
    return token?.kind === "string" ? '"' : (token?.text ?? "\n");
  }

  read(): PlainProgram | null {
    for (let at = 0; at < this.tokens.length; at++) {
      const { kind, text } = this.tokens[at] as Token;
      if (kind === "string" && text.includes("__") && text !== "__main__") return null;
      if (kind === "operator" && text === "@") return null;
      if (kind !== "name") continue;
      const next = ["import", "from"].includes(text) ? this.readImport(at) : this.readName(at, text);
      if (next === null) return null;
      at = next;
    }
    // From Python 3.14 on, "copy" of a path creates a file.
    if (this.usesPaths && this.copies) return null;
    if (this.globs.some(({ folder }) => folder === null) && (this.opensMatches || this.opened.length === 0))
      return null;
    // Any object could be one of these paths.
    const searched = this.globs.flatMap(({ folder, glob }) =>
      folder === null ? this.opened.map((each) => ({ folder: each, glob })) : [{ folder, glob }],
    );
    // A path followed by "/" is the name of another file.
    const divides = (at: number): boolean =>
      this.text(at) === "/" &&
      this.tokens[at + 1]?.kind !== "number" &&
      ![this.text(at - 1), this.text(at + 1)].includes("/");
    if (this.usesPaths && this.tokens.some((_, at) => divides(at))) return null;
    if (this.writes && searched.length > 0) return null;
    return { opened: this.opened, written: this.writes ? this.opened : [], searched };
  }

  /** Reads `import a, b as c` and `from a import b as c`. Returns the index of its last token. */
  private readImport(start: number): number | null {
    let end = start;
    while (!["\n", ";"].includes(this.text(end + 1))) end++;
    const line = this.tokens
      .slice(start, end + 1)
      .map(({ text }) => text)
      .join(" ")
      .replaceAll(" . ", ".");
    const [, list] = /^import (.*)$/.exec(line) ?? [];
    const [, module = "", names] = /^from ([\w.]+) import (?:\( )?([\w ,]+?)(?: \))?$/.exec(line) ?? [];
    if (list !== undefined)
      // An alias of these two would hide which names open files.
      return list.split(" , ").every((each) => MODULES.has(each.replace(/ as [a-zA-Z]\w*$/, ""))) ? end : null;
    const isPlain = names?.split(" , ").every((each) => {
      const [name = "", alias = name] = each.split(" as ");
      return (
        IMPORTED.test(name) && (alias === name || (!["Path", "glob"].includes(name) && /^[A-Za-z]\w{0,3}$/.test(alias)))
      );
    });
    return MODULES.has(module) && isPlain === true ? end : null;
  }

  private readName(at: number, name: string): number | null {
    const isMember = this.text(at - 1) === ".";
    if (name.includes("__")) return name === "__name__" && !isMember ? at : null;
    if (isMember ? !MEMBERS.has(name) : FORBIDDEN.has(name)) return null;
    if (KEYWORDS.has(name)) return isMember ? null : at;
    const isCall = this.text(at + 1) === "(";
    if (isMember && /^(write_text|write_bytes)$/.test(name)) this.writes = true;
    if (isMember && name === "copy" && !(isCall && this.text(at + 2) === ")")) this.copies = true;
    // Path.replace moves a file; with two arguments, it is the function of a string.
    if (isMember && name === "replace" && !(isCall && this.hasTwoArguments(at + 1))) return null;
    if ((!isMember && name === "open") || name === "Path") return isCall ? this.readOpen(at, name) : null;
    if (/^(glob|iglob|rglob)$/.test(name)) {
      // The module's own name, in front of its function.
      if (!isMember && this.text(at + 1) === ".") return at;
      const pattern = this.literal(at + 2);
      if (!isCall || pattern === null || /(^|\/)\.\.|^[/~]/.test(pattern)) return null;
      // Other arguments choose another folder, or match other names.
      const end = [2, 3, 4, 5, 6, 7].map((step) => this.text(at + 1 + step)).join("");
      if (!/^(\)|,recursive=True\))/.test(end)) return null;
      const isModule = !isMember || this.text(at - 2) === "glob";
      const [, folder = "", glob = ""] = /^((?:[^*?[]*\/)?)(?:.*\/)?([^/]*)$/.exec(pattern) ?? [];
      const [constructor, path] = [this.text(at - 5), this.tokens[at - 3]?.value];
      const isDirect = constructor === "Path" && this.text(at - 2) === ")" && typeof path === "string";
      this.globs.push({ folder: isModule ? folder || "." : isDirect ? path || "." : null, glob });
      return at;
    }
    if (!isMember && name === "file" && isCall) return null;
    // Any other name is a variable, or a builtin that only computes.
    return at;
  }

  /** Reads the first argument of `open` or `Path`, and the mode. */
  private readOpen(at: number, name: string): number | null {
    const literal = this.literal(at + 2);
    const path = literal ?? this.variable(at + 2);
    if (path === null) return null;
    if (path !== "" || literal !== null) this.opened.push(path || ".");
    else this.opensMatches = true;
    if (name === "Path") this.usesPaths = true;
    let close = at + 3;
    while (close < this.tokens.length && this.text(close) !== ")") close++;
    const rest = this.tokens.slice(at + 3, close + 1).map((_, i) => this.text(at + 3 + i));
    if (name === "Path") return rest.length === 1 ? at : null;
    if (!/^(,(mode=)?")?(,(encoding|newline|errors)=")*\)$/.test(rest.join(""))) return null;
    const isMode = /^,(mode=)?"/.test(rest.join(""));
    const mode = isMode ? this.tokens[at + 3 + rest.indexOf('"')]?.value : "r";
    if (!/^[rwaxbt+]{1,3}$/.test(mode ?? "")) return null;
    if (/[wax+]/.test(mode ?? "")) this.writes = true;
    return at;
  }

  /** Returns the value of a whole argument that is a string literal. */
  private literal(at: number): string | null {
    const token = this.tokens[at];
    return token?.kind === "string" && [")", ","].includes(this.text(at + 1)) ? token.value : null;
  }

  /**
   * Returns the value of a variable that the program assigns once, from a literal; "" if it is one of the files of a pattern, which are
   * in the list of patterns.
   */
  private variable(at: number): string | null {
    const name = this.text(at);
    if (this.tokens[at]?.kind !== "name" || ![")", ","].includes(this.text(at + 1))) return null;
    let value: string | null = null;
    for (const [i, token] of this.tokens.entries()) {
      if (token.kind !== "name" || token.text !== name || this.text(i - 1) === ".") continue;
      const [before, after] = [this.text(i - 1), this.text(i + 1)];
      const isStart = ["\n", ";"].includes(before);
      if (isStart && after === "=" && this.text(i + 2) !== "=") {
        const found = this.tokens[i + 2];
        const isWhole = ["\n", ";"].includes(this.text(i + 3));
        if (value !== null || found?.kind !== "string" || found.value === null || found.value === "" || !isWhole)
          return null;
        value = found.value;
      } else if (before === "for" && after === "in") {
        const iterable = Array.from({ length: 14 }, (_, step) => this.text(i + 2 + step)).join("");
        if (
          value !== null ||
          !/^(glob[.]i?glob\("(,recursive=True)?\)|sorted\(glob[.]i?glob\("(,recursive=True)?\)\))(:|\]|\)|if)/.test(
            iterable,
          )
        )
          return null;
        value = "";
      } else if (!["(", ",", "[", "return", "in", "print", "{"].includes(before)) return null;
      else if (![")", ",", "]", "}", ".", "\n"].includes(after) || this.isTarget(i)) return null;
    }
    return value;
  }

  /** Whether a name may be assigned at this place, although it is not followed by "=". */
  private isTarget(at: number): boolean {
    for (let i = at - 1; i >= 0 && !["\n", ";"].includes(this.text(i)); i--)
      if (["def", "lambda", "as", "global", "nonlocal", "del"].includes(this.text(i))) return true;
      else if (this.text(i) === "for" && !this.hasIn(i, at)) return true;
    let depth = 0;
    let start = at;
    while (start > 0 && !["\n", ";"].includes(this.text(start - 1))) start--;
    for (let i = start; i < this.tokens.length && !["\n", ";"].includes(this.text(i)); i++) {
      depth += "([{".includes(this.text(i)) ? 1 : ")]}".includes(this.text(i)) ? -1 : 0;
      const isComparison = ["=", "!", "<", ">"].includes(this.text(i - 1)) || this.text(i + 1) === "=";
      if (i > at && this.text(i) === "=" && depth === 0 && !isComparison) return true;
    }
    return false;
  }

  /** Whether the list of targets that starts with "for" ends in front of a token. */
  private hasIn(start: number, end: number): boolean {
    let depth = 0;
    for (let i = start; i < end; i++) {
      depth += "([{".includes(this.text(i)) ? 1 : ")]}".includes(this.text(i)) ? -1 : 0;
      if (depth === 0 && this.text(i) === "in") return true;
    }
    return false;
  }

  private hasTwoArguments(open: number): boolean {
    let depth = 0;
    for (let at = open; at < this.tokens.length; at++) {
      const text = this.text(at);
      if ("([{".includes(text)) depth++;
      else if (")]}".includes(text) && --depth === 0) return false;
      // "*" could stand for no argument.
      else if (text === "," && depth === 1) return ![")", "\n", "*"].includes(this.text(at + 1));
    }
    return false;
  }
}
