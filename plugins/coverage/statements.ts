/** Records coverage statements as ledger entries, and reads them. Documents contain the list of these entries. */
import {
  canonicalText,
  confirmCredential,
  type CoreHost,
  decodeEntry,
  decodeSeqCursor,
  sha256Hex,
  toActor,
  toHex,
  utf8,
} from "../../src/core.ts";
import {
  type Credential,
  type Document,
  parseRfc3339,
  type PluginScope,
  Refusal,
  toRfc3339,
} from "../../src/plugin.ts";
import { countSuccesses, STATEMENT_PREFIX } from "./audit.ts";
import { COVERAGE_ENTRY, type CoverageStatement, findStatementFault } from "./coverage-statement.ts";
import type { StatementRecord } from "./schemas.ts";

const NEWEST_PREFIX = "newest/";
const DAY = 86_400_000;
/**
 * Maximum number of statements with a gap that the metrics of a source add up. Statements with smaller gaps are
 * omitted.
 */
const MAX_GAPS = 100;

/**
 * The current statements of a source: the one whose window ends last, and the statements with a gap in the day before
 * that end. Omits a statement if a newer one compared its whole window again: with the same operations and identities,
 * and at least as many effects.
 */
interface Current {
  newest: Summary;
  gaps: Summary[];
}
type Summary = Pick<CoverageStatement, "from" | "to"> & {
  seq: number;
  /** Digest of what was compared. */
  scope: string;
  /** Number of compared effects. */
  effects: number;
  /** Number of unmatched effects and missing actions. */
  gap: number;
};
/**
 * Minimum time, in milliseconds, from the end of a window to its statement, because the clocks of processes can differ.
 */
const SETTLE_MS = 60_000;

type StatementEntry = {
  type: string;
  seq: number;
  at: string;
  data: CoverageStatement;
  by: { principal: string };
};

/**
 * Records the statement. Throws VALIDATION_FAILED unless it is consistent, accounts for every success in its window, and has a window that ended at least a minute ago.
 */
export async function recordStatement(
  host: CoreHost,
  credential: Credential,
  scope: PluginScope,
  statement: CoverageStatement,
): Promise<StatementRecord> {
  const fault = findStatementFault(statement);
  if (fault !== null) throw new Refusal("VALIDATION_FAILED", `the statement contradicts itself: ${fault}`);
  const end = parseRfc3339(statement.to) ?? Infinity;
  if (end > host.clock() - SETTLE_MS)
    throw new Refusal(
      "VALIDATION_FAILED",
      `the window must have ended at least a minute ago; it ends at ${statement.to}, and the current time is ${toRfc3339(host.clock())}`,
      { errors: [{ pointer: "/to", detail: "a time at least a minute ago" }] },
    );
  const { size } = await host.ledger.head();
  const total = await countSuccesses(host.storage, statement, size);
  if (total !== statement.actions.total)
    throw new Refusal(
      "VALIDATION_FAILED",
      `the ledger has ${total} successes in the window, and the statement accounts for ${statement.actions.total}; compare again`,
      { errors: [{ pointer: "/actions/total", detail: String(total) }] },
    );
  const { seq } = await host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, scope);
    const documents = host.documents.within(tx);
    const newest = await documents.get(`${NEWEST_PREFIX}${statement.source}`);
    const entry = tx.record({
      type: COVERAGE_ENTRY,
      v: 1,
      at: toRfc3339(tx.now),
      action_id: null,
      agent_id: null,
      data: statement,
      by: toActor(caller.key, caller.principal),
    });
    await documents.put(listKey(entry.seq), { seq: entry.seq }, null);
    const current = addStatement((newest?.value ?? null) as Current | null, summarize(statement, entry.seq));
    await documents.put(`${NEWEST_PREFIX}${statement.source}`, { ...current }, newest?.version ?? null);
    return entry;
  });
  return readStatement(host, seq);
}

/** Lists statements, newest first. */
export async function listStatements(
  host: CoreHost,
  { limit, cursor }: { limit: number; cursor?: string },
): Promise<{ statements: StatementRecord[]; last: number | null }> {
  const after = cursor === undefined ? undefined : listKey(decodeSeqCursor("coverage", cursor));
  const documents = await host.documents.list({
    prefix: STATEMENT_PREFIX,
    limit: limit + 1,
    ...(after === undefined ? {} : { after }),
  });
  const page = documents.slice(0, limit).map(seqOf);
  const statements = await Promise.all(page.map((seq) => readStatement(host, seq)));
  return { statements, last: documents.length > limit ? (page.at(-1) ?? null) : null };
}

const timeOf = (text: string): number => parseRfc3339(text) ?? 0;

function summarize(statement: CoverageStatement, seq: number): Summary {
  const { from, to, operations, actors, tolerance_seconds, effects, actions } = statement;
  const names = operations.map(({ tool, operation }) => JSON.stringify([tool, operation])).sort();
  const compared = canonicalText([names, actors === null ? null : [...actors].sort(), tolerance_seconds]);
  const gap = effects.unmatched + actions.missing;
  return { seq, from, to, scope: sha256Hex(utf8(compared)), effects: effects.total, gap };
}

function addStatement(before: Current | null, added: Summary): Current {
  const { from, to, scope, effects } = added;
  const newest = before !== null && timeOf(before.newest.to) > timeOf(to) ? before.newest : added;
  const isComparedAgain = (gap: Summary): boolean =>
    timeOf(from) <= timeOf(gap.from) && timeOf(gap.to) <= timeOf(to) && scope === gap.scope && effects >= gap.effects;
  const gaps = [...(before?.gaps ?? []), ...(added.gap > 0 ? [added] : [])].filter(
    (each) => timeOf(each.to) > timeOf(newest.to) - DAY && (each === added || !isComparedAgain(each)),
  );
  return { newest, gaps: gaps.sort((a, b) => b.gap - a.gap).slice(0, MAX_GAPS) };
}

/** Returns the current statements of each source: the newest, and those with a gap. */
export async function listCurrentStatements(
  host: CoreHost,
): Promise<{ newest: StatementRecord; gaps: StatementRecord[] }[]> {
  const documents: Document[] = [];
  for (;;) {
    const after = documents.at(-1)?.key;
    const page = await host.documents.list({
      prefix: NEWEST_PREFIX,
      limit: 100,
      ...(after === undefined ? {} : { after }),
    });
    documents.push(...page);
    if (page.length < 100) break;
  }
  const read = ({ seq }: Summary): Promise<StatementRecord> => readStatement(host, seq);
  return Promise.all(
    documents.map(async ({ value }) => {
      const { newest, gaps } = value as unknown as Current;
      return { newest: await read(newest), gaps: await Promise.all(gaps.map(read)) };
    }),
  );
}

/** Reads the statement from its ledger entry, because the ledger does not protect the list against changes. */
async function readStatement(host: CoreHost, seq: number): Promise<StatementRecord> {
  const [row] = await host.storage.entries(seq, seq + 1);
  if (row?.type !== COVERAGE_ENTRY)
    throw new Refusal("RECORD_ALTERED", `entry ${seq} is not a coverage statement; run assent audit`);
  const { at, by, data } = decodeEntry<StatementEntry>(row.bytes);
  return { ...data, seq, hash: toHex(row.leaf_hash), at, by: by.principal };
}

/**
 * Returns a key under which newer entries sort first, because documents are listed in ascending order of their keys.
 */
function listKey(seq: number): string {
  return `${STATEMENT_PREFIX}${String(Number.MAX_SAFE_INTEGER - seq).padStart(16, "0")}`;
}

function seqOf({ value }: Document): number {
  return (value as { seq: number }).seq;
}
