/**
 * Renders test results as JUnit XML for CI systems, with one suite per file and one case per test case. JUnit XML has
 * no standard. The output is valid under the strictest schema in use, Jenkins' junit-10.xsd, so `testsuites` has no
 * `skipped`.
 */
import { join } from "node:path";
import type { Coverage } from "../../domain/policy/test/coverage.ts";
import type { CheckedFolder } from "../../policies/folder.ts";
import { fileByPolicy, faultPath } from "./folder-argument.ts";

interface Case {
  name: string;
  failure: string | null;
}

/**
 * @param short whether the coverage is below the minimum. If so, each rule that no test reaches becomes a failure in
 * the suite "coverage"
 */
export function renderJunit(folder: string, checked: CheckedFolder, coverage: Coverage | null, short: boolean): string {
  const suites = new Map<string, Case[]>();
  const add = (suite: string, one: Case): void => {
    const cases = suites.get(suite);
    if (cases === undefined) suites.set(suite, [one]);
    else cases.push(one);
  };
  for (const { file, result } of checked.results)
    add(join(folder, file), { name: result.name, failure: result.failure });
  if (checked.results.length === 0) {
    for (const fault of checked.faults)
      add(faultPath(folder, fault), {
        name: fault.line === null ? "the file" : `line ${fault.line}, column ${fault.column ?? 1}`,
        failure: fault.message,
      });
  }
  if (short) {
    const fileOf = fileByPolicy(checked.documents);
    for (const { policy, rule } of coverage?.uncovered ?? [])
      add("coverage", {
        name: `${join(folder, fileOf(policy))}: ${policy}: ${rule}`,
        failure: "no test reaches the rule",
      });
  }
  const all = [...suites.values()].flat();
  const lines = [...suites].flatMap(([name, cases]) => [
    `  <testsuite name="${xml(name)}" ${counts(cases)} skipped="0" time="0">`,
    ...cases.map((one) => {
      const head = `    <testcase classname="${xml(name)}" name="${xml(one.name)}" time="0"`;
      return one.failure === null ? `${head}/>` : `${head}><failure message="${xml(one.failure)}"/></testcase>`;
    }),
    "  </testsuite>",
  ]);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="assent policy test" ${counts(all)} time="0">`,
    ...lines,
    "</testsuites>",
  ].join("\n");
}

function counts(cases: readonly Case[]): string {
  return `tests="${cases.length}" failures="${cases.filter(({ failure }) => failure !== null).length}" errors="0"`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\n": "&#10;",
  "\t": "&#9;",
  "\r": "&#13;",
};

/** Escapes text for an XML attribute. Replaces characters that XML 1.0 does not allow with U+FFFD. */
function xml(text: string): string {
  return (
    text
      // oxlint-disable-next-line no-control-regex -- XML 1.0 cannot represent these characters
      .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
      .replaceAll(/[&<>"\n\t\r]/g, (char) => ENTITIES[char] as string)
  );
}
