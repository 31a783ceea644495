/** Faults as SARIF 2.1.0 (OASIS), the form that code scanning of GitHub, GitLab and editors takes. */
import { relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { TextFault } from "../../domain/policy/parse.ts";
import { isTestFile } from "../../kernel/policy-folder.ts";
import { pathOf } from "./folder.ts";

const RULES = [
  { id: "policy-file", name: "PolicyFile", shortDescription: { text: "The policy cannot be taken." }, help: { text: "docs/policies.md is the whole language." }, defaultConfiguration: { level: "error" } },
  { id: "policy-test-file", name: "PolicyTestFile", shortDescription: { text: "The test of a policy cannot be taken." }, help: { text: "docs/policies.md, Tests." }, defaultConfiguration: { level: "error" } },
  { id: "policy-folder", name: "PolicyFolder", shortDescription: { text: "The folder of policies cannot be taken." }, help: { text: "docs/policies.md is the whole language." }, defaultConfiguration: { level: "error" } },
] as const;

/** One run. Columns are UTF-16 code units, from 1. */
export function sarif(folder: string, faults: readonly TextFault[]): object {
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "assent", rules: RULES } }, columnKind: "utf16CodeUnits", results: faults.map((fault) => resultOf(folder, fault)) }],
  };
}

function resultOf(folder: string, fault: TextFault): object {
  const path = pathOf(folder, fault);
  const id = path === folder ? "policy-folder" : isTestFile(fault.file) ? "policy-test-file" : "policy-file";
  const region = fault.line === null ? {} : { region: { startLine: fault.line, ...(fault.column === null ? {} : { startColumn: fault.column }) } };
  return {
    ruleId: id,
    ruleIndex: RULES.findIndex((rule) => rule.id === id),
    level: "error",
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
