/** Values of the variables that a line assigns. */
import { forEachChild, type SyntaxNode } from "unbash";
import { isShownVariable } from "./command-tables.ts";
import type { Known } from "./word-values.ts";
import type { WorkingFolders } from "./working-folders.ts";

export class LineVariables {
  /** Null for a variable that the line assigned, and whose value is unknown. */
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
    return isShownVariable(name) ? { kind: "text" } : null;
  }

  set(name: string, value: Known | null): void {
    this.values.set(name, value);
  }

  /** Runs `read` for a script that may run in another shell, so that no value is known in it. */
  apart(assigned: readonly string[], read: () => void): void {
    const before = this.values;
    this.values = new Map([...before.keys()].map((name) => [name, null]));
    read();
    this.values = new Map(before);
    for (const name of assigned) this.values.set(name, null);
  }

  /** Runs `read` without the values of these variables, which it assigns. They are unknown afterwards. */
  within(assigned: readonly string[], read: () => void): void {
    const before = this.values;
    const forget = (): void => {
      this.values = new Map(before);
      for (const name of assigned) this.values.set(name, null);
    };
    forget();
    read();
    forget();
  }
}

/** Returns the names of all variables that are assigned in these parts of a line. */
export function assignedNames(nodes: readonly SyntaxNode[]): string[] {
  const names: string[] = [];
  const visit = (node: SyntaxNode): void => {
    if (node.type === "Assignment") names.push(node.name);
    if (node.type === "For") names.push(node.name.text);
    if (node.type === "Command" && ["read", "unset", "export", "declare", "local"].includes(node.name?.text ?? ""))
      names.push(...node.args.map(({ text }) => text.replace(/=.*/s, "")));
    forEachChild(node, visit);
  };
  nodes.forEach(visit);
  return names;
}
