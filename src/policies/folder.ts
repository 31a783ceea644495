/** Reads a folder of policies and their tests, for the policy-files plugin and the command line. */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { UnloadedFile } from "../contract/policy-source.ts";
import { decodeUtf8 } from "../domain/json.ts";
import {
  buildPolicySet,
  compilePolicySet,
  explainCompileFault,
  PolicyCompileError,
} from "../domain/policy/compile/compile.ts";
import {
  parsePolicies,
  parsePolicyTests,
  parseSharedData,
  type PolicyTest,
  type RulePosition,
  type TextFault,
} from "../domain/policy/parse/parse.ts";
import {
  listEnvironments,
  selectEnvironment,
  type SharedData,
  type SharedDataFile,
} from "../domain/policy/parse/shared-data.ts";
import { countTestDecisions } from "../domain/policy/test/run-tests.ts";
import { failedTest, type TestResult } from "../domain/policy/test/test-result.ts";
import type { PolicyDocument } from "../domain/policy/policy-types.ts";
import type { SourcePosition } from "../domain/yaml.ts";
import { runPolicyTestWithYields } from "./run-test-with-yields.ts";
import { findUnloadedFiles, listUnloaded } from "./unloaded-files.ts";
import { createYieldIfSlow, type YieldIfSlow } from "./yield-if-slow.ts";

/** Maximum number of decisions of all tests of a folder, because a service runs them on its main thread. */
const MAX_TEST_DECISIONS = 10_000;

export interface PolicyFolder {
  /** The policies. `rulePlaces` maps the names of rules and limits to their positions. */
  documents: {
    document: PolicyDocument;
    file: string;
    place: SourcePosition;
    rulePlaces: ReadonlyMap<string, RulePosition>;
  }[];
  /** The tests. `locate` returns the position of a JSON pointer in the test. */
  tests: { test: PolicyTest; file: string; locate: (pointer: string) => SourcePosition }[];
  /** Faults; empty if all files are valid. */
  faults: TextFault[];
  /** Warnings about rules that cannot have an effect. */
  warnings: TextFault[];
  /** Files that look like policies and are not loaded. */
  unloaded: readonly UnloadedFile[];
  /** Names of the environments for which the shared data defines separate values, sorted. */
  environments: readonly string[];
  /** Returns the folder as parsed with the shared data of a different environment. */
  inEnvironment(name: string): PolicyFolder;
}

export interface CheckedFolder extends PolicyFolder {
  results: { file: string; result: TestResult }[];
}

/** A file of a folder, with its path relative to the folder. */
export interface PolicyFile {
  name: string;
  content: Uint8Array;
}

/** Reads and parses a folder. Reports invalid files and a missing folder in `faults` instead of rejecting. */
export async function loadPolicyFolder(
  path: string,
  options: Pick<FolderOptions, "recursive" | "environment"> = {},
): Promise<PolicyFolder> {
  const unloaded = await findUnloadedFiles(path, options.recursive === true);
  let names: string[];
  try {
    names = await listPolicyFiles(path, options);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const fault = folderFault(
      path,
      missing
        ? `the folder does not exist; create it and put policies into it, or set ASSENT_POLICIES${listUnloaded(unloaded)}`
        : `the folder cannot be read: ${(error as Error).message}`,
    );
    return { ...parsePolicyFolder(path, [], { unloaded }), faults: [fault] };
  }
  const files: PolicyFile[] = [];
  const faults: TextFault[] = [];
  for (const name of names) {
    try {
      files.push({ name, content: await readFile(join(path, name)) });
    } catch (error) {
      faults.push({
        kind: "unreadable-file",
        file: name,
        line: null,
        column: null,
        message: `the file cannot be read: ${(error as Error).message}`,
      });
    }
  }
  return parsePolicyFolder(path, files, { unread: faults, unloaded, environment: options.environment ?? null });
}

/**
 * Parses the files of a folder.
 * @param options `unread` contains the faults of files that could not be read; `unloaded` contains the files that look
 * like policies and are not among `files`; `environment` selects the values of shared data
 * @example
 * const { documents, tests, faults } = parsePolicyFolder("policies", [{ name: "refunds.yaml", content: bytes }]);
 */
