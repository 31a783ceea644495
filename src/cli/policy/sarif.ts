/** Renders faults as SARIF 2.1.0 (OASIS), which code scanning in GitHub, GitLab and editors reads. */
import { relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { FaultKind, TextFault, WarningKind } from "../../domain/policy/parse/parse.ts";
import { faultPath } from "./folder-argument.ts";

/** SARIF rules. Reviewers filter and suppress results by rule, so the ids must stay the same. */
const RULE_OF_KIND: Readonly<Record<FaultKind | "policy-folder", readonly [name: string, text: string]>> = {
  "yaml-syntax": ["YamlSyntax", "The file is not valid YAML for policies."],
  "unknown-key": ["UnknownKey", "The key is unknown at this position."],
  "missing-key": ["MissingKey", "A required key is missing."],
  "wrong-value": ["WrongValue", "A value does not have the form that its key requires."],
  condition: ["Condition", "A condition or another expression does not compile."],
  pattern: ["Pattern", "A pattern matches no name."],
  "repeated-name": ["RepeatedName", "A name that must be unique is used twice."],
  "unreadable-file": ["UnreadableFile", "The file cannot be read, or is empty."],
  "set-too-large": ["SetTooLarge", "The policies together exceed a limit."],
  "failing-test": ["FailingTest", "A policy test fails."],
  "too-many-tests": ["TooManyTests", "The tests of the folder make more decisions than a service runs."],
  "unknown-channel": ["UnknownChannel", "A policy names a channel that the configuration does not define."],
  "unreachable-rule": ["UnreachableRule", "An earlier rule matches every action of this rule."],
  "outside-applies-to": ["OutsideAppliesTo", "A rule names a tool or an agent that applies_to excludes."],
  contradiction: ["Contradiction", "A condition is never true."],
  "untested-rule": ["UntestedRule", "No test reaches a rule."],
  "unloaded-policy": ["UnloadedPolicy", "A file looks like a policy and is not loaded."],
  "policy-folder": ["PolicyFolder", "The policy folder cannot be used."],
};

const WARNINGS: ReadonlySet<string> = new Set<WarningKind>([
  "unknown-channel",
  "unreachable-rule",
  "outside-applies-to",
  "contradiction",
  "untested-rule",
  "unloaded-policy",
]);

const IDS = Object.keys(RULE_OF_KIND) as (keyof typeof RULE_OF_KIND)[];
const RULES = IDS.map((id) => ({
  id,
  name: RULE_OF_KIND[id][0],
  shortDescription: { text: RULE_OF_KIND[id][1] },
  fullDescription: { text: RULE_OF_KIND[id][1] },
  help: { text: "docs/policies.md describes the policy language." },
  defaultConfiguration: { level: levelOf(id) },
}));

function levelOf(id: keyof typeof RULE_OF_KIND): "error" | "warning" {
  return WARNINGS.has(id) ? "warning" : "error";
}

/** Returns a SARIF log with one run. Columns count UTF-16 code units from 1. */
export function renderSarif(folder: string, faults: readonly TextFault[]): object {
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: { driver: { name: "assent", rules: RULES } },
        columnKind: "utf16CodeUnits",
        results: faults.map((fault) => resultOf(folder, fault)),
      },
    ],
  };
}

function resultOf(folder: string, fault: TextFault): object {
  const path = faultPath(folder, fault);
  const id = path === folder ? "policy-folder" : (fault.kind ?? "wrong-value");
  const region =
    fault.line === null
      ? {}
      : {
          region: {
            startLine: fault.line,
            ...(fault.column === null ? {} : { startColumn: fault.column }),
            endLine: fault.line,
          },
        };
  return {
    ruleId: id,
    ruleIndex: IDS.indexOf(id),
    level: levelOf(id),
    message: { text: fault.message },
    locations: [{ physicalLocation: { artifactLocation: { uri: uriOf(path) }, ...region } }],
  };
}

/**
 * Returns a URI relative to the working folder, so that a viewer finds the file in its own clone. Absolute for a file
 * outside the folder.
 */
function uriOf(path: string): string {
  const inside = relative(process.cwd(), path);
  if (inside === "") return ".";
  const outside = inside === ".." || inside.startsWith(`..${sep}`);
  return outside ? pathToFileURL(path).href : inside.split(sep).map(encodeURIComponent).join("/");
}
