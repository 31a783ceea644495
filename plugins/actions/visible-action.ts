/** Reads actions and tests their state. */
import { canSee } from "../../src/core.ts";
import { type Credential, Refusal, toRfc3339 } from "../../src/plugin.ts";
import type { ActionRow, StorageReader } from "../../src/storage/index.ts";

type Reader = Pick<StorageReader, "action">;

/** Reads an action. Throws ACTION_NOT_FOUND if it does not exist or the credential cannot see it. */
export async function visibleAction(reader: Reader, id: string, credential: Credential): Promise<ActionRow> {
  const row = await reader.action(id);
  if (row === null || !canSee(credential.visibility, row)) throw actionNotFoundError(id);
  return row;
}

/** Returns true if the deadline for votes has passed, even if the status is not `expired` yet. */
export function isOverdue(row: ActionRow, now: number): boolean {
  return row.status === "pending_approval" && (row.expires_at ?? 0) <= now;
}

/** Returns true if the action is allowed or approved and its deadline for the start has not passed. */
export function isStartable({ status, approved_until }: ActionRow, now: number): boolean {
  return (status === "allowed" || status === "approved") && approved_until !== null && approved_until > now;
}

/** Returns the row as it is displayed: an overdue action is `expired` even before that status is stored. */
export function withCurrentStatus(row: ActionRow, now: number): ActionRow {
  return isOverdue(row, now) ? { ...row, status: "expired" } : row;
}

/** Returns the size in bytes of the columns that can be large. */
export function contentByteLength(row: ActionRow): number {
  return [row.request, row.past, row.meta, row.questions, row.effective, row.result].reduce(
    (bytes, text) => bytes + Buffer.byteLength(text ?? ""),
    0,
  );
}

export function actionNotFoundError(id: string): Refusal {
  return new Refusal("ACTION_NOT_FOUND", `there is no action ${id} that this key may see`);
}

/** Throws ACTION_ERASED if the action was erased. */
export function assertNotErased({ id, erased_at }: ActionRow): void {
  if (erased_at === null) return;
  throw new Refusal(
    "ACTION_ERASED",
    `the content of the action ${id} was erased at ${toRfc3339(erased_at)}; submit a new action, with a new idempotency key if you send one`,
  );
}

/** Reads the action again within the transaction that changed it. */
export async function rereadAction(tx: Reader, id: string): Promise<ActionRow> {
  const row = await tx.action(id);
  if (row === null) throw new Error(`the action ${id} vanished inside its transaction`);
  return row;
}
