/** Inspects the output of a running action, and records the verdict and the labels of the session. */
import {
  type Actor,
  canonicalBytes,
  canSee,
  commitDigest,
  type CoreHost,
  decodeEntry,
  effectiveRequest,
  effectiveRequestHash,
  encodeRequest,
  type JsonObject,
  type JsonValue,
  type LedgerTransaction,
  type PluginEntry,
  PreparationRequired,
  type Reaction,
  type RecordedFacts,
  type ResultEffect,
  type SessionFact,
  sha256Hex,
  toActor,
  withoutDelegations,
} from "../../src/core.ts";
import { type Credential, errorKind, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow } from "../../src/storage/index.ts";
import { assertNotErased, recordAlteredError, verifyAgainstLedger } from "../actions/api.ts";
import { INSPECTION, type InspectionData, LABELS, type LabelsData } from "./entry.ts";
import {
  type AppliedRule,
  findResultRules,
  judge,
  type Judgement,
  keepOutput,
  labelsOf,
  listKeptPaths,
  sizeOf,
} from "./judge.ts";
import { findLabelEnd } from "./state.ts";

/** How long a label lasts after it was added. */
const LABEL_MS = 30 * 86_400_000;
/** A label that lasts at least this long is not added again. */
const RENEW_MS = LABEL_MS - 86_400_000;

/** Maximum number of outputs of one action, because each adds an entry. */
const MAX_INSPECTIONS = 20;

export const ERRORS = {
  tooMany: errorKind("TOO_MANY_INSPECTIONS", 409, "Too many inspected outputs of one action"),
};

const STRICTNESS: Readonly<Record<ResultEffect, number>> = { allow: 0, redact: 1, withhold: 2 };

export interface SentOutput {
  output: JsonValue;
  mediaType: string | null;
}

export interface Inspection {
  verdict: ResultEffect;
  output: JsonValue | undefined;
  labels: readonly string[];
  rule: { policy: string; rule: string } | null;
  reason: string | null;
  /** Members of the passed-on output that histories keep; absent if there are none. */
  kept?: JsonObject;
}

interface Prepared {
  digest: string | null;
  hash: string;
  judgement: Judgement;
}

/** Maximum size in bytes of the members that histories keep from one output. */
const MAX_KEPT = 4096;

/**
 * Inspects an output before the agent gets it. Only the key that started the action may send it, and only before the
 * result is reported. Records nothing if no rule applies.
 */
export async function inspectOutput(
  host: CoreHost,
  credential: Credential,
  id: string,
  sent: SentOutput,
): Promise<Inspection> {
  let prepared: Prepared | null = null;
  // The rules are applied without the lock of the ledger, because patterns take time.
  const prepare = async (): Promise<void> => {
    const [row, policies] = [await host.storage.action(id), await host.policies.current()];
    const request = row === null ? null : effectiveRequest(row);
    if (row === null || request === null) return;
    const subject = { ...sent, request, now: host.clock() };
    const rules = findResultRules(policies.compiled, row);
    prepared = { digest: policies.digest, hash: encodeRequest(request).hash, judgement: judge(rules, subject) };
  };
  let paths: (readonly string[])[] = [];
  const inspection = await host.ledger.transact<Inspection>(
    async (tx) => {
      const caller = withoutDelegations(await tx.confirm(credential));
      const row = await findRunning(tx, caller, id);
      const { first } = await verifyAgainstLedger(host, tx, row);
      const { compiled, digest } = tx.activePolicies;
      const rules = findResultRules(compiled, row);
      paths = listKeptPaths(compiled, row);
      if (rules.length === 0) return { verdict: "allow", output: sent.output, labels: [], rule: null, reason: null };
      const ready = prepared;
      if (ready === null || ready.digest !== digest || ready.hash !== effectiveRequestHash(row)) {
        if (ready !== null && ready.digest === digest) throw recordAlteredError(row, ["request"]);
        throw new PreparationRequired("the inspection of an output", prepare);
      }
      return recordInspection(tx, row, { sent, first: first.facts, digest, caller }, ready.judgement);
    },
    () => ({ history: id }),
  );
  const kept = keepOutput(inspection.output, paths);
  const size = canonicalBytes(kept).length;
  return Object.keys(kept).length === 0 || size > MAX_KEPT ? inspection : { ...inspection, kept };
}

/** Returns the action. Throws unless the caller started it and its result is still missing, as for a result. */
async function findRunning(tx: LedgerTransaction, caller: Credential, id: string): Promise<ActionRow> {
  const row = await tx.action(id);
  const isStarter = row !== null && row.started_by === caller.key.id;
  const isOtherAgent = caller.workload?.user_id != null;
  if (row === null || !(canSee(caller.visibility, row) || (isStarter && !isOtherAgent)))
    throw new Refusal("ACTION_NOT_FOUND", `there is no action ${id} that this key may see`);
  assertNotErased(row);
  if (row.status !== "executing" && row.status !== "unknown")
    throw new Refusal(
      "ACTION_NOT_STARTED",
      `the action is ${row.status}; an output is inspected after the start and before the result is reported. Pass nothing of it on`,
    );
  if (!isStarter)
    throw new Refusal("NOT_THE_EXECUTOR", "another key started this action; only that key sends its output");
  return row;
}

