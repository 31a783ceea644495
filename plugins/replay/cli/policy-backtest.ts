import { readFileSync } from "node:fs";
import { createAssent } from "../../../clients/typescript/index.ts";
import {
  CommandError,
  EXIT_CODES,
  findAvailableKey,
  type Output,
  parseArguments,
  parseFormat,
  parsePast,
  printJson,
  readPolicyFolder,
  readStore,
  REQUEST_TIMEOUT,
  serviceUrl,
  toRfc3339,
  usageError,
  withServiceErrors,
  withStatusLine,
} from "../../../src/command.ts";
import { buildPolicySet, compilePolicySet, PolicyCompileError, type PolicyDocument } from "../../../src/core.ts";
import type { StorageReader } from "../../../src/storage/index.ts";
import { backtest, type DatedReport, readAllDecisions, renderBacktestMarkdown } from "../../policies/api.ts";
import { renderBacktestText } from "./backtest-text.ts";

type PolicySetMember = Parameters<typeof buildPolicySet>[0][number];

const DAY = 86_400_000;

export async function policyBacktest(args: string[], io: Output): Promise<number> {
  const { values, positionals } = parseArguments(args, {
    against: { type: "string" },
    since: { type: "string" },
    until: { type: "string" },
    limit: { type: "string" },
    examples: { type: "string" },
    format: { type: "string" },
    json: { type: "boolean" },
    enforce: { type: "boolean" },
    "fail-on-flips": { type: "boolean" },
    recursive: { type: "boolean" },
    environment: { type: "string" },
    config: { type: "string" },
  });
  const format = parseFormat(values, ["text", "json", "markdown"]);
  const until = timeOf("--until", values.until) ?? Date.now() + 1;
  const since = timeOf("--since", values.since) ?? until - 7 * DAY;
  if (since >= until) throw usageError("--since must be before --until");
  const limit = numberOf("--limit", values.limit, 10_000, 100_000_000);
  const examples = numberOf("--examples", values.examples, 3, 20);

  const folder = await readPolicyFolder("backtest", positionals, values, "nothing was evaluated", io);
  const range = { since, until, limit, examples, enforce: values.enforce === true };
  const against = values.against ?? serviceUrl();
  const result =
    against === "store"
      ? await backtestStore(
          folder.documents.map(({ document }) => document),
          range,
          values.config,
          io,
        )
      : await backtestService(
          against,
          folder.documents.map(({ document, file }) => ({ document, path: `${folder.path}/${file}` })),
          range,
          io,
        );
  if (format === "json") printJson(io, result);
  else io.out(format === "markdown" ? renderBacktestMarkdown(result) : renderBacktestText(result));
  return values["fail-on-flips"] === true && result.flipped > 0 ? EXIT_CODES.failure : EXIT_CODES.ok;
}

interface Span {
  since: number;
  until: number;
  limit: number;
  examples: number;
  /** Whether candidates in shadow mode are evaluated as if they were enforced. */
  enforce: boolean;
}

async function backtestStore(
  documents: PolicyDocument[],
  span: Span,
  file: string | undefined,
  io: Output,
): Promise<DatedReport> {
  return readStore(file, async (storage) => {
    const candidates = documents.map((document) => {
      const definition = span.enforce ? { ...document, mode: "enforce" as const } : document;
      return { policy: definition.policy, version: 1, definition };
    });
    const apiPolicies = await readApiPolicies(storage, new Set(candidates.map(({ policy }) => policy)));
    let compiled;
    try {
      compiled = compilePolicySet(buildPolicySet([...apiPolicies, ...candidates]));
    } catch (error) {
      throw error instanceof PolicyCompileError ? new CommandError(error.message) : error;
    }
    const range = { ...span, visibility: { all: true }, budgetMs: Infinity } as const;
    const report = await withStatusLine(io, (say) =>
      backtest(readAllDecisions(storage), compiled, {
        ...range,
        progress: ({ evaluated }) => say(progressText(evaluated)),
      }),
    );
    return { since: toRfc3339(range.since), until: toRfc3339(range.until), ...report };
  });
}

