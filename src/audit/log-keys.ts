/** Checks the keys that sign the log and the permits: each change of key must name and follow the previous key. */
import type { Vault } from "../contract/core-host.ts";
import type { EntryRow } from "../contract/storage.ts";
import { parseEntryTime } from "../domain/action-history.ts";
import { parseVkey } from "../domain/checkpoint.ts";
import type { LogKeyEntry, PermitKeyEntry } from "../domain/entries.ts";
import { equalBytes, toHex } from "../domain/hash.ts";
import { openHandover, listVkeys, appendLogKey, type LogKeys } from "../domain/log-keys.ts";
import { about, type AuditedStore, type Body, type Fault } from "./report.ts";
import { guarded } from "./ledger.ts";
import { createProofReader } from "../ledger/reader.ts";

export interface KeysAudit {
  /** Reads the entries in order. Throws for an entry that contradicts earlier ones. */
  fold(row: Pick<EntryRow, "seq" | "type">, body: Body): void;
  /** Returns the log's keys as of the entry that was folded last; only the pinned key if the log never changed its key. */
  logKeys(): LogKeys;
  check(fault: Fault): Promise<void>;
}

type Folded<Entry> = Entry & { seq: number };

/** @param pin a present or former key of the log; null if none is known, and then the log's keys are not checked */
export function createKeysAudit(store: AuditedStore, pin: string | null, verify: Vault["verify"]): KeysAudit {
  const logEntries: Folded<LogKeyEntry>[] = [];
  const permitEntries: Folded<PermitKeyEntry>[] = [];
  let logKeys: LogKeys = { first: pin ?? "", changes: [] };

  async function checkLogKeys(fault: Fault): Promise<void> {
    if (pin === null) return;
    if (!listVkeys(logKeys).includes(pin)) fault(`${pin} is none of the log's keys, which begin with ${logKeys.first}`);
    const proofs = createProofReader(store);
    for (const entry of logEntries) {
      const tell = about(`the change of the log's key at ${entry.seq}`, fault);
      await guarded("it", tell, async () => {
        const { size, root } = openHandover(entry, verify);
        if (!equalBytes(await proofs.rootAt(size), root))
          tell(`the ledger does not contain what it was signed over (size ${size})`);
        if (parseEntryTime(entry.previous_until) < parseEntryTime(entry.at))
          tell("the key before ends earlier than it was followed");
      });
    }
  }

  async function checkPermitKeys(fault: Fault): Promise<void> {
    const ofLog = new Set(pin === null ? [] : listVkeys(logKeys).map((vkey) => toHex(parseVkey(vkey).publicKey)));
    let present = (await store.meta("permit_key")) ?? permitEntries[0]?.previous;
    const had = new Set([present]);
    for (const { seq, at, public_key, previous, previous_until } of permitEntries) {
      const tell = about(`the change of the permit key at ${seq}`, fault);
      if (previous !== present) tell(`it ends the key ${previous}, and permits were signed with ${present}`);
      if (had.has(public_key)) tell("permits were signed with the new key before");
      if (parseEntryTime(previous_until) < parseEntryTime(at)) tell("the key before ends earlier than it was followed");
      had.add(public_key);
      present = public_key;
    }
    for (const key of had)
      if (key !== undefined && ofLog.has(key)) fault(`permits are signed with ${key}, which is the log's`);
  }

  return {
    fold({ seq, type }, body) {
      if (type === "permit_key") permitEntries.push({ ...(body as unknown as PermitKeyEntry), seq });
      if (type !== "log_key") return;
      const entry = { ...(body as unknown as LogKeyEntry), seq };
      logEntries.push(entry);
      // The known key may be a later one.
      if (pin !== null && logEntries.length === 1) logKeys = { first: entry.previous, changes: [] };
      if (pin !== null) logKeys = appendLogKey(logKeys, entry, verify);
    },
    logKeys: () => logKeys,
    async check(fault) {
      await guarded("the log's keys", fault, () => checkLogKeys(fault));
      await guarded("the permit keys", fault, () => checkPermitKeys(fault));
    },
  };
}
