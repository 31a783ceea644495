/** Faults as SARIF 2.1.0 (OASIS), the form that code scanning of GitHub, GitLab and editors takes. */
import { relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { FaultKind, TextFault, WarningKind } from "../../domain/policy/parse/parse.ts";
import { pathOf } from "./folder.ts";

/** What a reviewer filters and silences by. Ids never change their meaning. */
const KINDS: Readonly<Record<FaultKind | "policy-folder", readonly [name: string, text: string]>> = {
  "yaml-syntax": ["YamlSyntax", "The file is not the YAML that policies are written in."],
  "unknown-key": ["UnknownKey", "A key is not known where it stands."],
  "missing-key": ["MissingKey", "A key that is needed is not there."],
  "wrong-value": ["WrongValue", "A value is not of the form that its key takes."],
  condition: ["Condition", "A condition or another expression does not compile."],
  pattern: ["Pattern", "A pattern matches no name."],
  "repeated-name": ["RepeatedName", "A name that must be unique stands twice."],
  "unreadable-file": ["UnreadableFile", "The file cannot be read, or holds nothing."],
  "set-too-large": ["SetTooLarge", "The policies are too much of something together."],
  "failing-test": ["FailingTest", "A test beside the policies does not hold."],
  "unknown-channel": ["UnknownChannel", "A policy tells a channel that the configuration does not have."],
  "unreachable-rule": ["UnreachableRule", "An earlier rule matches every action of this rule."],
  "outside-applies-to": ["OutsideAppliesTo", "A rule names a tool or an agent that applies_to excludes."],
  contradiction: ["Contradiction", "A condition is never true."],
  "untested-rule": ["UntestedRule", "No test reaches a rule."],
  "policy-folder": ["PolicyFolder", "The folder of policies cannot be taken."],
};

const WARNINGS: ReadonlySet<string> = new Set<WarningKind>([
  "unknown-channel",
  "unreachable-rule",
  "outside-applies-to",
  "contradiction",
  "untested-rule",
]);

const IDS = Object.keys(KINDS) as (keyof typeof KINDS)[];
const RULES = IDS.map((id) => ({
  id,
  name: KINDS[id][0],
  shortDescription: { text: KINDS[id][1] },
  help: { text: "docs/policies.md is the whole language." },
  defaultConfiguration: { level: levelOf(id) },
}));

function levelOf(id: keyof typeof KINDS): "error" | "warning" {
  return WARNINGS.has(id) ? "warning" : "error";
}

/** One run. Columns are UTF-16 code units, from 1. */
export function sarif(folder: string, faults: readonly TextFault[]): object {
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
  const path = pathOf(folder, fault);
  const id = path === folder ? "policy-folder" : (fault.kind ?? "wrong-value");
  const region =
    fault.line === null
      ? {}
      : { region: { startLine: fault.line, ...(fault.column === null ? {} : { startColumn: fault.column }) } };
  return {
    ruleId: id,
    ruleIndex: IDS.indexOf(id),
    level: levelOf(id),
    message: { text: fault.message },
    locations: [{ physicalLocation: { artifactLocation: { uri: uriOf(path) }, ...region } }],
  };
}

/** Relative to the working folder, so that a viewer finds it in its own clone; absolute where the file lies outside. */
function uriOf(path: string): string {
  const inside = relative(process.cwd(), path);
  if (inside === "") return ".";
  const outside = inside === ".." || inside.startsWith(`..${sep}`);
  return outside ? pathToFileURL(path).href : inside.split(sep).map(encodeURIComponent).join("/");
}