export function parsePolicyFolder(
  path: string,
  files: readonly PolicyFile[],
  {
    unread = [],
    unloaded = [],
    environment = null,
  }: { unread?: readonly TextFault[]; unloaded?: readonly UnloadedFile[]; environment?: string | null } = {},
): PolicyFolder {
  const shared = parseSharedFiles(files);
  const environments = listEnvironments(shared.data);
  const others = new Map<string, PolicyFolder>();
  const folder: PolicyFolder = {
    documents: [],
    tests: [],
    faults: [...unread, ...shared.faults],
    warnings: [],
    unloaded,
    environments,
    inEnvironment(name) {
      const other = others.get(name) ?? parsePolicyFolder(path, files, { unread, unloaded, environment: name });
      others.set(name, other);
      return other;
    },
  };
  if (environment !== null && environments.length > 0 && !environments.includes(environment))
    folder.faults.push(folderFault(path, unknownEnvironment(environment, environments)));
  const data = selectEnvironment(shared.data, environment);
  // If the shared data has faults, skip policies and tests. Otherwise every policy that references the data would
  // report a follow-on fault.
  const policyFiles = folder.faults.length > unread.length ? [] : files.filter(({ name }) => !isDataFile(name));
  for (const { name, content } of policyFiles) {
    const text = decodeUtf8(content);
    if (text === null) folder.faults.push(notUtf8(name));
    else if (isTestFile(name)) {
      const { tests, locators, faults } = parsePolicyTests(text, name);
      folder.tests.push(...tests.map((test, i) => ({ test, file: name, locate: locators[i] as Locate })));
      folder.faults.push(...faults);
    } else {
      const { documents, places, rulePlaces, faults, warnings } = parsePolicies(text, name, data);
      folder.warnings.push(...warnings);
      folder.documents.push(
        ...documents.map((document, i) => ({
          document,
          file: name,
          place: places[i] as SourcePosition,
          rulePlaces: rulePlaces[i] ?? new Map(),
        })),
      );
      folder.faults.push(...faults);
    }
  }
  folder.faults.push(...findRepeatedNames(folder));
  if (folder.faults.length > 0) return folder;
  if (folder.documents.length === 0)
    folder.faults.push(
      folderFault(
        path,
        `the folder contains no policy: there is no *.yaml or *.yml file except tests and data${listUnloaded(unloaded)}`,
      ),
    );
  else folder.faults.push(...findSetFaults(folder));
  return folder;
}

/**
 * Reads the shared data in a folder, with each file's default values (`values`, not those of an environment). Ignores
 * files that cannot be read or are invalid. If two files have the same name, uses the last file.
 */
export async function loadSharedData(path: string, names: readonly string[]): Promise<SharedData> {
  const reads = names.filter(isDataFile).map(async (name): Promise<PolicyFile[]> => {
    try {
      return [{ name, content: await readFile(join(path, name)) }];
    } catch {
      return [];
    }
  });
  return selectEnvironment(parseSharedFiles((await Promise.all(reads)).flat()).data, null);
}

/** Parses the files of shared data. Two files must not have the same name. */
function parseSharedFiles(files: readonly PolicyFile[]): { data: SharedDataFile[]; faults: TextFault[] } {
  const data: SharedDataFile[] = [];
  const faults: TextFault[] = [];
  const owners = new Map<string, string>();
  for (const { name, content } of files) {
    if (!isDataFile(name)) continue;
    const text = decodeUtf8(content);
    if (text === null) {
      faults.push(notUtf8(name));
      continue;
    }
    const parsed = parseSharedData(text, name);
    faults.push(...parsed.faults);
    for (const [i, file] of parsed.data.entries()) {
      const owner = owners.get(file.data);
      if (owner !== undefined)
        faults.push({
          kind: "repeated-name",
          file: name,
          ...(parsed.places[i] as SourcePosition),
          message: `the data "${file.data}" is in ${owner} already; give each its own name`,
        });
      owners.set(file.data, name);
      data.push(file);
    }
  }
  return { data, faults };
}

function unknownEnvironment(environment: string, knownEnvironments: readonly string[]): string {
  return `the environment "${environment}" is in no file of shared data; they have ${knownEnvironments.join(", ")}`;
}

function notUtf8(file: string): TextFault {
  return { kind: "unreadable-file", file, line: null, column: null, message: "the file is not UTF-8" };
}

export function isDataFile(name: string): boolean {
  return /_data\.ya?ml$/.test(name);
}

export function isTestFile(name: string): boolean {
  return /_test\.ya?ml$/.test(name);
}

function folderFault(path: string, message: string): TextFault {
  return { file: path, line: null, column: null, message };
}

type Locate = PolicyFolder["tests"][number]["locate"];

interface FolderOptions {
  recursive?: boolean;
  /** Environment that selects the values of shared data; null for no environment. */
  environment?: string | null;
  /** Called after each test, which is one document of a test file. */
  progress?(done: number, tests: number): void;
}

/**
 * Loads a folder and runs its policy tests. A failing test is a fault.
 * @example
 * const { documents, faults } = await checkPolicyFolder("./policies", { recursive: true });
 */
export async function checkPolicyFolder(path: string, options: FolderOptions = {}): Promise<CheckedFolder> {
  return testPolicyFolder(await loadPolicyFolder(path, options), options);
}

/**
 * Runs the policy tests of a parsed folder, without blocking the event loop. A failing test is a fault.
 * @example
 * const checked = await testPolicyFolder(parsePolicyFolder("policies", files));
 * const failed = checked.results.filter(({ result }) => result.failure !== null);
 */
