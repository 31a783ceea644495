/** Computes the value of a shell word, if the text determines it. */
import {
  forEachChild,
  type CommandExpansionPart,
  type ParsedScript,
  type SyntaxNode,
  type Word,
  type WordPart,
} from "unbash";
import type { UnclearReason } from "./shell-types.ts";

interface WordValue {
  /** Value of the word in bash; its source text if the value is unknown. */
  text: string;
  /** Whether the value is known. */
  isLiteral: boolean;
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
 * Whether the parser treats the text as plain although it has a meaning in a shell, such as "1>(x)". The caller must
 * replace quoted parts with a quotation mark.
 */
function isMisread(raw: string): boolean {
  return /[<>()|&;\s]|\$['"]/.test(withoutEscapes(raw)) || hasExpansion(raw);
}

/**
 * Whether the text contains `$` or a backtick that starts an expansion. Used for double quotes and here-documents, in
 * which other operators have no meaning. zsh allows all letters in names, and "=", "^", "~" and "+" before names.
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

/** Whether some shell gives the quoted text another value: dash for `$'…'` and `$"…"`, fish for backslashes. */
function differsBetweenShells(part: WordPart): boolean {
  switch (part.type) {
    case "Literal":
      return FISH_ESCAPE.test(part.text) || OPEN_BRACKET.test(part.text);
    case "SingleQuoted":
      return FISH_QUOTED_ESCAPE.test(part.text);
    case "DoubleQuoted":
      return part.parts.some((each) => each.type === "Literal" && /\\`/.test(each.text));
    default:
      return part.type === "AnsiCQuoted" || part.type === "LocaleString";
  }
}

/** Whether the word contains unquoted "^", "#" or "~", which are pattern operators in zsh. */
function isZshPattern(raw: string): boolean {
  return /[\^#]|.~./s.test(withoutEscapes(raw));
}

export function wordValue(word: Word): WordValue {
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
  const { text, unclear } = joinParts(parts, scripts);
  const reason = unclear ?? (isMisread(plain) ? "syntax" : bare.startsWith("=") ? "expansion" : null);
  return {
    text: unclear === null ? text : word.text,
    isLiteral: reason === null,
    unclear: reason ?? (parts.some(differsBetweenShells) ? "shell" : null),
    scripts,
    startsWithTilde: bare.startsWith("~"),
    mayBeZshPattern: isZshPattern(plain),
  };
}

/** Joins the parts of a word or of a here-document. */
export function joinParts(
  parts: readonly WordPart[],
  scripts: ParsedScript[] = [],
): { text: string; unclear: UnclearReason | null; scripts: ParsedScript[] } {
  let text = "";
  let unclear: UnclearReason | null = null;
  for (const part of parts) {
    const one = partValue(part, scripts);
    if (one === null) unclear ??= unclearReason(part);
    else text += one;
  }
  return { text, unclear, scripts };
}

function unclearReason(part: WordPart): UnclearReason {
  if (part.type === "Glob" || part.type === "ExtendedGlob") return "glob";
  return part.type === "BraceExpansion" ? "brace" : "expansion";
}

function partValue(part: WordPart, scripts: ParsedScript[]): string | null {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return part.value;
    case "DoubleQuoted": {
      const { text, unclear } = joinParts(part.parts, scripts);
      const isLost = part.parts.some((each) => each.type === "Literal" && hasExpansion(each.text));
      return unclear === null && !isLost ? text : null;
    }
    case "CommandExpansion":
      return substitutionValue(part, scripts);
    case "SimpleExpansion":
      // The exit code of the last command, a number.
      return part.text === "$?" ? "0" : null;
    default:
      collectScripts(part, scripts);
      return null;
  }
}

/** Returns the value of `$(cat <<'EOF' … EOF)`, with which agents write long strings; null for other substitutions. */
function substitutionValue({ script }: CommandExpansionPart, scripts: ParsedScript[]): string | null {
  if (script === undefined) return null;
  const [only, ...others] = script.commands;
  const command = only?.command;
  if (others.length === 0 && (script.errors ?? []).length === 0 && command?.type === "Command") {
    const [document, ...more] = command.redirects;
    if (
      command.name?.text === "cat" &&
      command.prefix.length === 0 &&
      command.args.length === 0 &&
      more.length === 0 &&
      document?.type === "HereDoc" &&
      document.operator === "<<" &&
      document.descriptor === undefined &&
      document.delimiter?.quoted === true &&
      document.closing !== undefined
    )
      return document.body.text.replace(/\n+$/, "");
  }
  scripts.push(script);
  return null;
}

/** Collects the command substitutions within a part: in parameter defaults, arithmetic and braces. */
function collectScripts(node: SyntaxNode, scripts: ParsedScript[]): void {
  if (node.type === "Script") scripts.push(node);
  else forEachChild(node, (child) => collectScripts(child, scripts));
}
