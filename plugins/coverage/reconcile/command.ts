/** `assent reconcile` compares a log of effects with the ledger, and records the result. */
import { writeFileSync } from "node:fs";
import {
  colourText,
  CommandError,
  createPrivilegedClient,
  EXIT_CODES,
  parseArguments,
  parseTimeWindow,
  printJson,
  toPrintable,
  toRfc3339,
  usageError,
  withServiceErrors,
  type Command,
  type Output,
} from "../../../src/command.ts";
import { findEffectSource } from "./find-source.ts";
import { clipText } from "../../../src/browser.ts";
import { foldName, matchesAnyName } from "../../../src/core.ts";
import type { EffectSource } from "../../../src/plugin.ts";
import { type CoverageStatement, hasGap, lacksEffects, MAX_LISTED_GAPS } from "../coverage-statement.ts";
import { createEffectMatcher, type Reconciliation } from "./match-effects.ts";
import { readLogFile, type LogFileFacts } from "./log-file.ts";
import { readStartedActions } from "./started-actions.ts";

const MAX_FILES = 64;

export const reconcile: Command = {
  help: `usage: assent reconcile SOURCE FILE... --from TIME --to TIME [--dry-run] [--report FILE]
       [--json] [--config FILE]

Compares the effects in log files with the actions that were started, and records the result as a coverage statement in the
ledger. SOURCE is a source in the options of a plugin such as effects-cloudtrail. The key needs the scopes coverage:write
and actions:read.

  --from, --to   the window: dates such as 2026-01-31, or RFC 3339 times. The end is exclusive
  --dry-run      compare, and record nothing
  --report FILE  also write every unmatched effect, missing effect and guess, one JSON object a line
  --json         print the statement as JSON
  --config FILE  configuration with the source; default assent.yaml

exits 0 if everything in the window is explained, 6 if effects are unmatched or missing.

examples:
  assent reconcile production *.json.gz --from 2026-01-31 --to 2026-02-01
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      from: { type: "string" },
      to: { type: "string" },
      "dry-run": { type: "boolean" },
      report: { type: "string" },
      json: { type: "boolean" },
      config: { type: "string" },
    });
    const [name, ...files] = positionals;
    if (name === undefined || files.length === 0) throw usageError("assent reconcile takes a source and its log files");
    if (files.length > MAX_FILES) throw usageError(`one run reads at most ${MAX_FILES} files; got ${files.length}`);
    const { from, to } = parseTimeWindow(values);
    const source = await findEffectSource(name, values.config);
    const service = await createPrivilegedClient();
    const { statement, result } = await withServiceErrors(() =>
      compare(source, files, { from, to }, (method, path) => service.call(method, path)),
    );
    if (values.report !== undefined) writeReport(values.report, result);
    if (values["dry-run"] !== true)
      await withServiceErrors(() =>
        service.call("POST", "/v1/coverage", statement as unknown as Record<string, unknown>),
      );
    if (values.json === true) printJson(io, statement);
    else show(io, statement, values["dry-run"] === true);
    return hasGap(statement) ? EXIT_CODES.unverified : EXIT_CODES.ok;
  },
};

/** Reads the actions and then the files, and compares them. */
async function compare(
  source: EffectSource,
  files: readonly string[],
  { from, to }: { from: number; to: number },
  call: Parameters<typeof readStartedActions>[0],
): Promise<{ statement: CoverageStatement; result: Reconciliation }> {
  const tolerance = source.tolerance_seconds * 1000;
  const actions = await readStartedActions(call, from - tolerance, to + tolerance);
  const matcher = createEffectMatcher(actions.values(), { mappings: source.effects, from, to, tolerance });
  const skipped = { no_effect: 0, other_actors: 0 };
  const read: LogFileFacts[] = [];
  for (const path of files)
    read.push(
      await readLogFile(path, source, ({ event }) => {
        if (event === null) skipped.no_effect++;
        else if (source.actors !== null && !matchesAnyName(source.actors, event.actor)) skipped.other_actors++;
        else matcher.add(event);
      }),
    );
  const result = matcher.finish();
  return { result, statement: createStatement(source, { from, to }, read, result, skipped) };
}

function createStatement(
  source: EffectSource,
  { from, to }: { from: number; to: number },
  files: CoverageStatement["files"],
  { effects, actions, unmatched, missing, skipped }: Reconciliation,
  others: { no_effect: number; other_actors: number },
): CoverageStatement {
  const operations = new Map(
    source.effects.map(({ tool, operation }) => [
      JSON.stringify([foldName(tool), foldName(operation)]),
      { tool, operation },
    ]),
  );
  return {
    source: source.name,
    format: source.format,
    from: toRfc3339(from),
    to: toRfc3339(to),
    tolerance_seconds: source.tolerance_seconds,
    operations: [...operations.values()],
    actors: source.actors === null ? null : [...source.actors],
    files,
    cannot_see: [...source.cannot_see],
    effects,
    actions,
    skipped: { ...skipped, ...others, no_effect: skipped.no_effect + others.no_effect },
    unmatched: unmatched.slice(0, MAX_LISTED_GAPS).map(({ id, at, event, actor, action_id, reason }) => ({
      id: clipText(id, 199),
      at: toRfc3339(at),
      event: clipText(event, 199),
      actor: clipText(actor, 199),
      action_id,
      reason,
    })),
    missing: missing.slice(0, MAX_LISTED_GAPS).map(({ id, at }) => ({ id, at: toRfc3339(at) })),
  };
}

function writeReport(path: string, { unmatched, missing, likely }: Reconciliation): void {
  const lines = [
    ...unmatched.map(({ at, ...rest }) => ({ result: "unmatched", at: toRfc3339(at), ...rest })),
    ...missing.map(({ id, at }) => ({ result: "missing", at: toRfc3339(at), action_id: id })),
    ...likely.map((pair) => ({ result: "likely", ...pair })),
  ];
  try {
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  } catch (error) {
    throw new CommandError(`the report cannot be written: ${(error as Error).message}`);
  }
}

const REASONS: Readonly<Record<CoverageStatement["unmatched"][number]["reason"], string>> = {
  unknown_action: "names an action that was not started",
  other_operation: "names an action of another operation",
  parameters_differ: "has other parameters than its action",
  outside_action: "happened before its action started or after it ended",
  already_matched: "names an action that already has its effect",
  erased: "names or resembles an action whose parameters were erased, so they cannot be compared",
  not_read: "names an action that started before the window; also give the log files since its start",
  no_action: "no action has these parameters at this time",
};

const NO_EFFECTS =
  "warning: the files contain no effect to compare in this window, so the result does not show that nothing bypassed Assent. Check that the files cover the window, and check the mappings and actors of the source";

function show(io: Output, statement: CoverageStatement, isDryRun: boolean): void {
  const { effects, actions, skipped, unmatched, missing, cannot_see } = statement;
  io.out(`${statement.source} from ${statement.from} to ${statement.to}`);
  io.out(`effects: ${effects.matched} matched, ${effects.unmatched} unmatched, ${effects.unknown} unknown`);
  io.out(`actions: ${actions.matched} matched, ${actions.missing} missing, ${actions.unknown} unknown`);
  for (const { id, at, event, actor, reason } of unmatched)
    io.out(colourText(io, "red", toPrintable(`unmatched ${at} ${event} by ${actor}: ${REASONS[reason]} (${id})`)));
  for (const { id, at } of missing)
    io.out(colourText(io, "red", toPrintable(`missing   ${at} no effect of the action ${id}`)));
  if (lacksEffects(statement)) io.out(colourText(io, "yellow", NO_EFFECTS));
  const listed = unmatched.length + missing.length;
  const all = effects.unmatched + actions.missing;
  if (all > listed) io.out(`and ${all - listed} more; --report lists them`);
  io.out(
    `skipped: ${skipped.outside} outside the window, ${skipped.unmapped} of other kinds, ${skipped.other_actors} of other identities, ${skipped.duplicates} duplicates, ${skipped.no_effect} without effect`,
  );
  for (const sentence of cannot_see) io.out(toPrintable(`cannot see: ${sentence}`));
  io.out(isDryRun ? "recorded nothing" : "recorded as a coverage statement");
}
