/** `assent policy diff` compares the rules and effects of two folders or git revisions. */
import { statSync } from "node:fs";
import type { PolicyDifference } from "../../domain/policy/diff/diff.ts";
import { diffPolicySets, type SetDiff } from "../../domain/policy/diff/set-diff.ts";
import { renderDiffMarkdown, renderDiffTotals } from "../../policies/diff-markdown.ts";
import { loadPolicyFolder, type PolicyFolder } from "../../policies/folder.ts";
import {
  EXIT_CODES,
  colourText,
  parseFormat,
  parseArguments,
  toPrintable,
  usageError,
  printJson,
  type Output,
  type Subcommand,
} from "../command.ts";
import { withStatusLine } from "../status-line.ts";
import { assertNoFaults, DEFAULT_FOLDER, FOLDER_OPTIONS, folderOptions } from "./folder-argument.ts";
import { loadRevision, parseRevision } from "./revision.ts";

export const diff: Subcommand = {
  summary: "compare the rules and effects of two folders or git revisions",
  help: `usage: assent policy diff A [B] [--exit-code] [--recursive] [--environment NAME] [--format text|json|markdown]

Compares the policies of A with those of B (./policies when absent). Each is a folder, or a revision of the git repository
of the working folder: REV, or REV:folder with the folder as git has it, from the root of the repository on. A revision
without a folder uses the folder of the other side, or ./policies. If a folder and a revision have the same name, the
folder is used; write the revision as REV:folder.

Exits with 0, equal or not; with 2 when a side cannot be read or its policies are faulty.

  --exit-code       exit with 1 if something differs
  --recursive       include subfolders
  --environment NAME
                    environment whose shared data applies on both sides (ASSENT_ENVIRONMENT)
  --format FORMAT   text, json, or markdown for a pull request
  --json            the same as --format json

examples:
  assent policy diff main
  assent policy diff v1.2:deploy/policies deploy/policies --format markdown
  assent policy diff HEAD~1 HEAD --exit-code`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      ...FOLDER_OPTIONS,
      "exit-code": { type: "boolean" },
      format: { type: "string" },
      json: { type: "boolean" },
    });
    const format = parseFormat(values, ["text", "json", "markdown"]);
    const [a, b = process.env["ASSENT_POLICIES"] || DEFAULT_FOLDER, ...more] = positionals;
    if (a === undefined || more.length > 0)
      throw usageError("assent policy diff takes two folders or revisions, or one to compare with ./policies");
    const options = folderOptions(values);
    const [before, after] = await withStatusLine(io, async (say) => {
      const load = async (side: string, other: string): Promise<PolicyFolder> => {
        say(`reading ${toPrintable(side)}`);
        return isFolder(side)
          ? loadPolicyFolder(side, options)
          : loadRevision(
              parseRevision(side),
              isFolder(other) ? other : process.env["ASSENT_POLICIES"] || DEFAULT_FOLDER,
              options,
            );
      };
      return [await load(a, b), await load(b, a)];
    });
    assertNoFaults(a, before.faults, "nothing was compared", EXIT_CODES.usage, io);
    assertNoFaults(b, after.faults, "nothing was compared", EXIT_CODES.usage, io);
    const difference = diffPolicySets(
      before.documents.map(({ document }) => document),
      after.documents.map(({ document }) => document),
    );
    if (format === "json")
      printJson(io, { before: a, after: b, equal: difference.policies.length === 0, ...difference });
    else io.out(format === "markdown" ? renderDiffMarkdown(difference) : renderText(difference, io));
    return values["exit-code"] === true && difference.policies.length > 0 ? EXIT_CODES.failure : EXIT_CODES.ok;
  },
};

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

const SIGNS: Readonly<Record<PolicyDifference["kind"], string>> = {
  policy_changed: "~",
  limit_added: "+",
  limit_removed: "-",
  limit_changed: "~",
  rule_added: "+",
  rule_removed: "-",
  rule_changed: "~",
  rule_moved: "~",
};
const TINTS = { "+": "green", "-": "red", "~": "yellow" } as const;

function renderText(difference: SetDiff, io: Output): string {
  if (difference.policies.length === 0) return "the policies are the same";
  const lines = difference.policies.flatMap(({ kind, changes, summary }) => {
    const sign = kind === "policy_added" ? "+" : kind === "policy_removed" ? "-" : "~";
    return [
      colourText(io, TINTS[sign], `${sign} ${toPrintable(summary)}`),
      ...changes.map((change) =>
        colourText(io, TINTS[SIGNS[change.kind] as "+"], `    ${SIGNS[change.kind]} ${toPrintable(change.summary)}`),
      ),
    ];
  });
  return [...lines, renderDiffTotals(difference)].join("\n");
}
