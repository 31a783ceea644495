/** Writes an evidence pack: everything about one time window of the ledger, with proofs, in open formats. */
import { CommandError } from "../../src/command.ts";
import {
  canonicalText,
  decodeEntry,
  findFirstEntry,
  type JsonValue,
  type LogKeyEntry,
  parseCheckpoint,
  readNote,
  sha256Hex,
  utf8,
} from "../../src/core.ts";
import { toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow, EntryRow } from "../../src/storage/index.ts";
import { CONTROLS } from "./controls.ts";
import { readContext, readEntries, renderEntriesFile } from "./entries.ts";
import { openAction, readActionEntries } from "./opened-actions.ts";
import { PACK_FORMAT, type Control, type Manifest } from "./pack-format.ts";
import type { PackStore } from "./pack-store.ts";
import type { PackWriter } from "./pack-writer.ts";
import { createPolicySetCollector, type PolicySetCollector } from "./policy-set-collector.ts";
import { computePeople, renderPeople, renderVotes } from "./tables.ts";

const PAGE_SIZE = 64;

interface PackOptions {
  writer: PackWriter;
  /** Start of the window (inclusive) in milliseconds. `to` is its end (exclusive). */
  from: number;
  to: number;
  /** A checkpoint of this log that covers the window; null selects the newest checkpoint. */
  checkpoint: string | null;
  witnesses: string[];
  /** HTML of the page that verifies the pack. */
  page: string;
  progress(done: number, total: number): void;
  /** Whether to refuse actions with parameters that a policy redacts. A pack contains the parameters in clear. */
  refusesRedacted?: boolean;
}

interface WrittenPack {
  manifest: Manifest;
  /** SHA-256 of manifest.json, which contains the digests of all other files. */
  digest: string;
  actions: number;
}

export async function writePack(store: PackStore, options: PackOptions): Promise<WrittenPack> {
  const head = await store.head();
  const first = await findFirstEntry(store, options.from, head.size);
  const end = await findFirstEntry(store, options.to, head.size);
  const note = options.checkpoint ?? (await readNewestCheckpoint(store, end));
  const { size, origin } = parseCheckpoint(readNote(note).text);
  if (size > head.size) throw new CommandError(`the checkpoint covers ${size} entries, and the store has ${head.size}`);
  if (end > size)
    throw new CommandError(
      `the checkpoint covers ${size} entries, and the window ends at entry ${end}; use a newer one, or try again in a moment`,
    );
  const { writer, refusesRedacted = false } = options;
  const sets = createPolicySetCollector(store, refusesRedacted);
  const { context, keyChange } = await readContext(store, first);
  const extra = new Set(context);
  const counts = new Map<string, number>();
  let actions = 0;
  await writer.write(
    "actions.jsonl",
    renderActions(store, { first, end }, sets, {
      onEntry: ({ type, seq }) => {
        counts.set(type, (counts.get(type) ?? 0) + 1);
        if (seq % 1000 === 0) options.progress(seq - first, end - first);
      },
      onAction: () => actions++,
      onOutside({ seq, type, action_id }) {
        if (seq < size) extra.add(seq);
        // Without its entry, the pack could not prove an erasure.
        else if (type === "erasure" || type === "part_erasure")
          throw new CommandError(
            `the action ${action_id} was erased in entry ${seq}, and the checkpoint covers ${size} entries; use a newer checkpoint`,
          );
      },
    }),
  );
  const others = [...extra].sort((a, b) => a - b);
  await writer.write("entries.jsonl", renderEntriesFile(store, { first, end, size }, others));
  await writer.write("policies.jsonl", sets.render());
  const people = await computePeople(
    readSelected(
      store,
      others.filter((seq) => seq < first),
      first,
      end,
    ),
  );
  await writer.write("people.csv", renderPeople(people));
  await writer.write("approvals.csv", renderVotes(store, { first, end }, people));
  await writer.write("checkpoint.txt", [note]);
  const controls: Control[] = CONTROLS.map((control) => ({
    ...control,
    count: control.entries.reduce((sum, type) => sum + (counts.get(type) ?? 0), 0),
  }));
  await writer.write("controls.json", [`${canonicalText(controls as unknown as JsonValue)}\n`]);
  await writer.write("verify.html", [options.page]);
  const manifest: Manifest = {
    format: PACK_FORMAT,
    origin,
    from: toRfc3339(options.from),
    to: toRfc3339(options.to),
    first,
    end,
    vkey: await readFirstKey(store, keyChange),
    witnesses: options.witnesses,
    files: writer.files(),
  };
  const text = `${canonicalText(manifest as unknown as JsonValue)}\n`;
  await writer.write("manifest.json", [text]);
  const digest = sha256Hex(utf8(text));
  await writer.write("manifest.sha256", [`${digest}  manifest.json\n`]);
  return { manifest, digest, actions };
}

