/**
 * Checks that no action was erased while a legal hold on it or its agent was active, and that the store has the
 * identifier of each person under a hold. Cannot check whether an erased action mentioned such a person, because the
 * content of the action no longer exists.
 */
import type { StorageReader } from "../contract/storage.ts";
import type { ErasureEntry, LegalHoldEntry } from "../domain/entries.ts";
import type { JsonValue } from "../domain/json.ts";
import {
  applyLegalHoldEntry,
  HELD_SUBJECT_DOCUMENTS,
  type LegalHold,
  listActiveHolds,
  holdNamesAction,
  NO_LEGAL_HOLDS,
  readVerifiedSubject,
} from "../domain/legal-holds.ts";
import type { EntryBody, ReportFault } from "./report.ts";

const PAGE = 100;
const ERASURES = ["erasure", "part_erasure"];

export interface LegalHoldsAuditor {
  /**
   * Applies the next entry; call it in order. Throws for an erasure that a hold should have prevented, or for an entry
   * that contradicts earlier entries.
   */
  fold(body: EntryBody): void;
  hold(id: string): LegalHold | undefined;
  /** Compares the identifiers in the store with the holds of the applied entries. */
  check(store: Pick<StorageReader, "documents">, fault: ReportFault): Promise<void>;
}

export function createLegalHoldsAuditor(): LegalHoldsAuditor {
  let holds = NO_LEGAL_HOLDS;
  let active: LegalHold[] = [];
  return {
    fold(body) {
      if (body["type"] === "legal_hold") {
        holds = applyLegalHoldEntry(holds, body as unknown as LegalHoldEntry & { seq: number });
        active = listActiveHolds(holds);
      } else if (ERASURES.includes(String(body["type"])) && active.length > 0) {
        const hold = active.find((each) => holdNamesAction(each, body as unknown as ErasureEntry));
        if (hold !== undefined)
          throw new RangeError(`the legal hold ${hold.id} was active and should have prevented this erasure`);
      }
    },
    hold: (id) => holds.get(id),
    async check(store, fault) {
      const stored = await readSubjects(store);
      for (const hold of active) {
        if (hold.subject === null) continue;
        const key = HELD_SUBJECT_DOCUMENTS.key(hold.id);
        if (readVerifiedSubject(hold, stored.get(key)) === null)
          fault(
            `the identifier of the legal hold ${hold.id} is missing or does not match its commitment in the ledger`,
          );
        stored.delete(key);
      }
      for (const key of stored.keys()) fault(`the store has the identifier "${key}", which no active legal hold needs`);
    },
  };
}

async function readSubjects(store: Pick<StorageReader, "documents">): Promise<Map<string, JsonValue>> {
  const stored = new Map<string, JsonValue>();
  for (let after = ""; ;) {
    const filter = { plugin: HELD_SUBJECT_DOCUMENTS.plugin, prefix: HELD_SUBJECT_DOCUMENTS.key(""), limit: PAGE };
    const page = await store.documents({ ...filter, ...(after === "" ? {} : { after }) });
    for (const { key, value } of page) stored.set(key, parseOrNull(value));
    if (page.length < PAGE) return stored;
    after = page.at(-1)?.key ?? "";
  }
}

function parseOrNull(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return null;
  }
}
