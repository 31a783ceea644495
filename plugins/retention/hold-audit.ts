/**
 * Checks that no action was erased while a legal hold on it or its agent was active, and that the store has the
 * identifier of each person under a hold. Cannot check whether an erased action mentioned such a person, because the
 * content of the action no longer exists.
 */
import type { JsonValue } from "../../src/core.ts";
import type { EntryBody, FeatureAuditor } from "../../src/plugin.ts";
import type { StorageReader } from "../../src/storage/index.ts";
import { heldSubjectKey, holdNamesAction, legalHoldState, listActiveHolds, readVerifiedSubject } from "./holds.ts";

const PAGE_SIZE = 100;

export const holdAuditor: FeatureAuditor = {
  created: {
    // The row has no hash of the request, because the request may identify a person.
    "POST /v1/holds"({ state }, id) {
      const hold = state(legalHoldState).get(id);
      return hold === undefined ? null : { key_id: hold.placed_by.key_id, created_at: hold.placed_at, body_hash: "" };
    },
  },
  check(entry, { state }) {
    if (!isErasure(entry)) return;
    const hold = listActiveHolds(state(legalHoldState)).find((each) => holdNamesAction(each, entry));
    if (hold !== undefined)
      throw new RangeError(`the legal hold ${hold.id} was active and should have prevented this erasure`);
  },
  async compare(store, fault, { state }) {
    const stored = await readSubjects(store);
    for (const hold of listActiveHolds(state(legalHoldState))) {
      if (hold.subject === null) continue;
      const key = heldSubjectKey(hold.id);
      if (readVerifiedSubject(hold, stored.get(key)) === null)
        fault(`the identifier of the legal hold ${hold.id} is missing or does not match its commitment in the ledger`);
      stored.delete(key);
    }
    for (const key of stored.keys()) fault(`the store has the identifier "${key}", which no active legal hold needs`);
  },
};

function isErasure(entry: EntryBody): entry is Extract<EntryBody, { type: "erasure" | "part_erasure" }> {
  return entry.type === "erasure" || entry.type === "part_erasure";
}

async function readSubjects(store: Pick<StorageReader, "documents">): Promise<Map<string, JsonValue>> {
  const stored = new Map<string, JsonValue>();
  for (let after = ""; ;) {
    const filter = { plugin: "retention", prefix: heldSubjectKey(), limit: PAGE_SIZE };
    const page = await store.documents({ ...filter, ...(after === "" ? {} : { after }) });
    for (const { key, value } of page) stored.set(key, parseOrNull(value));
    if (page.length < PAGE_SIZE) return stored;
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
