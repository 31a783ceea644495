/** Reads the actions that one credential can see. */
import { Refusal } from "../../contract/errors.ts";
import type { Credential, VisibleActions } from "../../contract/host.ts";
import type { ActionReads, ActionRow, StorageReader } from "../../contract/storage.ts";
import { decodeEntry, type DecisionEntry } from "../../domain/entries.ts";
import { canSee } from "../../domain/visibility.ts";
import { createVisibleReads } from "../../storage/visible-reads.ts";

/** Maximum number of decisions per read. Limited, so that other requests can run between two reads. */
const PAGE_SIZE = 500;

/**
 * Returns an action that the credential can see. Throws ACTION_NOT_FOUND if the action does not exist or is not
 * visible. Without a credential, no action is visible.
 */
export async function readVisibleAction(
  reader: Pick<ActionReads, "action">,
  credential: Credential | null,
  id: string,
): Promise<ActionRow> {
  const row = credential === null ? null : await reader.action(id);
  if (credential === null || row === null || !canSee(credential.visibility, row))
    throw new Refusal("ACTION_NOT_FOUND", `there is no action ${id}`);
  return row;
}

export function createVisibleActions(
  reader: StorageReader,
  credential: Credential,
  waitForReadSlot: () => Promise<void>,
): VisibleActions {
  const { visibility } = credential;
  const reads = createVisibleReads(reader, waitForReadSlot);
  return Object.freeze({
    get: (id: string) => readVisibleAction(reader, credential, id),
    list: (filter: Parameters<VisibleActions["list"]>[0]) => reads.actions({ ...filter, visibility }),
    async *decisions({ since, until, signal }: Parameters<VisibleActions["decisions"]>[0]) {
      const span = await reader.decisionSpan(since, until);
      let before = span === null ? null : span.last + 1;
      while (span !== null && before !== null) {
        if (signal?.aborted === true)
          throw new Refusal("SHUTTING_DOWN", "the request ended before everything was read; send it again");
        await waitForReadSlot();
        const page = { from_seq: span.first, before_seq: before, since, until, limit: PAGE_SIZE };
        const rows = await reads.decisions({ ...page, visibility });
        for (const { bytes } of rows) yield decodeEntry<DecisionEntry>(bytes);
        before = rows.length < PAGE_SIZE ? null : (rows.at(-1)?.seq ?? null);
      }
    },
  });
}
