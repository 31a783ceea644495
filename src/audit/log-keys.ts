/**
 * Checks the keys that sign the log and the permits: the entry of each change must contain the key that it replaces.
 */
import type { Vault } from "../contract/core-host.ts";
import type { EntryRow } from "../contract/storage.ts";
import { parseEntryTime } from "../domain/time.ts";
import { parseVkey } from "../domain/checkpoint.ts";
import type { LogKeyEntry, PermitKeyEntry } from "../domain/entries.ts";
import { equalBytes, toHex } from "../domain/hash.ts";
import { openHandover, listVkeys, appendLogKey, type LogKeys } from "../domain/log-keys.ts";
import { prefixFaults, reportUnreadableData, type AuditedStore, type EntryBody, type ReportFault } from "./report.ts";
import { createProofReader } from "../ledger/reader.ts";

export interface KeysAuditor {
  /** Applies the next entry; call it in order. Throws for an entry that contradicts earlier entries. */
  fold(row: Pick<EntryRow, "seq" | "type">, body: EntryBody): void;
  /**
   * Returns the log's keys as of the entry that was applied last: only the pinned key if the log never changed its key.
   */
  logKeys(): LogKeys;
  check(reportFault: ReportFault): Promise<void>;
}

type NumberedEntry<Entry> = Entry & { seq: number };

/** @param pin a current or former key of the log; null to skip the check of the log's keys */
export function createKeysAuditor(store: AuditedStore, pin: string | null, verify: Vault["verify"]): KeysAuditor {
  const logEntries: NumberedEntry<LogKeyEntry>[] = [];
  const permitEntries: NumberedEntry<PermitKeyEntry>[] = [];
  let logKeys: LogKeys = { first: pin ?? "", changes: [] };

  async function checkLogKeys(reportFault: ReportFault): Promise<void> {
    if (pin === null) return;
    if (!listVkeys(logKeys).includes(pin))
      reportFault(`${pin} is not a key of the log; its first key is ${logKeys.first}`);
    const proofs = createProofReader(store);
    for (const entry of logEntries) {
      const report = prefixFaults(`the change of the log's key at ${entry.seq}`, reportFault);
      await reportUnreadableData("the handover", report, async () => {
        const { size, root } = openHandover(entry, verify);
        if (!equalBytes(await proofs.rootAt(size), root))
          report(`the ledger does not contain the tree of size ${size} that the handover signed`);
        if (parseEntryTime(entry.previous_until) < parseEntryTime(entry.at))
          report("the previous key expires before the new key starts");
      });
    }
  }

  async function checkPermitKeys(reportFault: ReportFault): Promise<void> {
    const ofLog = new Set(pin === null ? [] : listVkeys(logKeys).map((vkey) => toHex(parseVkey(vkey).publicKey)));
    let present = (await store.meta("permit_key")) ?? permitEntries[0]?.previous;
    const had = new Set([present]);
    for (const { seq, at, public_key, previous, previous_until } of permitEntries) {
      const report = prefixFaults(`the change of the permit key at ${seq}`, reportFault);
      if (previous !== present) report(`it replaces the key ${previous}, but permits were signed with ${present}`);
      if (had.has(public_key)) report("the new key had already signed permits");
      if (parseEntryTime(previous_until) < parseEntryTime(at))
        report("the previous key expires before the new key starts");
      had.add(public_key);
      present = public_key;
    }
    for (const key of had)
      if (key !== undefined && ofLog.has(key)) reportFault(`permits are signed with ${key}, which is a key of the log`);
  }

  return {
    fold({ seq, type }, body) {
      if (type === "permit_key") permitEntries.push({ ...(body as unknown as PermitKeyEntry), seq });
      if (type !== "log_key") return;
      const entry = { ...(body as unknown as LogKeyEntry), seq };
      logEntries.push(entry);
      // The pinned key might be a successor of the log's first key, so take the first key from the first key change.
      if (pin !== null && logEntries.length === 1) logKeys = { first: entry.previous, changes: [] };
      if (pin !== null) logKeys = appendLogKey(logKeys, entry, verify);
    },
    logKeys: () => logKeys,
    async check(fault) {
      await reportUnreadableData("the log's keys", fault, () => checkLogKeys(fault));
      await reportUnreadableData("the permit keys", fault, () => checkPermitKeys(fault));
    },
  };
}
