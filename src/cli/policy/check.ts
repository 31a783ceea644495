/** `assent policy check`: every fault of a folder at once. */
import { loadPolicyFolder } from "../../kernel/policy-folder.ts";
import { EXIT, oneOf, parse, type Verb } from "../command.ts";
import { folderOf, tellFaults } from "./folder.ts";
import { sarif } from "./sarif.ts";

export const check: Verb = {
  summary: "reads every policy and test file and prints each fault",
  help: `usage: assent policy check [FOLDER] [--recursive] [--format text|json|sarif]

Reads every policy and test file of FOLDER (./policies) and prints each fault as file:line:column, all of them at once.
Runs no test: "assent policy test" does. Exits with 1 when anything is wrong.

  --recursive       takes the folders inside it too
  --format FORMAT   text; json; or sarif (2.1.0) for code scanning, with paths from the working folder
  --json            the same as --format json

examples:
  assent policy check
  assent policy check deploy/policies --recursive --format sarif > policies.sarif`,
  async run(args, io) {
    const { values, positionals } = parse(args, { recursive: { type: "boolean" }, json: { type: "boolean" }, format: { type: "string" } });
    const folder = folderOf("check", positionals);
    const format = oneOf("--format", values.format ?? (values.json === true ? "json" : undefined), ["text", "json", "sarif"]);
    const { documents, faults } = await loadPolicyFolder(folder, { recursive: values.recursive === true });
    if (format === "json") io.out(JSON.stringify({ policies: documents.length, faults }));
    else if (format === "sarif") io.out(JSON.stringify(sarif(folder, faults), null, 2));
    else {
      tellFaults(faults, io);
      if (faults.length === 0) io.out(good(documents.length));
    }
    return faults.length === 0 ? EXIT.ok : EXIT.failure;
  },
};

function good(policies: number): string {
  return policies === 1 ? "1 policy is good" : `${policies} policies are good`;
}
