/** Finds the policy folder and prints its faults, for the verbs of `assent policy`. */
import { join } from "node:path";
import type { TextFault } from "../../domain/policy/parse/parse.ts";
import type { RuleCoverage } from "../../domain/policy/test/coverage.ts";
import { formatFault } from "../../policies/policy-store.ts";
import type { PolicyFolder } from "../../policies/folder.ts";
import { CommandError, toPrintable, usageError, type Output } from "../command.ts";

export const DEFAULT_FOLDER = "./policies";

/** Returns the folder from the arguments, else ASSENT_POLICIES, else ./policies. */
export function resolvePolicyFolder(verb: string, positionals: readonly string[]): string {
  if (positionals.length > 1) throw usageError(`assent policy ${verb} takes one folder`);
  return positionals[0] ?? (process.env["ASSENT_POLICIES"] || DEFAULT_FOLDER);
}

/** Options that select the folder's files and the values of their shared data. */
export const FOLDER_OPTIONS = { recursive: { type: "boolean" }, environment: { type: "string" } } as const;

/** Returns the options for `loadPolicyFolder`. The default environment is ASSENT_ENVIRONMENT. */
export function folderOptions(values: { recursive?: boolean | undefined; environment?: string | undefined }): {
  recursive: boolean;
  environment: string | null;
} {
  const environment = values.environment ?? (process.env["ASSENT_ENVIRONMENT"] || null);
  return { recursive: values.recursive === true, environment };
}

/** Returns the path of a faulty file relative to the working folder; the folder for a fault of the folder itself. */
export function faultPath(folder: string, { file, line }: Pick<TextFault, "file" | "line">): string {
  return file === folder && line === null ? folder : join(folder, file);
}

/**
 * Prints one line for each fault. Escapes line breaks in text from files, because some CI systems run lines with a
 * certain prefix as commands.
 */
export function printFaults(faults: readonly TextFault[], io: Output): void {
  for (const fault of faults) io.err(toPrintable(formatFault(fault)));
}

/**
 * Prints the faults. Throws CommandError if there are any.
 * @param consequence end of the message, such as "nothing was compared"
 */
export function assertNoFaults(
  folder: string,
  faults: readonly TextFault[],
  consequence: string,
  exit: number,
  io: Output,
): void {
  if (faults.length === 0) return;
  printFaults(faults, io);
  throw new CommandError(`the policies of ${folder} are not valid; ${consequence}`, exit);
}

/** Returns a warning for each of the untested rules, at the line of the rule. */
export function untestedRules(documents: PolicyFolder["documents"], rules: readonly RuleCoverage[]): TextFault[] {
  const byPolicy = new Map(documents.map((entry) => [entry.document.policy, entry]));
  return rules.flatMap(({ policy, rule }): TextFault[] => {
    const entry = byPolicy.get(policy);
    if (entry === undefined) return [];
    const { line, column } = entry.rulePlaces.get(rule) ?? entry.place;
    const message = `no test reaches the rule "${rule}" of "${policy}"`;
    return [{ kind: "untested-rule", file: entry.file, line, column, message }];
  });
}

/** Returns a function that maps the name of a policy to its file. */
export function fileByPolicy(documents: PolicyFolder["documents"]): (policy: string) => string {
  const files = new Map(documents.map(({ document, file }) => [document.policy, file]));
  return (policy) => files.get(policy) ?? "";
}
