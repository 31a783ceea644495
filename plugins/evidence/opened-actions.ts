/** Reads the contents of actions that ledger entries commit to, for the pack. */
import {
  type ActionEntry,
  commitDigest,
  commitSaltedFacts,
  type CompiledPolicySet,
  decodeEdit,
  decodeEntry,
  decodeQuestions,
  decodeSalted,
  decodeSaltedFacts,
  encodeRequest,
  type ErasablePart,
  parseCompleteRequest,
  presentRequest,
} from "../../src/core.ts";
import { type JsonObject, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow, EntryRow } from "../../src/storage/index.ts";
import type { OpenedAction } from "./pack-format.ts";
import type { PackStore } from "./pack-store.ts";

const ERASURES = ["erasure", "part_erasure"];

/**
 * Returns the entries of an action that the pack contains: entries before the end of the window, and all erasure
 * entries.
 */
export async function readActionEntries(store: PackStore, id: string, end: number): Promise<EntryRow[]> {
  return (await store.entriesOfAction(id)).filter(({ seq, type }) => seq < end || ERASURES.includes(type));
}

/**
 * Reads the contents of an action. Omits contents that only entries after the window commit to, so that the pack of a
 * window stays the same.
 */
export async function openAction(
  row: ActionRow,
  rows: readonly EntryRow[],
  compiled: (digest: string | null) => Promise<CompiledPolicySet>,
): Promise<OpenedAction> {
  const { id, agent_id, tool, operation } = row;
  const named = { id, agent_id, tool, operation };
  const entries = rows.map(({ bytes }) => decodeEntry(bytes) as unknown as ActionEntry);
  // The entries were read after the row, which may have been erased in between.
  const erased_at =
    row.erased_at === null ? entries.find(({ type }) => type === "erasure")?.at : toRfc3339(row.erased_at);
  const isErased = (part: ErasablePart): boolean =>
    entries.some((entry) => entry.type === "part_erasure" && entry.part === part);
  if (erased_at !== undefined)
    return {
      ...named,
      erased_at,
      request: null,
      salt: null,
      effective: null,
      result: null,
      meta: null,
      past: [],
      questions: [],
      shown: null,
    };
  const request = parseCompleteRequest(row);
  const edited = entries.flatMap((entry) =>
    entry.type === "redecision" && entry.edit !== null
      ? entry.commitment
      : entry.type === "decision"
        ? (entry.effective ?? [])
        : [],
  );
  const newest = edited.length === 0 ? null : decodeEdit(row.effective);
  // Omit the stored change if it was made after the window. It has then replaced the change that the pack's entries
  // commit to.
  const edit =
    newest !== null && commitDigest(newest.salt, encodeRequest(newest.request).hash) === edited.at(-1) ? newest : null;
  const hasResult = entries.some((entry) => entry.type === "execution" && entry.result !== null);
  return {
    ...named,
    erased_at: null,
    request,
    salt: row.salt,
    effective: edit === null ? null : { request: edit.request, salt: edit.salt },
    result: hasResult && row.result !== null && !isErased("result") ? (JSON.parse(row.result) as JsonObject) : null,
    meta: isErased("meta") ? null : decodeSalted(row.meta),
    past: openPasts(row.past, entries),
    questions: isErased("questions") ? [] : openQuestions(row.questions, entries),
    shown: await renderRequest(row, entries, edit?.request ?? request, compiled),
  };
}

function openPasts(past: string | null, entries: readonly ActionEntry[]): OpenedAction["past"] {
  const commitments = new Set(
    entries.map((entry) => (entry.type === "decision" || entry.type === "redecision" ? entry.facts.past : undefined)),
  );
  return decodeSaltedFacts(past).filter((each) => commitments.has(commitSaltedFacts(each)));
}

function openQuestions(text: string | null, entries: readonly ActionEntry[]): OpenedAction["questions"] {
  const phases = (phase: string): number =>
    entries.filter((entry) => entry.type === "question" && entry.phase === phase).length;
  const [asked, answered] = [phases("ask"), phases("answer")];
  return decodeQuestions(text)
    .slice(0, asked)
    .map(({ question, answer }, i) => ({ question, answer: i < answered ? answer : null }));
}

async function renderRequest(
  { agent_id, tool, operation }: ActionRow,
  entries: readonly ActionEntry[],
  request: OpenedAction["request"],
  compiled: (digest: string | null) => Promise<CompiledPolicySet>,
): Promise<OpenedAction["shown"]> {
  const pending = entries.findLast(
    (entry) => (entry.type === "decision" || entry.type === "redecision") && entry.status === "pending_approval",
  );
  if (request === null || (pending?.type !== "decision" && pending?.type !== "redecision")) return null;
  const { policy, rule } = pending.decision;
  const action = { agent_id, tool, operation, policy, rule, params: request.params, context: request.context };
  return { policy_set: pending.policy_set, ...presentRequest(await compiled(pending.policy_set), action) };
}
