import { checkPolicyFolder, loadPolicyFolder } from "../kernel/policy-folder.ts";
import { formatFault } from "../kernel/policies.ts";
import { BACKTEST_HELP, policyBacktest } from "./policy-backtest.ts";
import { EXIT, colour, parse, usage, type Command, type Output } from "./command.ts";

export const policy: Command = {
  summary: "check and test policies without a service",
  help: `usage: assent policy check [FOLDER] [--recursive] [--json]
       assent policy test [FOLDER] [--recursive] [--json]
       assent policy backtest [FOLDER] [--against URL|store] [--since TIME] ...

FOLDER is ./policies when absent. check reads every policy and test file and prints each fault as
file:line:column. test also runs the *_test.yaml files. Both exit 1 when anything is wrong.

examples:
  assent policy check
  assent policy test deploy/policies --recursive
  assent policy backtest --against store --since 30d

${BACKTEST_HELP}`,
  async run(args, io) {
    const [verb, ...rest] = args;
    if (verb === "backtest") return policyBacktest(rest, io);
    if (verb !== "check" && verb !== "test") throw usage(`assent policy takes check, test or backtest${verb === undefined ? "" : `, not "${verb}"`}`);
    const { values, positionals } = parse(rest, { recursive: { type: "boolean" }, json: { type: "boolean" } });
    if (positionals.length > 1) throw usage(`assent policy ${verb} takes one folder`);
    const folder = positionals[0] ?? process.env["ASSENT_POLICIES"] ?? "./policies";
    const options = { recursive: values.recursive === true };
    return verb === "check" ? check(folder, options, values.json === true, io) : test(folder, options, values.json === true, io);
  },
};

async function check(path: string, options: { recursive: boolean }, json: boolean, io: Output): Promise<number> {
  const { documents, faults } = await loadPolicyFolder(path, options);
  if (json) io.out(JSON.stringify({ policies: documents.length, faults }));
  else {
    for (const fault of faults) io.err(formatFault(fault));
    if (faults.length === 0) io.out(`${documents.length} policies are good`);
  }
  return faults.length === 0 ? EXIT.ok : EXIT.failure;
}

async function test(path: string, options: { recursive: boolean }, json: boolean, io: Output): Promise<number> {
  const { results, faults } = await checkPolicyFolder(path, options);
  const failed = results.filter(({ result }) => result.failure !== null).length;
  if (json) io.out(JSON.stringify({ passed: results.length - failed, failed, faults, results: results.map(({ file, result }) => ({ file, name: result.name, failure: result.failure })) }));
  else {
    if (results.length === 0) for (const fault of faults) io.err(formatFault(fault));
    for (const { file, result } of results) {
      if (result.failure === null) io.out(`${colour(io, "green", "ok")}    ${file}: ${result.name}`);
      else io.err(`${colour(io, "red", "FAIL")}  ${file}: ${result.name}: ${result.failure}`);
    }
    io.out(`${results.length - failed} passed, ${failed} failed`);
  }
  return faults.length === 0 ? EXIT.ok : EXIT.failure;
}
