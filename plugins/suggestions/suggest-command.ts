import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  assertValidFolder,
  CommandError,
  createPrivilegedClient,
  EXIT_CODES,
  type Output,
  parseArguments,
  parsePast,
  printJson,
  toPrintable,
  toRfc3339,
  usageError,
  withServiceErrors,
} from "../../src/command.ts";
import { ProgramError, runProgram } from "../../src/core.ts";
import type { SuggestedPolicy, SuggestionReport } from "./mining/report.ts";

type Answer = SuggestionReport & { since: string };

export async function policySuggest(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    since: { type: "string" },
    "min-approvals": { type: "string" },
    "min-people": { type: "string" },
    "min-days": { type: "string" },
    json: { type: "boolean" },
    create: { type: "boolean" },
    write: { type: "string" },
    branch: { type: "string" },
  });
  const targets = [values.create, values.write, values.branch].filter((target) => target !== undefined);
  if (targets.length > 1) throw usageError("--create, --write and --branch exclude each other");
  if (values.create === true && positionals.length === 0) throw usageError("--create takes the names of suggestions");
  if (targets.length === 0 && positionals.length > 0) throw usageError("names need --create, --write or --branch");
  const body = {
    ...(values.since === undefined ? {} : { since: toRfc3339(parsePast("--since", values.since)) }),
    ...numberOf("min_approvals", values["min-approvals"]),
    ...numberOf("min_people", values["min-people"]),
    ...numberOf("min_days", values["min-days"]),
  };
  const service = await createPrivilegedClient();
  const answer = await withServiceErrors(() => service.call<Answer>("POST", "/v1/policies/suggest", body));
  const chosen = choose(answer.suggestions, positionals);
  if (values.create === true) {
    const yaml = chosen.map((suggestion) => suggestion.yaml).join("---\n");
    await withServiceErrors(() => service.call("POST", "/v1/policies/import-yaml", { yaml }));
    for (const { policy } of chosen) io.err(`stored ${policy}: activate it, first in shadow mode`);
  }
  if (values.branch !== undefined) await commitBranch(values.branch, chosen, io);
  if (values.write !== undefined) await writeFiles(values.write, chosen, io);
  if (values.json === true) printJson(io, answer);
  else io.out(renderText({ ...answer, suggestions: chosen }));
  return EXIT_CODES.ok;
}

function numberOf(name: string, flagText: string | undefined): Record<string, number> {
  if (flagText === undefined) return {};
  if (!/^[0-9]{1,6}$/.test(flagText))
    throw usageError(`--${name.replace("_", "-")} must be a number; got "${flagText}"`);
  return { [name]: Number(flagText) };
}

/** Returns the suggestions with these names; all suggestions if no names are given. */
function choose(suggestions: readonly SuggestedPolicy[], names: readonly string[]): SuggestedPolicy[] {
  const unknown = names.find((name) => !suggestions.some(({ policy }) => policy === name));
  if (unknown !== undefined) throw new CommandError(`the service does not suggest "${unknown}" now`);
  return suggestions.filter(({ policy }) => names.length === 0 || names.includes(policy));
}

/** Writes the policies and tests, and checks the folder that contains them. Does not overwrite existing files. */
async function writeFiles(folder: string, suggestions: readonly SuggestedPolicy[], io: Output): Promise<string[]> {
  const files = suggestions.flatMap(({ policy, yaml, tests }) => [
    { name: `${policy}.yaml`, text: yaml },
    { name: `${policy}_test.yaml`, text: tests },
  ]);
  const existing = files.find(({ name }) => existsSync(join(folder, name)));
  if (existing !== undefined) throw new CommandError(`${join(folder, existing.name)} exists; nothing was written`);
  for (const { name, text } of files) writeFileSync(join(folder, name), text, { flag: "wx" });
  await assertValidFolder(folder, "the files were written", io);
  for (const { name } of files) io.err(`wrote ${join(folder, name)}`);
  return files.map(({ name }) => name);
}

/**
 * Commits the files on a new branch, and leaves that branch checked out. Does not commit other changes in the working
 * tree.
 */
async function commitBranch(folder: string, suggestions: readonly SuggestedPolicy[], io: Output): Promise<void> {
  const [first] = suggestions;
  if (first === undefined) throw new CommandError("there is nothing to suggest, so no branch was created");
  const branch = `assent/${first.policy}`;
  await git(folder, ["switch", "--quiet", "--create", branch]);
  const files = await writeFiles(folder, suggestions, io);
  await git(folder, ["add", "--", ...files]);
  await git(folder, ["commit", "--quiet", "-m", "Suggest policies from what people approved", "--", ...files]);
  io.err(`committed ${files.length} files on the branch ${branch}`);
}

async function git(folder: string, args: string[]): Promise<void> {
  const { code, stderr } = await runProgram("git", ["-C", folder, ...args], {
    env: process.env,
    timeoutMs: 60_000,
    maxOutput: 1024 * 1024,
    // A program that signs commits may ask for a passphrase.
    sharesGroup: true,
  }).catch((error: unknown) => {
    if (error instanceof ProgramError) return { code: null, stderr: error.message };
    throw error;
  });
  if (code !== 0) throw new CommandError(`git ${args[0]} failed in ${folder}: ${toPrintable(stderr.trim())}`);
}

function renderText({ suggestions, read, groups, since, truncated }: Answer): string {
  const head = `${suggestions.length} suggestions from ${read} decisions since ${since}, in ${groups} groups of approvals${truncated ? " (older decisions were not read)" : ""}`;
  return [head, ...suggestions.map(renderSuggestion)].join("\n\n");
}

function renderSuggestion({ yaml, evidence }: SuggestedPolicy): string {
  const { approvals, weak, people, agents, days, median_vote_ms, outcomes, rejections, rejection_bound } = evidence;
  const { nearest_rejections, newly_allows, open_members, backtest } = evidence;
  const percent = (rejection_bound.upper * 100).toFixed(1);
  return [
    yaml.trimEnd(),
    `  covers ${approvals} approvals (${weak} weak) by ${people} people for ${agents} agents on ${days} days; a vote took ${Math.round(median_vote_ms / 1000)} s (median)`,
    `  they ended: ${outcomes.succeeded} succeeded, ${outcomes.failed} failed, ${outcomes.unknown} unknown, ${outcomes.not_run} did not run`,
    `  ${rejections} rejections with this tool and operation; ${rejection_bound.trials} approvals without one support a rejection rate of at most ${percent} % (95 %)`,
    ...nearest_rejections.map(
      ({ action_id, failed }) => `  nearest rejection ${action_id} is not covered: ${toPrintable(failed.join(", "))}`,
    ),
    `  of ${backtest.evaluated} decisions it would change ${backtest.flipped}; besides these approvals it would allow ${newly_allows.unanswered} unanswered and ${newly_allows.approved} other approved requests`,
    ...(open_members.length === 0
      ? []
      : [`  accepts values that no one approved in: ${open_members.map(toPrintable).join(", ")}`]),
  ].join("\n");
}
