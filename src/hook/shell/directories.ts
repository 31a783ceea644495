/** In which folders a line of shell may be when it names a file, and which files it may mean. Pure; POSIX paths. */
import { dirname, isAbsolute, normalize, resolve } from "node:path/posix";
import type { Argument } from "./parse.ts";
import type { ShellPlace, Unclear } from "./types.ts";
import { SYSTEM_FOLDERS } from "./command-tables.ts";

const MOST = 8;

export class Directories {
  /** Every folder that the line may be in, so far: whether a `cd` ran is not known. */
  private readonly places: Set<string>;
  private readonly home: string | null;
  private readonly note: (reason: Unclear) => void;

  constructor({ cwds, home }: ShellPlace, note: (reason: Unclear) => void) {
    this.places = new Set(cwds);
    this.home = home;
    this.note = note;
  }

  /** `cd` and `pushd`. */
  change(args: readonly Argument[]): void {
    const [target, ...others] = args.filter(({ text }) => !/^-[Le@]+$/.test(text) && text !== "--");
    if (others.length > 0 || target?.clear === false || /^[-+]/.test(target?.text ?? "")) return this.note("directory");
    const before = [...this.places];
    const targets =
      target === undefined ? [this.home] : before.map((place) => this.resolve(target, target.text, place));
    for (const path of targets) {
      if (path === null || this.places.size >= MOST) return this.note("directory");
      // `cd` takes ".." by the text.
      this.places.add(resolve(path));
    }
  }

  all(): string[] {
    return [...this.places];
  }

  /** Every file that a word may name: an over-approximation, which holds words that are no paths too. */
  pathsOf(argument: Argument): string[] {
    const { text } = argument;
    if (text === "-" || text === "--") return [];
    const paths = text.startsWith("-") ? [] : this.fileOf(argument);
    // `-f.env`, `-C../x`
    const at = text.startsWith("-") ? text.search(/[/~.]/) : -1;
    if (at > 0) paths.push(...this.fileOf({ ...argument, text: text.slice(at), tilde: text[at] === "~" }));
    // `of=/dev/sda`, `--file=x`, `HEAD:x`, `host:x`, `src=x,dst=y`, `@x`; no address.
    for (const piece of text.split(/[=:,@]/).slice(text.startsWith("-") ? 1 : 0))
      if (!piece.startsWith("//"))
        paths.push(...this.fileOf({ ...argument, text: piece, tilde: piece.startsWith("~") }));
    return [...new Set(paths)];
  }

  /** A word that names a file and nothing else. */
  fileOf(argument: Argument): string[] {
    const { text } = argument;
    if (text.length > 4096) this.note("size");
    if (text === "" || text.length > 4096) return [];
    const paths = [...this.places].map((place) => this.resolve(argument, text, place));
    return [...new Set(paths.filter((path) => path !== null))];
  }

  private resolve({ tilde }: Argument, text: string, place: string): string | null {
    let path = text;
    if (tilde || text.startsWith("~/")) {
      const match = /^~(\/.*)?$/s.exec(text);
      if (match === null || this.home === null) {
        this.note("expansion");
        return null;
      }
      path = this.home + (match[1] ?? "");
    }
    return isAbsolute(path) ? path : `${place}/${path}`;
  }

  /** `rm` for `/bin/rm`; a path to anywhere else stays as it is written. */
  commandName({ text, clear }: Argument): string {
    return clear && text.startsWith("/") && SYSTEM_FOLDERS.has(dirname(normalize(text)))
      ? normalize(text).slice(dirname(normalize(text)).length + 1)
      : text;
  }
}