interface InspectionCall {
  sent: SentOutput;
  first: RecordedFacts;
  digest: string | null;
  caller: Credential;
}

async function recordInspection(
  tx: LedgerTransaction,
  row: ActionRow,
  { sent, first, digest, caller }: InspectionCall,
  judgement: Judgement,
): Promise<Inspection> {
  const earlier = (await readInspections(tx, row.id)).flatMap(({ verdict }) =>
    verdict === "not_inspected" ? [] : [verdict],
  );
  if (earlier.length >= MAX_INSPECTIONS)
    throw new Refusal(
      ERRORS.tooMany,
      `${MAX_INSPECTIONS} outputs of the action ${row.id} were inspected, which is the limit; pass nothing more of it on`,
    );
  const verdict = earlier.reduce<ResultEffect>(
    (strictest, each) => (STRICTNESS[each] > STRICTNESS[strictest] ? each : strictest),
    judgement.verdict,
  );
  const by = toActor(caller.key, caller.principal);
  record(
    tx,
    row,
    first.session,
    {
      verdict,
      output: {
        digest: commitDigest(row.salt, sha256Hex(canonicalBytes(sent.output))),
        bytes: sizeOf(sent.output),
      },
      rules: toRecorded(judgement.rules),
      labels: [...judgement.labels],
      policy_set: digest,
    },
    by,
  );
  const rule = judgement.rules.find((each) => each.rule.effect === judgement.verdict) ?? judgement.rules[0];
  return {
    verdict,
    output: verdict === "withhold" ? undefined : judgement.output,
    labels: judgement.labels,
    rule: rule === undefined ? null : { policy: rule.policy, rule: rule.rule.name },
    reason:
      verdict === judgement.verdict
        ? judgement.reason
        : "another output of this action was already redacted or withheld, and the strictest verdict counts",
  };
}

const toRecorded = (rules: readonly AppliedRule[]): InspectionData["rules"] =>
  rules.slice(0, 50).map(({ policy, rule }) => ({ policy, rule: rule.name }));

/** Returns the inspections of an action that the ledger contains. */
async function readInspections(tx: LedgerTransaction, id: string): Promise<InspectionData[]> {
  const rows = await tx.entriesOfAction(id);
  return rows
    .filter(({ type }) => type === INSPECTION)
    .map(({ bytes }) => decodeEntry<PluginEntry>(bytes).data as unknown as InspectionData);
}

function record(
  tx: LedgerTransaction,
  row: ActionRow,
  session: SessionFact | undefined,
  data: InspectionData,
  by: Actor | null,
): void {
  const about = { v: 1, at: toRfc3339(tx.now), action_id: row.id, agent_id: row.agent_id, by } as const;
  tx.record({ type: INSPECTION, ...about, data: { ...data } } as PluginEntry, row.submitted_by);
  const added = data.labels.filter((label) => findLabelEnd(tx, row.agent_id, session, label) < tx.now + RENEW_MS);
  if (added.length === 0) return;
  const labels: LabelsData = { session: session?.id ?? null, labels: added, until: toRfc3339(tx.now + LABEL_MS) };
  tx.record({ type: LABELS, ...about, data: { ...labels } } as PluginEntry, row.submitted_by);
}

/** Adds the labels of all rules that apply to an action whose output was not inspected. */
async function recordMissing(
  tx: LedgerTransaction,
  row: ActionRow,
  session: SessionFact | undefined,
  by: Actor | null,
): Promise<void> {
  const { compiled, digest } = tx.activePolicies;
  const rules = findResultRules(compiled, row);
  if (rules.length === 0 || (await readInspections(tx, row.id)).length > 0) return;
  const labels = labelsOf(rules);
  const data = {
    verdict: "not_inspected" as const,
    output: null,
    rules: toRecorded(rules),
    labels,
    policy_set: digest,
  };
  record(tx, row, session, data, by);
}

export const resultReaction: Reaction = {
  // If nobody inspects the output, the agent can read it at any time after the start.
  actionStarted: async (tx, row, { by, facts, inspects }) => {
    if (!inspects) await recordMissing(tx, row, facts.session, by);
  },
  resultReported: (tx, row, { by, facts }) => recordMissing(tx, row, facts[0]?.session, by),
  resultMissing: (tx, row, facts) => recordMissing(tx, row, facts.session, null),
};
