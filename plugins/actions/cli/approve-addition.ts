/** What a feature adds to the command `assent approve`. */
import type { ParseArgsConfig } from "node:util";
import type { ActionRecord, ApproveOptions } from "../../../clients/typescript/index.ts";
import type { Output } from "../../../src/command.ts";

/** Options of `assent approve` that a feature adds: the default export of a module in its folder `commands/approve`. */
export interface ApproveAddition {
  /** Options for the first line of the help, a section of the help, and options of an example. */
  usage: string;
  help: string;
  example: string;
  options: NonNullable<ParseArgsConfig["options"]>;
  /**
   * Returns what the values of the options add to the approval; null if the command line has none of the options.
   * Throws CommandError.
   */
  read(values: Readonly<Record<string, string | boolean | undefined>>): {
    how: Omit<ApproveOptions, "reason" | "token" | "signal">;
    /** Prints what the approval adds, before the vote. */
    explain(io: Output, request: ActionRecord): Promise<void>;
    /** Prints the result, after the vote. */
    report(io: Output, action: ActionRecord): void;
  } | null;
}