/** Returns the active policies that were created over the API, except those that the folder replaces. */
async function readApiPolicies(
  storage: Pick<StorageReader, "policies" | "policyVersion">,
  replaced: ReadonlySet<string>,
): Promise<PolicySetMember[]> {
  const members: PolicySetMember[] = [];
  for (const { id, name, managed_by, active_version } of await storage.policies()) {
    if (managed_by !== null || active_version === null || replaced.has(name)) continue;
    const row = await storage.policyVersion(id, active_version);
    if (row === null)
      throw new CommandError(`version ${active_version} of the policy "${name}" is not in the store; run assent audit`);
    members.push({ policy: name, version: active_version, definition: JSON.parse(row.definition) as PolicyDocument });
  }
  return members;
}

/** Sends as many requests as the limits of the service require, and adds up their reports. */
async function backtestService(
  url: string,
  policies: readonly { document: PolicyDocument; path: string }[],
  { since, until, limit, examples, enforce }: Span,
  io: Output,
): Promise<DatedReport> {
  const apiKey = findAvailableKey(url);
  if (apiKey === null) throw usageError("set ASSENT_API_KEY to a key with the scope replay:run, or log in with one");
  const yaml = renderPolicies(policies);
  const client = createAssent({ url, apiKey, timeout: REQUEST_TIMEOUT });
  const span = { since: toRfc3339(since), until: toRfc3339(until) };
  const total: DatedReport = {
    ...span,
    evaluated: 0,
    flipped: 0,
    otherwise: 0,
    erased: 0,
    unrecorded: 0,
    altered: 0,
    flips: [],
    unlisted: 0,
    counted: [],
    next: null,
  };
  return withStatusLine(io, async (say) => {
    let before: number | null = null;
    do {
      const part: DatedReport = await withServiceErrors(() =>
        client.call<DatedReport>("POST", "/v1/replay", {
          ...span,
          yaml,
          replace_sources: true,
          enforce,
          examples,
          limit: Math.min(1_000_000, limit - total.evaluated),
          ...(before === null ? {} : { before }),
        }),
      );
      add(total, part, examples);
      before = part.next;
      say(progressText(total.evaluated));
    } while (before !== null && total.evaluated < limit);
    return { ...total, next: before };
  });
}

/** Returns the policies as one YAML text. Includes their shared data, which the service does not have. */
function renderPolicies(policies: readonly { document: PolicyDocument; path: string }[]): string {
  const texts = policies.some(({ document }) => document.data !== undefined)
    ? policies.map(({ document }) => JSON.stringify(document))
    : [...new Set(policies.map(({ path }) => path))].map((path) => readFileSync(path, "utf8"));
  return texts.join("\n---\n");
}

function progressText(decisions: number): string {
  return `${decisions} decisions evaluated`;
}

function add(total: DatedReport, part: DatedReport, examples: number): void {
  for (const name of ["evaluated", "flipped", "otherwise", "erased", "unrecorded", "altered", "unlisted"] as const)
    total[name] += part[name];
  for (const { policy, limit, decisions } of part.counted) {
    const sameLimit = total.counted.find((candidate) => candidate.policy === policy && candidate.limit === limit);
    if (sameLimit === undefined) total.counted.push({ policy, limit, decisions });
    else sameLimit.decisions += decisions;
  }
  for (const flip of part.flips) {
    const sameFlip = total.flips.find(
      ({ from, to }) => JSON.stringify([from, to]) === JSON.stringify([flip.from, flip.to]),
    );
    if (sameFlip === undefined) total.flips.push(flip);
    else {
      sameFlip.count += flip.count;
      sameFlip.examples.push(...flip.examples.slice(0, examples - sameFlip.examples.length));
    }
  }
  total.flips.sort((a, b) => b.count - a.count);
}

function timeOf(flag: string, text: string | undefined): number | null {
  return text === undefined ? null : parsePast(flag, text);
}

function numberOf(flag: string, text: string | undefined, fallback: number, max: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1 || value > max)
    throw usageError(`${flag} must be a number from 1 to ${max}; got "${text}"`);
  return value;
}
