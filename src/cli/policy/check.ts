/** `assent policy check` prints every fault of a policy folder. */
import { ConfigError, loadConfig } from "../../config/index.ts";
import { findUnknownChannels } from "../../domain/policy/check/unknown-channels.ts";
import type { TextFault } from "../../domain/policy/parse/parse.ts";
import { measureCoverage } from "../../domain/policy/test/coverage.ts";
import { loadPolicyFolder, testPolicyFolder, type PolicyFolder } from "../../policies/folder.ts";
import { formatFault } from "../../policies/policy-store.ts";
import { explainUnloaded } from "../../policies/unloaded-files.ts";
import {
  EXIT_CODES,
  colourText,
  parseFormat,
  parseArguments,
  toPrintable,
  printJson,
  type Subcommand,
} from "../command.ts";
import { FOLDER_OPTIONS, resolvePolicyFolder, folderOptions, printFaults, untestedRules } from "./folder-argument.ts";
import { renderSarif } from "./sarif.ts";

export const check: Subcommand = {
  summary: "read every policy and test file, and print each fault",
  help: `usage: assent policy check [FOLDER] [--recursive] [--strict] [--format text|json|sarif]
                           [--environment NAME] [--config FILE]

Reads every policy and test file of FOLDER (./policies) and prints all faults and warnings as file:line:column. Warnings
name rules that can have no effect, rules that no test reaches, unknown channels, and files that look like policies and
are not loaded. "assent policy test" reports failing tests. Exits with 1 if there is a fault.

  --recursive       include subfolders
  --environment NAME
                    environment whose shared data applies (ASSENT_ENVIRONMENT). The others are checked as well
  --strict          exit with 1 if there is a warning, too
  --format FORMAT   text; json; or sarif (2.1.0) for code scanning, with paths from the working folder
  --json            the same as --format json
  --config FILE     warn of channels that policies name and this configuration does not define; default: ./assent.yaml

examples:
  assent policy check
  assent policy check deploy/policies --recursive --format sarif > policies.sarif`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      ...FOLDER_OPTIONS,
      strict: { type: "boolean" },
      json: { type: "boolean" },
      format: { type: "string" },
      config: { type: "string" },
    });
    const folder = resolvePolicyFolder("check", positionals);
    const format = parseFormat(values, ["text", "json", "sarif"]);
    const loaded = await loadPolicyFolder(folder, folderOptions(values));
    const { documents } = loaded;
    const faults = [...loaded.faults, ...findFaultsElsewhere(loaded)];
    const warnings = [
      ...loaded.warnings,
      ...(await findUntestedRules(loaded)),
      ...channelWarnings(loaded, values.config),
      ...unloadedWarnings(loaded),
    ];
    const inSubfolders = loaded.unloaded.filter(({ reason }) => reason === "subfolder").map(({ file }) => file);
    const accepted = faults.length === 0 && (values.strict !== true || warnings.length === 0);
    if (format === "json") printJson(io, { policies: documents.length, faults, warnings, unloaded: loaded.unloaded });
    else if (format === "sarif") io.out(JSON.stringify(renderSarif(folder, [...faults, ...warnings]), null, 2));
    else {
      printFaults(faults, io);
      for (const warning of warnings)
        io.err(`${colourText(io, "yellow", "warning")}  ${toPrintable(formatFault(warning))}`);
      if (inSubfolders.length > 0)
        io.err(
          `${colourText(io, "dim", "note")}  not loaded without --recursive: ${toPrintable(inSubfolders.join(", "))}`,
        );
      if (accepted) io.out(validText(documents.length));
    }
    return accepted ? EXIT_CODES.ok : EXIT_CODES.failure;
  },
};

/** Returns a warning for each file that looks like a policy but that the service does not load because of its name. */
function unloadedWarnings({ unloaded }: PolicyFolder): TextFault[] {
  return unloaded
    .filter(({ reason }) => reason !== "subfolder")
    .map((each) => ({
      kind: "unloaded-policy",
      file: each.file,
      line: null,
      column: null,
      message: explainUnloaded(each),
    }));
}

/** Returns the faults that occur only with the shared data of other environments. */
function findFaultsElsewhere(folder: PolicyFolder): TextFault[] {
  if (folder.faults.length > 0) return [];
  return folder.environments.flatMap((environment) =>
    folder
      .inEnvironment(environment)
      .faults.map((fault) => ({ ...fault, message: `in the environment "${environment}": ${fault.message}` })),
  );
}

/** Returns a warning for each rule that no test reaches. Ignores policies without tests. */
async function findUntestedRules(folder: PolicyFolder): Promise<TextFault[]> {
  if (folder.faults.length > 0 || folder.tests.length === 0) return [];
  const results = (await testPolicyFolder(folder)).results.map(({ result }) => result);
  const { rules, uncovered } = measureCoverage(
    folder.documents.map(({ document }) => document),
    results,
  );
  const tested = new Set(rules.filter(({ reached }) => reached > 0).map(({ policy }) => policy));
  return untestedRules(
    folder.documents,
    uncovered.filter(({ policy }) => tested.has(policy)),
  );
}

/**
 * Returns a warning for each channel that the configuration does not define; an empty list if there is no
 * configuration.
 */
function channelWarnings({ documents }: PolicyFolder, file: string | undefined): TextFault[] {
  let channels: string[];
  try {
    const { config, origin } = loadConfig({
      cwd: process.cwd(),
      env: process.env,
      ...(file === undefined ? {} : { file }),
    });
    if (origin === null) return [];
    channels = Object.keys(config.channels);
  } catch (error) {
    if (!(error instanceof ConfigError) || file !== undefined) throw error;
    // Return no warnings: the configuration may need variables that are set only where the service runs.
    return [];
  }
  return documents.flatMap(({ document, file: policyFile, place }) =>
    findUnknownChannels([document], channels).map(({ message }): TextFault => ({
      kind: "unknown-channel",
      file: policyFile,
      ...place,
      message,
    })),
  );
}

function validText(policies: number): string {
  return policies === 1 ? "1 policy is valid" : `${policies} policies are valid`;
}
