/**
 * Reads short programs for Node, as agents write them into a command line. A program is plain if it only computes, displays, and reads or
 * writes files that it names in string literals. No member that leads to a function's constructor, and no other global, can be named.
 */
import { builtinModules } from "node:module";
import type { PlainProgram } from "./shell-types.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const GLOBALS = words(
  "Math JSON Number String Boolean Array RegExp Set Map Date Intl BigInt Error TypeError RangeError SyntaxError parseInt parseFloat isNaN isFinite NaN Infinity undefined encodeURIComponent decodeURIComponent encodeURI decodeURI URL URLSearchParams structuredClone",
);
/** The members of these objects that a program can use. The objects themselves cannot be passed on. */
const OBJECTS: Readonly<Record<string, ReadonlySet<string>>> = {
  Object: words("keys values entries fromEntries assign freeze is groupBy"),
  console: words("log error warn info table debug"),
  process: words("version versions platform arch argv exit uptime hrtime memoryUsage"),
  performance: words("now"),
  Buffer: words("from byteLength"),
  fs: words("readFileSync existsSync statSync writeFileSync"),
};
const KEYWORDS = words(
  "const let var function return if else for while do of in break continue true false null new typeof void delete instanceof try catch finally throw switch case default yield",
);
/** Words that no program can contain as a name, a member or a string. */
const FORBIDDEN = words(
  "constructor prototype caller callee arguments eval this super class import export with debugger async await globalThis global self window module exports Function Proxy Reflect Symbol WebAssembly " +
    "getPrototypeOf setPrototypeOf getOwnPropertyDescriptor getOwnPropertyDescriptors getOwnPropertyNames defineProperty defineProperties create prepareStackTrace captureStackTrace getThis getFunction mainModule binding dlopen env stdout stdin stderr apply call bind raw " +
    "Bun Deno navigator fetch WebSocket EventSource Storage localStorage sessionStorage crypto setTimeout setInterval setImmediate queueMicrotask",
);
/** Globals of this version of Node, and the modules that are globals in "node -e". */
const OTHER_GLOBALS: ReadonlySet<string> = new Set([...Object.getOwnPropertyNames(globalThis), ...builtinModules]);

interface Token {
  kind: "name" | "number" | "string" | "pattern" | "operator";
  text: string;
}

