/** What the verbs share: which folder is meant, and where its faults stand. */
import { join } from "node:path";
import type { TextFault } from "../../domain/policy/parse/parse.ts";
import { formatFault } from "../../policies/store.ts";
import type { PolicyFolder } from "../../policies/folder.ts";
import { CommandError, safe, usage, type Output } from "../command.ts";

export const DEFAULT_FOLDER = "./policies";

/** The one folder that is named, ASSENT_POLICIES, or ./policies. */
export function folderOf(verb: string, positionals: readonly string[]): string {
  if (positionals.length > 1) throw usage(`assent policy ${verb} takes one folder`);
  return positionals[0] ?? (process.env["ASSENT_POLICIES"] || DEFAULT_FOLDER);
}

/** From the working folder on; a fault of the folder itself names the folder. */
export function pathOf(folder: string, { file, line }: Pick<TextFault, "file" | "line">): string {
  return file === folder && line === null ? folder : join(folder, file);
}

/** One line for each fault. Text from a file cannot begin a line: some CI systems would take it as a command. */
export function tellFaults(faults: readonly TextFault[], io: Output): void {
  for (const fault of faults) io.err(safe(formatFault(fault)));
}

/** Prints the faults and throws, when there are any. @param then what does not happen because of them */
export function assertGood(folder: string, faults: readonly TextFault[], then: string, exit: number, io: Output): void {
  if (faults.length === 0) return;
  tellFaults(faults, io);
  throw new CommandError(`the policies of ${folder} are not good; ${then}`, exit);
}

/** Which file a policy stands in. */
export function fileByPolicy(documents: PolicyFolder["documents"]): (policy: string) => string {
  const files = new Map(documents.map(({ document, file }) => [document.policy, file]));
  return (policy) => files.get(policy) ?? "";
}
