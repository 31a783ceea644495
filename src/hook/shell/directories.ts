/** In which folders a line of shell may be when it names a file, and which files it may mean. Pure; POSIX paths. */
import { dirname, isAbsolute, join, normalize } from "node:path/posix";
import type { Argument } from "./parse.ts";
import type { ShellPlace, Unclear } from "./types.ts";
import { SYSTEM_FOLDERS } from "./wrappers.ts";

const MOST = 8;

export class Directories {
  /** Every folder that the line may be in, so far: whether a `cd` ran is not known. */
  private readonly places: Set<string>;
  private readonly home: string | null;
  private readonly note: (reason: Unclear) => void;
  private moved = false;

  constructor({ cwds, home }: ShellPlace, note: (reason: Unclear) => void) {
    this.places = new Set(cwds);
    this.home = home;
    this.note = note;
  }

  /** `cd` and `pushd`. */
  change(args: readonly Argument[]): void {
    const [target, ...others] = args.filter(({ text }) => !/^-[LPe@]+$/.test(text) && text !== "--");
    if (others.length > 0 || target?.clear === false || /^[-+]/.test(target?.text ?? "")) return this.note("directory");
    const before = [...this.places];
    const targets =
      target === undefined ? [this.home] : before.map((place) => this.resolve(target, target.text, place));
    this.moved = true;
    for (const path of targets) {
      if (path === null || this.places.size >= MOST) return this.note("directory");
      this.places.add(path);
    }
  }

  /** Every file that a word may name: an over-approximation, which holds words that are no paths too. */
  pathsOf(argument: Argument): string[] {
    const { text } = argument;
    if (text === "" || text === "-" || text === "--") return [];
    if (!text.startsWith("-")) {
      const value = /^[A-Za-z_][\w.-]*=(.+)$/s.exec(text)?.[1];
      // `of=/dev/sda` names a file behind its equals sign.
      return [...this.all(argument, text), ...(value === undefined ? [] : this.all(argument, value))];
    }
    const equals = text.indexOf("=");
    if (equals > 0) return this.all(argument, text.slice(equals + 1));
    const at = text.search(/[/~]|\.\./);
    return at < 0 ? [] : this.all({ ...argument, tilde: text[at] === "~" }, text.slice(at));
  }

  private all(argument: Argument, text: string): string[] {
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
    // Behind a link ".." leads elsewhere than the text says.
    if (/[^/.][^/]*\/(.*\/)?\.\.(\/|$)/s.test(path) || (this.moved && /^\.\.(\/|$)/.test(path))) this.note("directory");
    const absolute = normalize(isAbsolute(path) ? path : join(place, path));
    return absolute.length > 1 ? absolute.replace(/\/$/, "") : absolute;
  }

  /** `rm` for `/bin/rm`; a path to anywhere else stays as it is written. */
  commandName({ text, clear }: Argument): string {
    return clear && text.startsWith("/") && SYSTEM_FOLDERS.has(dirname(normalize(text)))
      ? normalize(text).slice(dirname(normalize(text)).length + 1)
      : text;
  }
}
