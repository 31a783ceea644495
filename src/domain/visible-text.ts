/** Marks hidden characters and look-alike words in untrusted text. The console also loads this module. */
import { formatCodePoint, HIDDEN_CHARACTERS } from "./text.ts";

/** A run of text. `mark` explains why the run is marked; null for ordinary text. */
export interface TextPart {
  text: string;
  kind: "plain" | "hidden" | "look-alike";
  mark: string | null;
}

/**
 * Maximum number of marks in one string. The rest become bracketed text, so that a string cannot create thousands of
 * page elements.
 */
const MAX_MARKS = 40;
/** Maximum number of letters that a word's mark lists. */
const MAX_NAMED = 3;

const NAMES: Readonly<Record<number, string>> = {
  0x00: "null",
  0x07: "bell",
  0x08: "backspace",
  0x09: "tab",
  0x0a: "line feed",
  0x0d: "carriage return",
  0x1b: "escape",
  0x7f: "delete",
  0xa0: "no-break space",
  0xad: "soft hyphen",
  0x200b: "zero width space",
  0x200c: "zero width non-joiner",
  0x200d: "zero width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x2028: "line separator",
  0x2029: "paragraph separator",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2060: "word joiner",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark",
};

/** Scripts whose letters resemble Latin letters, and other common scripts. */
const SCRIPTS = ["Latin", "Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Georgian", "Hebrew", "Arabic"].map(
  (name) => ({ name, letter: new RegExp(`\\p{Script=${name}}`, "u") }),
);
/** East Asian scripts, which are commonly mixed with Latin (Unicode TR 39, "highly restrictive"). */
const EAST_ASIAN = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{scx=Hangul}]/u;
/** Letters that look like Latin letters in most fonts. */
const LIKE_LATIN = [
  { name: "Cyrillic", letter: /\p{Script=Cyrillic}/u, like: /^[асеорхуѕіјһӏԁԛԝАВЕКМНОРСТУХЅІЈԚԜ]$/u },
  { name: "Greek", letter: /\p{Script=Greek}/u, like: /^[ονυαικρχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]$/u },
];

function scriptOf(character: string): string {
  if (EAST_ASIAN.test(character)) return "Latin";
  return SCRIPTS.find((script) => script.letter.test(character))?.name ?? "another script";
}

/** Matches hidden characters, and combining marks that are stacked so high that they cover their neighbours. */
const MARKED_TEXT = new RegExp(`(${HIDDEN_CHARACTERS.source}|(?<=\\p{M}{4})\\p{M})`, "u");

/**
 * Splits `text` into plain parts and marked parts (hidden or look-alike characters). With `lines`, line feeds and tabs
 * are plain text.
 * @example
 * for (const { text, kind, mark } of markText(comment, { lines: true })) append(text, kind, mark);
 */
export function markText(text: string, { lines = false }: { lines?: boolean } = {}): TextPart[] {
  // Fast path, because most values are short ASCII.
  if (/^[\x20-\x7e]*$/.test(text)) return text === "" ? [] : [plainPart(text)];
  const parts: TextPart[] = [];
  const scripts = findProseScripts(text);
  let marks = 0;
  const add = (part: TextPart): void => {
    if (part.mark !== null) marks += 1;
    const last = parts.at(-1);
    const next = part.mark !== null && marks > MAX_MARKS ? plainPart(markInBrackets(part)) : part;
    if (next.kind === "plain" && last?.kind === "plain") last.text += next.text;
    else parts.push(next);
  };
  // Odd elements are the captured marks.
  for (const [i, run] of text.split(MARKED_TEXT).entries()) {
    if (run === "") continue;
    if (i % 2 === 0) for (const part of markWords(run, scripts)) add(part);
    else if (lines && (run === "\n" || run === "\t")) add(plainPart(run));
    else add({ text: formatCodePoint(run), kind: "hidden", mark: nameOf(run) });
  }
  return parts;
}

/**
 * Returns the string as one line, with every mark as text, such as `[U+202E]` or `pаypal [Cyrillic а U+0430]`.
 * @example
 * renderMarkedText("a\u202eb"); // "a[U+202E]b"
 */
export function renderMarkedText(text: string): string {
  return markText(text)
    .map((part) => (part.mark === null ? part.text : markInBrackets(part)))
    .join("");
}

function markInBrackets({ text, kind, mark }: TextPart): string {
  return kind === "hidden" ? `[${text}]` : `${text} [${mark ?? ""}]`;
}

const plainPart = (text: string): TextPart => ({ text, kind: "plain", mark: null });

function nameOf(hidden: string): string {
  const name = NAMES[hidden.codePointAt(0) as number];
  if (name !== undefined) return name;
  if (/\p{Cs}/u.test(hidden)) return "half of a surrogate pair";
  if (/\p{M}/u.test(hidden)) return "stacked combining mark";
  return /\p{Zs}/u.test(hidden) ? "unusual space" : "invisible character";
}

/**
 * Returns the scripts of `LIKE_LATIN` that the text itself uses: those with a letter in the text that does not resemble
 * a Latin letter. Words in these scripts are not imitations.
 */
function findProseScripts(text: string): ReadonlySet<string> {
  const characters = new Set(text.match(/\p{L}/gu) ?? []);
  return new Set(
    LIKE_LATIN.filter(({ letter, like }) => [...characters].some((l) => letter.test(l) && !like.test(l))).map(
      ({ name }) => name,
    ),
  );
}

function markWords(run: string, prose: ReadonlySet<string>): TextPart[] {
  return run
    .split(/(\s+)/)
    .filter((word) => word !== "")
    .map((word) => {
      const mark = findImitation(word, prose);
      return mark === null ? plainPart(word) : { text: word, kind: "look-alike", mark };
    });
}

/** Returns a description of the misleading letters in `word`; null if there are none. */
function findImitation(word: string, prose: ReadonlySet<string>): string | null {
  if (!/[\u0080-\u{10ffff}]/u.test(word)) return null;
  const characters = [...new Set(word.match(/[\p{L}\p{Nd}]/gu) ?? [])];
  const styled = characters.filter((c) => c > "\x7f" && /^[0-9A-Za-z]+$/.test(c.normalize("NFKC")));
  if (styled.length > 0) return `look-alikes ${list(styled)}`;
  const scripts = groupByScript(characters);
  if (scripts.size > 1)
    return [...scripts]
      .filter(([script]) => script !== "Latin")
      .map(([script, letters]) => `${script} ${list(letters)}`)
      .join(", ");
  const [[script, letters] = ["", []]] = scripts;
  const imitated = LIKE_LATIN.find(({ name }) => name === script);
  if (imitated === undefined || prose.has(script) || !letters.every((character) => imitated.like.test(character)))
    return null;
  return `${script} letters that look like Latin`;
}

/** Groups letters by script. East Asian scripts count as Latin, with which they are commonly mixed. */
export function groupByScript(characters: Iterable<string>): Map<string, string[]> {
  const scripts = new Map<string, string[]>();
  for (const character of characters)
    if (/(?!\p{Script=Common})\p{L}/u.test(character))
      scripts.set(scriptOf(character), [...(scripts.get(scriptOf(character)) ?? []), character]);
  return scripts;
}

function list(letters: readonly string[]): string {
  const named = letters.slice(0, MAX_NAMED).map((character) => `${character} ${formatCodePoint(character)}`);
  return `${named.join(", ")}${letters.length > MAX_NAMED ? ", …" : ""}`;
}
