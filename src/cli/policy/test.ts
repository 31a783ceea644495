/** `assent policy test` runs the tests of policies, and reports the rules that no test reaches. */
import { measureCoverage, type Coverage, type RuleCoverage } from "../../domain/policy/test/coverage.ts";
import { checkPolicyFolder, type CheckedFolder } from "../../policies/folder.ts";
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
import {
  FOLDER_OPTIONS,
  fileByPolicy,
  resolvePolicyFolder,
  folderOptions,
  printFaults,
  untestedRules,
} from "./folder-argument.ts";
import { renderJunit } from "./junit.ts";
import { renderLcov } from "./lcov.ts";
import { renderSarif } from "./sarif.ts";

export const test: Subcommand = {
  summary: "run the *_test.yaml files, and print which rules they cover",
  help: `usage: assent policy test [FOLDER] [--recursive] [--environment NAME] [--coverage] [--min-coverage PERCENT]
                          [--format text|json|junit|sarif|lcov]

Checks FOLDER (./policies) and runs its *_test.yaml files. Exits with 1 when a file is faulty, when a test fails, or when
the coverage is below --min-coverage.

  --coverage              print the rules that no test reaches. A rule is reached when it is the answer of its policy, even if
                          another policy was stricter
  --min-coverage PERCENT  minimum percentage of rules that tests must reach, 0 to 100. Implies --coverage
  --recursive             include subfolders
  --environment NAME      environment whose shared data applies, unless a test names one (ASSENT_ENVIRONMENT)
  --format FORMAT         text; json; junit (XML); sarif (2.1.0), with failing tests and, with --coverage, rules that no
                          test reaches; or lcov, the coverage by line
  --json                  the same as --format json

examples:
  assent policy test
  assent policy test deploy/policies --recursive --min-coverage 100
  assent policy test --format junit > policies.xml
  assent policy test --format lcov > lcov.info`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      ...FOLDER_OPTIONS,
      json: { type: "boolean" },
      format: { type: "string" },
      coverage: { type: "boolean" },
      "min-coverage": { type: "string" },
    });
    const path = resolvePolicyFolder("test", positionals);
    const format = parseFormat(values, ["text", "json", "junit", "sarif", "lcov"]);
    const minCoverage = percentOf(values["min-coverage"]);
    const folder = await withStatusLine(io, (say) =>
      checkPolicyFolder(path, {
        ...folderOptions(values),
        progress: (done, files) => say(`${done} of ${files} test documents`),
      }),
    );
    const run = folder.faults.length === 0 || folder.results.length > 0;
    const wantsCoverage = values.coverage === true || minCoverage !== null || format === "lcov";
    const coverage =
      run && wantsCoverage
        ? measureCoverage(
            folder.documents.map(({ document }) => document),
            folder.results.map(({ result }) => result),
          )
        : null;
    const short = coverage !== null && minCoverage !== null && coverage.percent < minCoverage;
    if (format === "json") printJson(io, report(folder, coverage));
    else if (format === "junit") io.out(renderJunit(path, folder, coverage, short));
    else if (format === "sarif")
      io.out(
        JSON.stringify(
          renderSarif(path, [...folder.faults, ...untestedRules(folder.documents, coverage?.uncovered ?? [])]),
          null,
          2,
        ),
      );
    else if (format === "lcov") {
      if (coverage === null || folder.faults.length > 0) printFaults(folder.faults, io);
      if (coverage !== null) io.out(renderLcov(path, folder, coverage));
    } else {
      text(path, folder, io);
      if (coverage !== null) coverageText(folder, coverage, io);
    }
    if (short)
      io.err(
        `assent: ${roundDown(coverage.percent)} % of the rules are reached, and --min-coverage requires ${minCoverage} %`,
      );
    return folder.faults.length === 0 && !short ? EXIT_CODES.ok : EXIT_CODES.failure;
  },
};

/** Rounds down to one decimal, so that 100 means that every rule was reached. */
function roundDown(percent: number): number {
  return Math.floor(percent * 10) / 10;
}

function percentOf(flag: string | undefined): number | null {
  if (flag === undefined) return null;
  const value = Number(flag);
  if (flag.trim() === "" || !(value >= 0 && value <= 100))
    throw usageError(`--min-coverage must be a number from 0 to 100; got "${flag}"`);
  return value;
}

function report({ results, faults, documents }: CheckedFolder, coverage: Coverage | null): object {
  const failed = results.filter(({ result }) => result.failure !== null).length;
  const fileOf = fileByPolicy(documents);
  return {
    passed: results.length - failed,
    failed,
    faults,
    results: results.map(({ file, result }) => ({ file, name: result.name, failure: result.failure })),
    ...(coverage === null
      ? {}
      : {
          coverage: {
            percent: coverage.percent,
            rules: coverage.rules.map((rule) => ({
              file: fileOf(rule.policy),
              line: lineOf(documents, rule),
              ...rule,
            })),
          },
        }),
  };
}

function lineOf(
  documents: CheckedFolder["documents"],
  { policy, rule }: Pick<RuleCoverage, "policy" | "rule">,
): number | null {
  const entry = documents.find(({ document }) => document.policy === policy);
  return entry?.rulePlaces.get(rule)?.line ?? null;
}

function text(path: string, { results, faults }: CheckedFolder, io: Output): void {
  const failed = results.filter(({ result }) => result.failure !== null).length;
  if (results.length === 0) printFaults(faults, io);
  for (const { file, result } of results) {
    if (result.failure === null)
      io.out(`${colourText(io, "green", "ok")}    ${toPrintable(`${file}: ${result.name}`)}`);
    else io.err(`${colourText(io, "red", "FAIL")}  ${toPrintable(`${file}: ${result.name}: ${result.failure}`)}`);
  }
  if (results.length === 0 && faults.length === 0)
    io.err(`${path} contains no tests; write NAME_test.yaml next to each policy`);
  io.out(`${results.length - failed} passed, ${failed} failed`);
}

function coverageText({ documents }: CheckedFolder, { rules, uncovered, percent }: Coverage, io: Output): void {
  const fileOf = fileByPolicy(documents);
  for (const { policy, rule, failed } of uncovered) {
    const at = `${fileOf(policy)}:${lineOf(documents, { policy, rule }) ?? 1}`;
    io.err(
      `${colourText(io, "yellow", "none")}  ${toPrintable(`${at}: ${policy}: no test reaches the rule "${rule}"`)}${failed === 0 ? "" : `; its condition could not be evaluated in ${failed}`}`,
    );
  }
  io.out(`${rules.length - uncovered.length} of ${rules.length} rules are reached (${roundDown(percent)} %)`);
}
