/** Values of the variables that a line assigns. */
import { forEachChild, type SyntaxNode } from "unbash";
import { SHOWN_VARIABLES } from "./command-tables.ts";
import { isNumber, isNumeric, type Known } from "./word-values.ts";
import type { WorkingFolders } from "./working-folders.ts";

export class LineVariables {
  /** Null for a variable that the line assigned an unknown value. */
  private values = new Map<string, Known | null>();
  private readonly folders: WorkingFolders;
  private readonly home: string | null;

  constructor(folders: WorkingFolders, home: string | null) {
    this.folders = folders;
    this.home = home;
  }

  get(name: string): Known | null {
    const value = this.values.get(name);
    if (value !== undefined) return value;
    const [folder, ...others] = this.folders.all();
    if (name === "PWD" && folder !== undefined && others.length === 0) return { kind: "literal", text: folder };
    if (name === "HOME" && this.home !== null) return { kind: "literal", text: this.home };
    return SHOWN_VARIABLES.has(name) ? { kind: "text" } : null;
  }

  set(name: string, value: Known | null): void {
    this.values.set(name, value);
  }

  /**
   * Runs `read` for a script that may run in another shell, so that all variables are unknown in it.
   * @param words name and arguments of the script, if they are known
   */
  apart(assigned: readonly Assigned[], words: readonly (Known | null)[] | null, read: () => void): void {
    const before = this.values;
    this.values = new Map([...before.keys()].map((name) => [name, null]));
    for (let at = 0; words !== null && at < 10; at++)
      this.values.set(String(at), at < words.length ? (words[at] ?? null) : { kind: "literal", text: "" });
    read();
    this.values = new Map(before);
    for (const { name } of assigned) this.values.set(name, null);
  }

  /**
   * Runs `read` without the values of these variables, because the commands that it reads assign them. They are unknown
   * afterwards.
   */
  within(assigned: readonly Assigned[], read: () => void): void {
    const before = this.values;
    const forget = (): void => {
      this.values = new Map(before);
      for (const { name } of assigned) {
        // A counter stays a number.
        const counts =
          isNumber(before.get(name) ?? null) && assigned.every((each) => each.name !== name || each.counts);
        this.values.set(name, counts ? { kind: "number" } : null);
      }
    };
    forget();
    read();
    forget();
  }
}

/** A variable that a part of a line assigns. */
export interface Assigned {
  name: string;
  /** Whether the value is a number if the variable was a number before. */
  counts: boolean;
}

/** Returns all variables that are assigned in these parts of a line. */
export function assignedNames(nodes: readonly SyntaxNode[]): Assigned[] {
  const names: Assigned[] = [];
  const add = (name: string, counts = false): void => void names.push({ name, counts });
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Assignment")
      add(node.name, node.append !== true && node.value.type === "Word" && counts(node.name, node.value.text));
    if (node.type === "For") add(node.name.text);
    if (node.type === "Command" && ["read", "unset", "export", "declare", "local"].includes(node.name?.text ?? ""))
      for (const { text } of node.args) add(text.replace(/=.*/s, ""));
    forEachChild(node, visit);
  };
  nodes.forEach(visit);
  return names;
}

function counts(name: string, value: string): boolean {
  const variable = (each: string): Known | null => (each === name ? { kind: "number" } : null);
  return /^[0-9]{1,9}$/.test(value) || isNumeric(value, { variable, substitution: () => null });
}