const ESCAPES = /\\(?![nrtbfv0sSdDwWB.\\/'"`$[\](){}^*+?|-](?![0-9]))/;

/** Separates a program into tokens, up to a closing brace without its opening one; null if it contains something unusual. */
function tokensOf(text: string, start: number, depth: number): { tokens: Token[]; end: number } | null {
  const tokens: Token[] = [];
  let braces = 0;
  let at = start;
  if (depth > 3) return null;
  while (at < text.length) {
    const sticky = (pattern: RegExp): string | undefined => {
      const expression = new RegExp(pattern.source, "y");
      expression.lastIndex = at;
      return expression.exec(text)?.[0];
    };
    const space = sticky(/[ \t\n]+|\/\/[^\n]*|\/\*[^]*?\*\//);
    const previous = tokens.at(-1);
    if (space !== undefined) {
      at += space.length;
      continue;
    }
    if (text[at] === "`") {
      const inner = templateEnd(text, at + 1, depth);
      if (inner === null) return null;
      tokens.push({ kind: "string", text: "`" }, ...inner.tokens);
      at = inner.end;
      continue;
    }
    const string = sticky(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/);
    const name = sticky(/[A-Za-z_$][\w$]*/);
    const number = sticky(/(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)n?(?![\w$])|\.\d+(?![\w$])/);
    let token: Token;
    if (string !== undefined) token = { kind: "string", text: string };
    else if (name !== undefined) token = { kind: "name", text: name };
    else if (number !== undefined && previous?.kind !== "number") token = { kind: "number", text: number };
    else if (text[at] === "/") {
      const isAfterOperator =
        previous === undefined || (previous.kind === "operator" && /^([([,=:!&|?{;*%<>~^]|=>)$/.test(previous.text));
      const isAfterValue =
        previous !== undefined &&
        (["number", "string", "pattern"].includes(previous.kind) ||
          previous.text === "]" ||
          (previous.kind === "name" && !KEYWORDS.has(previous.text)));
      const pattern = sticky(/\/(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/);
      // After other tokens, a slash divides if the line has no second one.
      const isAlone = !/^\/[^\n]*\//.test(text.slice(at));
      if (isAfterOperator ? pattern === undefined : !isAfterValue && !isAlone) return null;
      token = isAfterOperator ? { kind: "pattern", text: pattern as string } : { kind: "operator", text: "/" };
    } else {
      const operator = sticky(/=>|\?\.(?!\d)|\.\.\.|[-+*%=<>!&|^~?.,:;()[\]{}]/);
      if (operator === undefined) return null;
      if (operator === "{") braces++;
      if (operator === "}" && --braces < 0) return { tokens, end: at };
      token = { kind: "operator", text: operator };
    }
    if (token.kind === "string" && ESCAPES.test(token.text)) return null;
    tokens.push(token);
    at += token.text.length;
  }
  return braces === 0 && depth === 0 ? { tokens, end: at } : null;
}

/** Reads the rest of a template literal. */
function templateEnd(text: string, start: number, depth: number): { tokens: Token[]; end: number } | null {
  const tokens: Token[] = [];
  for (let at = start; at < text.length; at++) {
    if (text[at] === "\\") {
      if (!/[nt\\`$'"]/.test(text[at + 1] ?? "")) return null;
      at++;
    } else if (text[at] === "`") return { tokens, end: at + 1 };
    else if (text.startsWith("${", at)) {
      const inner = tokensOf(text, at + 2, depth + 1);
      if (inner === null || inner.end >= text.length) return null;
      tokens.push({ kind: "operator", text: "(" }, ...inner.tokens, { kind: "operator", text: ")" });
      at = inner.end;
    }
  }
  return null;
}

/** Returns what a program uses if it is plain; null otherwise. */
export function readNodeProgram(text: string): PlainProgram | null {
  if (text.length > 8_000 || /<!--|-->|[^\n\t -~\u00a0-\uffff]|[\u2028\u2029]/.test(text)) return null;
  const { tokens, end } = tokensOf(text, 0, 0) ?? { tokens: [], end: -1 };
  if (end !== text.length) return null;
  const program: { opened: string[]; written: string[]; searched: [] } = { opened: [], written: [], searched: [] };
  const textAt = (at: number): string => tokens[at]?.text ?? "";
  /** The value of a whole argument that is a string without escapes. */
  const literal = (at: number): string | null => {
    const [, value] = /^['"]([^\\]*)['"]$/.exec(textAt(at)) ?? [];
    return tokens[at]?.kind === "string" && [")", ","].includes(textAt(at + 1)) ? (value ?? null) : null;
  };
  for (const [at, { kind, text: word }] of tokens.entries()) {
    const before = textAt(at - 1);
    // "\\s" is "s", so a backslash can hide a word.
    if (kind === "string" && (FORBIDDEN.has(word.slice(1, -1).replaceAll("\\", "")) || word.includes("__")))
      return null;
    // TypeScript, which newer versions of Node remove: "a![index]" is a member of "a", and "a! / b / c" divides.
    if (word === "!" && kind === "operator" && textAt(at + 1) !== "=" && isIndexed(tokens, at - 1)) return null;
    if (word === "[" && kind === "operator") {
      if (isIndexed(tokens, at - 1) && !isPlainIndex(tokens, at)) return null;
      if (/^[{,]$/.test(before) && isComputedKey(tokens, at)) return null;
    }
    if (kind !== "name") continue;
    if (FORBIDDEN.has(word) || word.startsWith("_")) return null;
    if (before === "." || before === "?.") continue;
    // It can also be the name of a variable.
    if (word === "of" && !isOfLoop(tokens, at)) return null;
    if (KEYWORDS.has(word) || GLOBALS.has(word)) continue;
    // The name of a member in an object.
    if (textAt(at + 1) === ":" && /^[{,]$/.test(before)) continue;
    if (word === "require") {
      const path = textAt(at + 1) === "(" && textAt(at + 3) === ")" ? literal(at + 2) : null;
      if (/^(node:)?fs$/.test(path ?? "")) {
        // An assignment is a value, and another variable could take it.
        const isNamed =
          before === "=" &&
          textAt(at - 2) === "fs" &&
          /^(const|let|var)$/.test(textAt(at - 3)) &&
          !/^([.[(`]|[?][.])$/.test(textAt(at + 4));
        if (!isNamed && !readsFile(at + 4)) return null;
      } else if (path !== null && /^[.]{1,2}\/[\w./-]+[.]json$/.test(path)) program.opened.push(path);
      else return null;
      continue;
    }
    if (word === "fs" && /^(const|let|var)$/.test(before) && textAt(at + 1) === "=" && textAt(at + 2) === "require")
      continue;
    const members = Object.hasOwn(OBJECTS, word) ? OBJECTS[word] : undefined;
    if (members !== undefined) {
      if (textAt(at + 1) !== "." || !members.has(textAt(at + 2))) return null;
      if (word === "fs" && !readsFile(at + 1)) return null;
    } else if (OTHER_GLOBALS.has(word)) return null;
  }
  return program;

  /** Reads `.readFileSync("name"`. */
  function readsFile(at: number): boolean {
    const path = literal(at + 3);
    const function_ = textAt(at + 1);
    if (textAt(at) !== "." || OBJECTS["fs"]?.has(function_) !== true || textAt(at + 2) !== "(" || path === null)
      return false;
    // Other options of a read are flags, which can create a file or delete its contents.
    const options = Array.from({ length: 6 }, (_, step) =>
      tokens[at + 4 + step]?.kind === "string" ? '"' : textAt(at + 4 + step),
    ).join("");
    if (function_ === "readFileSync" && !/^(\)|,"\)|,\{encoding:"\})/.test(options)) return false;
    program.opened.push(path);
    if (function_ === "writeFileSync") program.written.push(path);
    return true;
  }
}

/** Whether brackets after this token select a member, because the token ends a value. */
function isIndexed(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at];
  if (token === undefined) return false;
  if (token.kind !== "name") return token.kind !== "operator" || /^[)\]}]$|^\?\.$/.test(token.text);
  return (
    /^\??\.$/.test(tokens[at - 1]?.text ?? "") ||
    !/^(return|of|in|case|typeof|void|delete|new|throw|else)$/.test(token.text)
  );
}

/** Whether `of` is part of `for (const x of`. */
function isOfLoop(tokens: readonly Token[], at: number): boolean {
  let depth = 0;
  for (let i = at - 1; i > 0; i--) {
    const { kind, text } = tokens[i] as Token;
    if (kind === "operator" && ")]}".includes(text)) depth++;
    if (kind !== "operator" || !"([{".includes(text) || --depth >= 0) continue;
    return (
      text === "(" && tokens[i - 1]?.text === "for" && /^(const|let|var)$/.test(tokens[i + 1]?.text ?? "") && i + 2 < at
    );
  }
  return false;
}

/** Whether the index is a number, or a string that is no forbidden word. */
const isPlainIndex = (tokens: readonly Token[], at: number): boolean =>
  tokens[at + 2]?.text === "]" &&
  (tokens[at + 1]?.kind === "number" || /^['"][\w @/.-]*['"]$/.test(tokens[at + 1]?.text ?? ""));

function isComputedKey(tokens: readonly Token[], at: number): boolean {
  let depth = 0;
  for (let i = at; i < tokens.length; i++) {
    const { kind, text } = tokens[i] as Token;
    if (kind === "operator" && "([{".includes(text)) depth++;
    if (kind === "operator" && ")]}".includes(text) && --depth === 0) return /^[:(]$/.test(tokens[i + 1]?.text ?? "");
  }
  return true;
}
