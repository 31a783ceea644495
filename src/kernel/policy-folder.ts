/** A folder of policies and their tests, read as a whole: for the policy-files plugin and for the command line. */
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { parsePolicies, parsePolicyTests, type PolicyTest, type TextFault } from "../domain/policy/parse.ts";
import { runPolicyTest, type TestResult } from "../domain/policy/testing.ts";
import type { PolicyDocument } from "../domain/policy/types.ts";
import type { Place } from "../domain/policy/yaml.ts";

export interface PolicyFolder {
  documents: { document: PolicyDocument; file: string; place: Place }[];
  /** `places[i]` is where case `i` stands. */
  tests: { test: PolicyTest; file: string; places: Place[] }[];
  /** Empty when everything in the folder is good. */
  faults: TextFault[];
}

export interface CheckedFolder extends PolicyFolder {
  results: { file: string; result: TestResult }[];
}

/** Reads and parses; never rejects for what is in the folder. */
export async function loadPolicyFolder(path: string, options: { recursive?: boolean } = {}): Promise<PolicyFolder> {
  const folder: PolicyFolder = { documents: [], tests: [], faults: [] };
  let files: string[];
  try {
    files = await listYaml(path, options.recursive ?? false);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    folder.faults.push({ file: path, line: null, column: null, message: missing ? "there is no such folder; make it and put policies into it, or set ASSENT_POLICIES" : `the folder cannot be read: ${(error as Error).message}` });
    return folder;
  }
  for (const file of files) {
    const name = relative(path, file);
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(file));
    } catch (error) {
      folder.faults.push({ file: name, line: null, column: null, message: error instanceof TypeError ? "the file is not UTF-8" : `the file cannot be read: ${(error as Error).message}` });
      continue;
    }
    if (/_test\.ya?ml$/.test(file)) {
      const { tests, places, faults } = parsePolicyTests(text, name);
      folder.tests.push(...tests.map((test, i) => ({ test, file: name, places: places[i] ?? [] })));
      folder.faults.push(...faults);
    } else {
      const { documents, places, faults } = parsePolicies(text, name);
      folder.documents.push(...documents.map((document, i) => ({ document, file: name, place: places[i] as Place })));
      folder.faults.push(...faults);
    }
  }
  folder.faults.push(...clashes(folder));
  if (folder.documents.length === 0 && folder.faults.length === 0) {
    folder.faults.push({ file: path, line: null, column: null, message: "the folder holds no policy: no *.yaml and no *.yml file besides tests" });
  }
  return folder;
}

/** Loads, and runs the tests beside the policies; a test that fails is a fault. */
export async function checkPolicyFolder(path: string, options: { recursive?: boolean } = {}): Promise<CheckedFolder> {
  const folder = await loadPolicyFolder(path, options);
  const results: CheckedFolder["results"] = [];
  if (folder.faults.length > 0) return { ...folder, results };
  const policies = folder.documents.map(({ document }) => document);
  const faults: TextFault[] = [];
  for (const { test, file, places } of folder.tests) {
    for (const [i, result] of runPolicyTest(policies, test).entries()) {
      results.push({ file, result });
      if (result.failure === null) continue;
      const { line = null, column = null } = places[i] ?? {};
      faults.push({ file, line, column, message: `the test "${result.name}" fails: ${result.failure}` });
    }
  }
  return { ...folder, faults, results };
}

async function listYaml(path: string, recursive: boolean): Promise<string[]> {
  const found: string[] = [];
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    // Hidden names are what editors and ConfigMap mounts leave lying about.
    if (entry.name.startsWith(".")) continue;
    const whole = join(path, entry.name);
    if (entry.isDirectory()) {
      if (recursive) found.push(...(await listYaml(whole, true)));
    } else if (/\.ya?ml$/.test(entry.name)) {
      found.push(whole);
    }
  }
  return found;
}

function clashes(folder: PolicyFolder): TextFault[] {
  const owners = new Map<string, { file: string; place: Place }>();
  const faults: TextFault[] = [];
  for (const { document, file, place } of folder.documents) {
    const owner = owners.get(document.policy);
    if (owner === undefined) owners.set(document.policy, { file, place });
    else faults.push({ file, ...place, message: `the policy "${document.policy}" is in ${owner.file}, line ${owner.place.line}, already; give each policy a name of its own` });
  }
  return faults;
}