export async function testPolicyFolder(
  folder: PolicyFolder,
  options: Pick<FolderOptions, "progress"> = {},
): Promise<CheckedFolder> {
  const results: CheckedFolder["results"] = [];
  if (folder.faults.length > 0) return { ...folder, results };
  const excess = findTooManyDecisions(folder);
  if (excess !== null) return { ...folder, faults: [excess], results };
  const faults: TextFault[] = [];
  const yieldIfSlow = createYieldIfSlow();
  for (const [done, { test, file, locate }] of folder.tests.entries()) {
    for (const result of await runTest(folder, test, yieldIfSlow)) {
      results.push({ file, result });
      if (result.failure === null) continue;
      faults.push({
        kind: "failing-test",
        file,
        ...locate(result.pointer),
        message: `the test "${result.name}" fails: ${result.failure}`,
      });
    }
    options.progress?.(done + 1, folder.tests.length);
  }
  return { ...folder, faults, results };
}

/** Returns a fault at the first case or scenario beyond the limit of decisions; null if all tests are within it. */
function findTooManyDecisions({ tests }: PolicyFolder): TextFault | null {
  let total = 0;
  for (const { test, file, locate } of tests)
    for (const { pointer, decisions } of countTestDecisions(test)) {
      total += decisions;
      if (total > MAX_TEST_DECISIONS)
        return {
          kind: "too-many-tests",
          file,
          ...locate(pointer),
          message: `the tests of a folder make at most ${MAX_TEST_DECISIONS} decisions, one for each case and each step of a scenario; those up to here make ${total}`,
        };
    }
  return null;
}

/**
 * Runs a test with the shared data of its environment. The test fails if the policies of the environment have faults.
 */
async function runTest(folder: PolicyFolder, test: PolicyTest, yieldIfSlow: YieldIfSlow): Promise<TestResult[]> {
  const { documents, faults } = test.environment === undefined ? folder : folder.inEnvironment(test.environment);
  const [fault] =
    test.environment !== undefined && folder.environments.length === 0
      ? [{ message: `no file of shared data has the environment "${test.environment}"` }]
      : faults;
  if (fault !== undefined) return [failedTest(`environment ${test.environment ?? ""}`, "/environment", fault.message)];
  return runPolicyTestWithYields(
    documents.map(({ document }) => document),
    test,
    yieldIfSlow,
  );
}

/**
 * Returns the relative paths of the YAML files in the folder: policies, tests and shared data. Sorts each folder by
 * name, and follows links. Rejects if the folder cannot be read. With `recursive`, also rejects for a link to a parent
 * folder, and for a broken link whose name is not that of a YAML file.
 */
export async function listPolicyFiles(
  path: string,
  { recursive = false }: { recursive?: boolean } = {},
  parents: readonly string[] = [],
): Promise<string[]> {
  const names: string[] = [];
  const realParents = recursive ? [...parents, await realpath(path)] : parents;
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    // Skip hidden files, which editors and ConfigMap mounts create.
    if (entry.name.startsWith(".")) continue;
    const isNamed = /\.ya?ml$/.test(entry.name);
    const isLink = entry.isSymbolicLink();
    if (
      entry.isDirectory() ||
      (recursive && isLink && (await leadsToFolder(join(path, entry.name), isNamed, realParents)))
    ) {
      if (!recursive) continue;
      const nested = await listPolicyFiles(join(path, entry.name), { recursive }, realParents);
      names.push(...nested.map((name) => join(entry.name, name)));
    } else if (isNamed) {
      names.push(entry.name);
    }
  }
  return names;
}

/**
 * Resolves to true if a link leads to a folder. Throws for a broken link and for a link to a parent folder.
 * @param isFile whether to treat a broken link as a file, so that reading it reports the error
 * @param parents the real paths of the parent folders
 */
async function leadsToFolder(link: string, isFile: boolean, parents: readonly string[]): Promise<boolean> {
  let target: string;
  try {
    target = await realpath(link);
  } catch (error) {
    if (isFile) return false;
    throw new Error(`the link "${link}" is broken: ${(error as Error).message}`, { cause: error });
  }
  if (!(await stat(target)).isDirectory()) return false;
  if (parents.includes(target)) throw new Error(`the link "${link}" points to a folder that contains it`);
  return true;
}

/** Returns a fault for each limit on the size of a policy set that the policies exceed in combination. */
function findSetFaults({ documents }: PolicyFolder): TextFault[] {
  try {
    compilePolicySet(
      buildPolicySet(documents.map(({ document }) => ({ policy: document.policy, version: 1, definition: document }))),
      () => null,
    );
    return [];
  } catch (error) {
    if (!(error instanceof PolicyCompileError)) throw error;
    return error.faults.map((fault) => {
      const { file, place } = documents.find(
        ({ document }) => document.policy === fault.policy,
      ) as PolicyFolder["documents"][number];
      return { kind: "set-too-large", file, ...place, message: `the ${explainCompileFault(fault)}` };
    });
  }
}

function findRepeatedNames(folder: PolicyFolder): TextFault[] {
  const owners = new Map<string, { file: string; place: SourcePosition }>();
  const faults: TextFault[] = [];
  for (const { document, file, place } of folder.documents) {
    const owner = owners.get(document.policy);
    if (owner === undefined) owners.set(document.policy, { file, place });
    else
      faults.push({
        kind: "repeated-name",
        file,
        ...place,
        message: `the policy "${document.policy}" is in ${owner.file}, line ${owner.place.line}, already; give each policy its own name`,
      });
  }
  return faults;
}
