/**
 * The ledger's transaction for unprivileged plugins. They can access only the members of the object that this module
 * creates.
 */
import { Refusal } from "../../contract/errors.ts";
import type { Documents } from "../../contract/core-host.ts";
import type { Credential, NewPluginEntry, Transaction } from "../../contract/host.ts";
import type { Ledger, LedgerTransaction } from "../../contract/ledger.ts";
import type { ActionRow } from "../../contract/storage.ts";
import type { Scope } from "../../domain/scopes.ts";
import { toActor } from "../../domain/actor.ts";
import { toRfc3339 } from "../../domain/time.ts";
import { readVisibleAction } from "./visible-actions.ts";

/** Version of the entries that plugins record. A plugin that changes the members of an entry must use a new type. */
const ENTRY_VERSION = 1;

/** Runs a plugin's job in the ledger. */
export function transactForPlugin<Caller extends Credential | null, T>(
  plugin: string,
  ledger: Ledger,
  documents: Documents,
  credential: Caller,
  job: (tx: Transaction<Caller>) => Promise<T>,
): Promise<T> {
  return ledger.transact(async (batch) => {
    const caller = (credential === null ? null : await confirmCaller(batch, credential)) as Caller;
    const { tx, end } = createTransaction(plugin, batch, documents, caller);
    try {
      return await job(tx);
    } finally {
      end();
    }
  });
}

async function confirmCaller(batch: LedgerTransaction, credential: Credential): Promise<Credential> {
  const caller = await batch.confirm(credential);
  const lost = credential.key.scopes.find((scope) => !caller.hasScope(scope as Scope));
  if (lost !== undefined)
    throw new Refusal("INSUFFICIENT_SCOPE", `the key "${caller.key.name}" no longer has the scope ${lost}`);
  return caller;
}

function createTransaction<Caller extends Credential | null>(
  plugin: string,
  batch: LedgerTransaction,
  documents: Documents,
  caller: Caller,
): { tx: Transaction<Caller>; end(): void } {
  let ended = false;
  /** Throws after the job has ended, because the batch might then be running another plugin's job. */
  function assertOpen(): void {
    if (ended) throw new Error("the job has ended; await everything inside it");
  }
  const readActions = new Map<string, Pick<ActionRow, "id" | "agent_id" | "submitted_by">>();
  const writer = documents.within(batch);

  function record({ type, action, data }: NewPluginEntry): ReturnType<Transaction["record"]> {
    assertOpen();
    if (typeof type !== "string" || !type.startsWith(`${plugin}:`))
      throw new TypeError(`the plugin "${plugin}" cannot record an entry of type ${JSON.stringify(type)}`);
    const subject = action === undefined ? null : readActions.get(action.id);
    if (subject === undefined)
      throw new TypeError(`read the action ${action?.id} with tx.action before you record an entry about it`);
    const by = caller === null ? null : toActor(caller.key, caller.principal);
    return batch.record(
      {
        type,
        v: ENTRY_VERSION,
        at: toRfc3339(batch.now),
        action_id: subject?.id ?? null,
        agent_id: subject?.agent_id ?? null,
        data,
        by,
      },
      subject?.submitted_by,
    );
  }

  const tx: Transaction<Caller> = {
    caller,
    now: batch.now,
    state: (fold) => batch.state(fold),
    async action(id) {
      assertOpen();
      const row = await readVisibleAction(batch, caller, id);
      readActions.set(row.id, { id: row.id, agent_id: row.agent_id, submitted_by: row.submitted_by });
      return row;
    },
    documents: Object.freeze({
      async get(key: string) {
        assertOpen();
        return writer.get(key);
      },
      async list(filter: Parameters<typeof writer.list>[0]) {
        assertOpen();
        return writer.list(filter);
      },
      async put(...args: Parameters<typeof writer.put>) {
        assertOpen();
        return writer.put(...args);
      },
      async delete(...args: Parameters<typeof writer.delete>) {
        assertOpen();
        return writer.delete(...args);
      },
    }),
    record,
  };
  return {
    tx: Object.freeze(tx),
    end: () => {
      ended = true;
    },
  };
}
