/** Computes the value of a shell word, if the text determines it. */
import {
  forEachChild,
  type CommandExpansionPart,
  type ParameterExpansionPart,
  type ParsedScript,
  type SyntaxNode,
  type Word,
  type WordPart,
} from "unbash";
import type { UnclearReason } from "./shell-types.ts";

/**
 * Known properties of a computed value. Either it is the names of files (absolute, without spaces or patterns), or the
 * name of a commit, or only text: the output of commands of this line.
 */
export type Known =
  | { kind: "literal"; text: string }
  | { kind: "files"; paths: readonly string[] }
  /** A number. If it is a whole word, any number has the same meaning for the decision as "0". */
  | { kind: "number" }
  /** `text` is the word in which `HEAD` stands for the commit. */
  | { kind: "commit"; text: string }
  /** `isSplit`: without quotes, so a shell splits it into words and replaces patterns. */
  | { kind: "text"; isSplit?: boolean };

/** Returns what is known about variables and command substitutions; null if nothing is. */
export interface Scope {
  variable(name: string): Known | null;
  substitution(script: ParsedScript): Known | null;
}

const NO_SCOPE: Scope = { variable: () => null, substitution: () => null };

interface WordValue {
  /** Value of the word in bash; its source text if the value is unknown. */
  text: string;
  /** Whether the value is known. */
  isLiteral: boolean;
  /** For an unknown value in quotes, its known properties. */
  known: Known | null;
  unclear: UnclearReason | null;
  /** Scripts in the word's command substitutions, which also run. */
  scripts: ParsedScript[];
  /** Whether the word begins with a tilde that the shell expands. */
  startsWithTilde: boolean;
  /**
   * Whether zsh with `extendedglob` may interpret the word as a file pattern. Some hosts load the user's zsh settings.
   */
  mayBeZshPattern: boolean;
}

/**
 * Returns true if the parser treats the text as plain although it has a meaning in a shell, such as "1>(x)". The caller
 * must replace quoted parts with a quotation mark.
 */
function isMisread(raw: string): boolean {
  return /[<>()|&;\s]|\$['"]/.test(withoutEscapes(raw)) || hasExpansion(raw);
}

/**
 * Returns true if the text contains `$` or a backtick that starts an expansion. Used for double quotes and
 * here-documents, in which other operators have no meaning. zsh allows all letters in names, and "=", "^", "~" and "+"
 * before names.
 */
export function hasExpansion(raw: string): boolean {
  return /`|\$[\w({[@*#?$!=^~+\u0080-\uffff-]/.test(withoutEscapes(raw));
}

const withoutEscapes = (raw: string): string => raw.replace(/\\./gs, "_");

/** Matches a backslash in front of a letter or digit outside quotes, which fish replaces with another character. */
const FISH_ESCAPE = /(?<!\\)(\\\\)*\\[abcefnrtuvxUX0-7]/;
/** Matches an opening bracket or brace without its end, after which fish continues a word beyond a space. */
const OPEN_BRACKET = /\[[^\]]*$|\{[^}]*$/;
/** Matches backslashes in single quotes that fish removes. */
const FISH_QUOTED_ESCAPE = /\\[\\']/;

/** Returns true if some shell gives the quoted text another value: dash for `$'…'` and `$"…"`, fish for backslashes. */
function differsBetweenShells(part: WordPart): boolean {
  switch (part.type) {
    case "Literal":
      return FISH_ESCAPE.test(part.text) || OPEN_BRACKET.test(part.text);
    case "SingleQuoted":
      return FISH_QUOTED_ESCAPE.test(part.text);
    case "DoubleQuoted":
      return part.parts.some((each) => each.type === "Literal" && /\\`/.test(each.text));
    default:
      // Some shells read `$'\t'` literally. No command takes the literal word for an option or a file.
      return (part.type === "AnsiCQuoted" && !/^\$'\\[nt]'$/.test(part.text)) || part.type === "LocaleString";
  }
}