/** Returns the newest checkpoint that witnesses cosigned, if it covers the window; otherwise the newest checkpoint. */
async function readNewestCheckpoint(store: PackStore, end: number): Promise<string> {
  const witnessed = await store.meta("cosigned_checkpoint");
  if (witnessed !== null && parseCheckpoint(readNote(witnessed).text).size >= end) return witnessed;
  const stored = await store.checkpoint();
  if (stored === null) throw new CommandError("nothing is recorded and signed yet");
  return stored.note;
}

/**
 * Returns the first key of the log. Entries introduce the later keys.
 * @param keyChange the first of these entries; null if there is none
 */
async function readFirstKey(store: PackStore, keyChange: EntryRow | null): Promise<string> {
  const vkey = keyChange === null ? await store.meta("log_vkey") : decodeEntry<LogKeyEntry>(keyChange.bytes).previous;
  if (vkey === null) throw new CommandError("the store does not name the log's key; run assent audit");
  return vkey;
}

interface Listeners {
  onEntry(row: EntryRow): void;
  onAction(): void;
  /** Called for each entry that is outside the window and belongs to an action in the pack. */
  onOutside(row: EntryRow): void;
}

/** Yields a line for each action that has an entry in the window, in the order of these entries. */
async function* renderActions(
  store: PackStore,
  { first, end }: { first: number; end: number },
  sets: PolicySetCollector,
  listeners: Listeners,
): AsyncIterable<string> {
  /** Ids of the actions that were decided before the window. All other actions first appear with their decision. */
  const earlier = new Set<string>();
  let page: string[] = [];
  for await (const row of readEntries(store, first, end)) {
    listeners.onEntry(row);
    if (row.type === "policy_set" || row.type === "decision")
      sets.addUsed(decodeEntry<{ policy_set: string | null } & Record<string, JsonValue>>(row.bytes).policy_set);
    if (row.action_id === null || (row.type !== "decision" && earlier.has(row.action_id))) continue;
    if (row.type === "decision") page.push(row.action_id);
    else {
      const action = await store.action(row.action_id);
      if (action === null) throw new CommandError(`the store lacks the action ${row.action_id}; run assent audit`);
      if (action.decision_seq >= first) continue;
      earlier.add(row.action_id);
      page.push(row.action_id);
    }
    if (page.length < PAGE_SIZE) continue;
    yield* renderPage(store, page, { first, end }, sets, listeners);
    page = [];
  }
  yield* renderPage(store, page, { first, end }, sets, listeners);
}

async function* renderPage(
  store: PackStore,
  ids: readonly string[],
  { first, end }: { first: number; end: number },
  sets: PolicySetCollector,
  { onAction, onOutside }: Listeners,
): AsyncIterable<string> {
  if (ids.length === 0) return;
  const actions = new Map((await store.actionsById(ids)).map((row): [string, ActionRow] => [row.id, row]));
  for (const id of ids) {
    const row = actions.get(id);
    if (row === undefined) throw new CommandError(`the store lacks the action ${id}; run assent audit`);
    const entries = await readActionEntries(store, id, end);
    for (const entry of entries) {
      if (entry.seq < first || entry.seq >= end) onOutside(entry);
      if (entry.type !== "decision" && entry.type !== "redecision") continue;
      const { policy_set } = decodeEntry<{ policy_set: string | null } & Record<string, JsonValue>>(entry.bytes);
      sets.addUsed(policy_set);
      await sets.assertShown(policy_set);
    }
    onAction();
    yield `${canonicalText((await openAction(row, entries, sets.compiled)) as unknown as JsonValue)}\n`;
  }
}

async function* readSelected(
  store: PackStore,
  others: readonly number[],
  first: number,
  end: number,
): AsyncIterable<EntryRow> {
  for (const seq of others) yield* await store.entries(seq, seq + 1);
  yield* readEntries(store, first, end);
}
