/** The value that a command gets for a word, where the text alone tells it. */
import {
  forEachChild,
  type CommandExpansionPart,
  type ParsedScript,
  type SyntaxNode,
  type Word,
  type WordPart,
} from "unbash";
import type { UnclearReason } from "./types.ts";

export interface WordValue {
  /** As the command gets it, or the source's text where `unclear` says that this cannot be told. */
  text: string;
  unclear: UnclearReason | null;
  /** Scripts of substitutions in it, which run too. */
  scripts: ParsedScript[];
  /** Whether it begins with a tilde that the shell replaces. */
  startsWithTilde: boolean;
  /** Whether zsh may take it for a pattern of files: with `extendedglob`, which hosts take over from the user's settings. */
  mayBeZshPattern: boolean;
}

/**
 * Whether there is something that a shell acts upon in what the parser took for plain text, as in "1>(x)": then the two
 * read the line differently. Quoted parts stand here as a quotation mark.
 */
function isMisread(raw: string): boolean {
  return /[<>()|&;\s]|\$['"]/.test(withoutEscapes(raw)) || hasExpansion(raw);
}

/** The same between double quotes and in here-documents. Names of zsh have all letters, and "=", "^", "~" and "+" before them. */
export function hasExpansion(raw: string): boolean {
  return /`|\$[\w({[@*#?$!=^~+\u0080-\uffff-]/.test(withoutEscapes(raw));
}

const withoutEscapes = (raw: string): string => raw.replace(/\\./gs, "_");

/** Escapes of `$'…'` that all shells replace by the same; others keep or leave the backslash out. */
const ESCAPES = /\\(?!\\|[abefnrtv]|x[0-9a-f]{2}|[0-7]{3}|u[0-9a-f]{4})/i;

/** "^" but not, "#" any number of them, "~" without: where they are not quoted. */
function isZshPattern(raw: string): boolean {
  return /[\^#]|.~./s.test(withoutEscapes(raw));
}

export function wordValue(word: Word): WordValue {
  const scripts: ParsedScript[] = [];
  const parts = word.parts;
  const first = parts?.[0];
  const bare = parts === undefined ? word.text : first?.type === "Literal" ? first.text : "";
  if (parts === undefined) {
    // zsh runs the command that stands behind an equals sign.
    const unclear = isMisread(word.text) ? "syntax" : bare.startsWith("=") ? "expansion" : null;
    return {
      text: word.value,
      unclear,
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
  return {
    text: unclear === null ? text : word.text,
    unclear: unclear ?? (isMisread(plain) ? "syntax" : bare.startsWith("=") ? "expansion" : null),
    scripts,
    startsWithTilde: bare.startsWith("~"),
    mayBeZshPattern: isZshPattern(plain),
  };
}

/** Also of the body of a here-document. */
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
  if (part.type === "AnsiCQuoted") return "shell";
  if (part.type === "Glob" || part.type === "ExtendedGlob") return "glob";
  return part.type === "BraceExpansion" ? "brace" : "expansion";
}

function partValue(part: WordPart, scripts: ParsedScript[]): string | null {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
      return part.value;
    case "AnsiCQuoted":
      // Where sh is another shell, the quotation ends at \', too.
      return ESCAPES.test(part.text.replaceAll("\\\\", "")) ? null : part.value;
    case "DoubleQuoted": {
      const { text, unclear } = joinParts(part.parts, scripts);
      const isLost = part.parts.some((each) => each.type === "Literal" && hasExpansion(each.text));
      return unclear === null && !isLost ? text : null;
    }
    case "CommandExpansion":
      return substitutionValue(part, scripts);
    default:
      collectScripts(part, scripts);
      return null;
  }
}

/** `$(cat <<'EOF' … EOF)` is how agents write long texts: its value is the body. */
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

/** Substitutions anywhere below a part: in the default of a parameter, in arithmetic, in a brace. */
function collectScripts(node: SyntaxNode, scripts: ParsedScript[]): void {
  if (node.type === "Script") scripts.push(node);
  else forEachChild(node, (child) => collectScripts(child, scripts));
}