/** Returns true if the word contains unquoted "^", "#" or "~", which are pattern operators in zsh. */
function isZshPattern(raw: string): boolean {
  return /[\^#]|.~./s.test(withoutEscapes(raw));
}

export function wordValue(word: Word, scope: Scope = NO_SCOPE): WordValue {
  const scripts: ParsedScript[] = [];
  const parts = word.parts;
  const first = parts?.[0];
  const bare = parts === undefined ? word.text : first?.type === "Literal" ? first.text : "";
  if (parts === undefined) {
    // zsh replaces "=name" with the path of the command.
    const unclear = isMisread(word.text) ? "syntax" : bare.startsWith("=") ? "expansion" : null;
    return {
      text: word.value,
      isLiteral: unclear === null,
      known: null,
      unclear:
        unclear ??
        (word.text !== "[" && (FISH_ESCAPE.test(word.text) || OPEN_BRACKET.test(word.text)) ? "shell" : null),
      scripts,
      startsWithTilde: bare.startsWith("~"),
      mayBeZshPattern: isZshPattern(word.text),
    };
  }
  const unquoted = parts.map((part) =>
    part.type === "Literal" ? part.text : part.type.endsWith("Quoted") ? '"' : "_",
  );
  const plain = unquoted.join("");
  const { text, unclear, known } = joinParts(parts, scripts, scope);
  const reason = unclear ?? (isMisread(plain) ? "syntax" : bare.startsWith("=") ? "expansion" : null);
  return {
    text: unclear === null && (known === null || known.kind === "number") ? text : word.text,
    isLiteral: reason === null && (known === null || known.kind === "number"),
    known: reason === null ? known : null,
    unclear: reason ?? (parts.some(differsBetweenShells) ? "shell" : null),
    scripts,
    startsWithTilde: bare.startsWith("~"),
    mayBeZshPattern: isZshPattern(plain),
  };
}

interface Joined {
  text: string;
  unclear: UnclearReason | null;
  scripts: ParsedScript[];
  /** What is known about a value that is not literal. */
  known: Known | null;
}

/** Joins the parts of a word or of a here-document. */
export function joinParts(
  parts: readonly WordPart[],
  scripts: ParsedScript[] = [],
  scope: Scope = NO_SCOPE,
  isQuoted = false,
): Joined {
  let text = "";
  let unclear: UnclearReason | null = null;
  const computed: Known[] = [];
  for (const part of parts) {
    const one = partValue(part, scripts, scope, isQuoted);
    if (one === null) unclear ??= unclearReason(part);
    else if (one.kind === "literal") text += one.text;
    else {
      computed.push(one);
      text += one.kind === "commit" ? one.text : one.kind === "number" ? "0" : "\0";
    }
  }
  const [only] = computed;
  if (unclear !== null || only === undefined) return { text, unclear, scripts, known: null };
  if (only.kind === "number" && computed.length === 1 && text === "0") return { text, unclear, scripts, known: only };
  if (only.kind === "files" && text === "\0") return { text, unclear, scripts, known: only };
  // The name of a commit cannot be an option.
  if (computed.every(({ kind }) => kind === "commit") && /^HEAD([.~^:][\w.~^:/-]*)?$/.test(text))
    return { text, unclear, scripts, known: { kind: "commit", text } };
  const isSplit = computed.some((each) => each.kind === "text" && (each.isSplit ?? !isQuoted));
  return { text, unclear, scripts, known: { kind: "text", isSplit } };
}

function unclearReason(part: WordPart): UnclearReason {
  if (part.type === "Glob" || part.type === "ExtendedGlob") return "glob";
  return part.type === "BraceExpansion" ? "brace" : "expansion";
}

const literal = (text: string): Known => ({ kind: "literal", text });

/** Text that a shell neither splits nor expands when it is the value of an unquoted variable. */
export const PLAIN_VALUE = /^[\w./@:+,=%-]+$/;

function partValue(part: WordPart, scripts: ParsedScript[], scope: Scope, isQuoted: boolean): Known | null {
  const value = knownValue(part, scripts, scope);
  const isVariable = part.type === "SimpleExpansion" || part.type === "ParameterExpansion";
  const isPlain = isQuoted || !isVariable || value?.kind !== "literal" || PLAIN_VALUE.test(value.text);
  return isPlain ? value : { kind: "text", isSplit: true };
}

function knownValue(part: WordPart, scripts: ParsedScript[], scope: Scope): Known | null {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
      return literal(part.value);
    case "AnsiCQuoted":
      return literal(part.value);
    case "DoubleQuoted": {
      const { text, unclear, known } = joinParts(part.parts, scripts, scope, true);
      const isLost = part.parts.some((each) => each.type === "Literal" && hasExpansion(each.text));
      if (unclear !== null || isLost) return null;
      return known ?? literal(text);
    }
    case "CommandExpansion": {
      const value = documentValue(part);
      if (value !== null) return literal(value);
      if (part.script === undefined) return null;
      scripts.push(part.script);
      return scope.substitution(part.script);
    }
    case "SimpleExpansion":
      // The exit code of the last command, the shell's process, and the number of arguments. "$!" can be empty.
      return /^\$[?$#]$/.test(part.text) ? { kind: "number" } : scope.variable(part.text.slice(1));
    case "ArithmeticExpansion":
      return isNumeric(part.text, scope) ? { kind: "number" } : unknownValue(part, scripts);
    case "ParameterExpansion":
      return parameterValue(part, scripts, scope);
    default:
      return unknownValue(part, scripts);
  }
}

function unknownValue(part: WordPart, scripts: ParsedScript[]): null {
  collectScripts(part, scripts);
  return null;
}

/**
 * Returns true if `$((…))` only computes with numbers. A shell evaluates the value of a variable as an expression,
 * which can run commands, so each variable must be a number.
 */
export function isNumeric(text: string, scope: Scope): boolean {
  const [, expression = ""] = /^\$\(\(([\w\s$+*/%<>()-]+)\)\)$/.exec(text) ?? [];
  if (expression === "" || /\$(?![a-z])|\+\+|--/.test(expression)) return false;
  const names = expression.match(/\b[A-Za-z_]\w*/g) ?? [];
  return names.every((name) => isNumber(scope.variable(name)));
}

export const isNumber = (value: Known | null): boolean =>
  value?.kind === "number" || (value?.kind === "literal" && /^(0|[1-9][0-9]{0,8})$/.test(value.text));

/** Returns what is known about `${f}`, `${f%.ts}` and `${CI:-no}`; null for operations that assign or compute. */
function parameterValue(part: ParameterExpansionPart, scripts: ParsedScript[], scope: Scope): Known | null {
  collectScripts(part, scripts);
  const { parameter, prefix, index, operation } = part;
  // The exit codes of a pipeline.
  if (/^\$\{PIPESTATUS\[[0-9@*]\]\}$/.test(part.text)) return { kind: "text" };
  const value = prefix === undefined && index === undefined ? scope.variable(parameter) : null;
  if (value === null || operation === undefined) return value;
  const isPlain = (operand: Word): boolean => wordValue(operand).isLiteral || /^[\w.*/?+@ -]*$/.test(operand.text);
  if (operation.type === "Remove") return isPlain(operation.operand) ? { kind: "text" } : null;
  const isDefault = operation.type === "Default" && /^:?[-+]$/.test(operation.operator);
  // An argument of a script is known, even if it is missing.
  if (isDefault && /^[1-9]$/.test(parameter) && operation.operator.endsWith("-") && value.kind === "literal") {
    const { text, isLiteral } = wordValue(operation.operand);
    return value.text !== "" ? value : isLiteral ? literal(text) : null;
  }
  return isDefault && isPlain(operation.operand) ? { kind: "text" } : null;
}

/** Returns the value of `$(cat <<'EOF' … EOF)`, with which agents write long strings; null for other substitutions. */
function documentValue({ script }: CommandExpansionPart): string | null {
  const [only, ...others] = script?.commands ?? [];
  const command = only?.command;
  if (others.length > 0 || (script?.errors ?? []).length > 0 || command?.type !== "Command") return null;
  const [document, ...more] = command.redirects;
  const isDocument =
    command.name?.text === "cat" &&
    command.prefix.length === 0 &&
    command.args.length === 0 &&
    more.length === 0 &&
    document?.type === "HereDoc" &&
    document.operator === "<<" &&
    document.descriptor === undefined &&
    document.delimiter?.quoted === true &&
    document.closing !== undefined;
  return isDocument ? document.body.text.replace(/\n+$/, "") : null;
}

/** Collects the command substitutions within a part: in parameter defaults, arithmetic and braces. */
function collectScripts(node: SyntaxNode, scripts: ParsedScript[]): void {
  if (node.type === "Script") scripts.push(node);
  else forEachChild(node, (child) => collectScripts(child, scripts));
}
