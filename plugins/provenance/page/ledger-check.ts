/**
 * Checks the ledger's checkpoint in the browser: whether the pinned key signed it, and whether it extends the
 * checkpoint that this browser verified before.
 */
import { type Api, request } from "../../console/app/kit.ts";
import { canVerify, type Checkpoint, fromHex, openCheckpointWithPin, toHex, verifyConsistency } from "./verify.ts";

export type LedgerKeys = Api["GET /v1/provenance/keys"]["response"];

/** Local storage key of the newest checkpoint that this browser verified. */
const STORE = "assent.checkpoint";

interface SeenCheckpoint {
  vkey: string;
  size: number;
  /** Hex. */
  root: string;
}

/** The result to display. `next` is the successor of the pinned key; null if the key has no successor. */
interface LedgerCheck {
  kind: "good" | "busy" | "bad";
  text: string;
  next: string | null;
}

const TEXTS = {
  unsupported: "Not verified: browsers can verify only on https pages and on localhost. Use assent verify.",
  unpinned:
    "Signed by the key that the service publishes. Because no key is pinned in this browser, it would not notice a replaced history.",
  notSigned: (isPinned: boolean, reason: string) =>
    `Not signed by the ${isPinned ? "pinned key" : "key that the service publishes"}: ${reason}.`,
  shrunk: (before: number, now: number) =>
    `The log has shrunk: this browser has seen ${before} signed entries, and now there are ${now}. Was the store replaced by an older one?`,
  changed: (size: number) =>
    `The log does not continue from the ${size} entries that this browser has seen: earlier entries were changed. Keep the checkpoint below and inform the auditor of this service.`,
  signed: (isFollower: boolean) =>
    isFollower ? "Signed by a successor of the pinned key" : "Signed by the pinned key",
  first: "Verified in this browser, for the first time.",
  goesOn: (size: number) =>
    `The log continues from the ${size} entries that this browser has seen before. Verified in this browser.`,
};

function readSeen(): SeenCheckpoint | null {
  return JSON.parse(localStorage.getItem(STORE) ?? "null") as SeenCheckpoint | null;
}

function storeSeen(vkey: string, { size, root }: Checkpoint): void {
  localStorage.setItem(STORE, JSON.stringify({ vkey, size, root: toHex(root) }));
}

/**
 * Updates the stored checkpoint after the user pinned a different key. Keeps the checkpoint if the new key is the
 * successor of the old one. Otherwise removes it, because it might belong to a different log.
 */
export function rebindStoredCheckpoint(vkey: string | null, isSuccessor: boolean): void {
  const before = readSeen();
  if (isSuccessor && before !== null) localStorage.setItem(STORE, JSON.stringify({ ...before, vkey }));
  else localStorage.removeItem(STORE);
}

/**
 * Checks the current checkpoint. Stores it if it extends the stored checkpoint, or if no checkpoint is stored for the
 * pinned key.
 * @param vkey the pinned key; null to verify only the signature, with the key that the service publishes
 */
export async function checkLedger(keys: LedgerKeys, vkey: string | null): Promise<LedgerCheck> {
  if (!canVerify) return { kind: "busy", text: TEXTS.unsupported, next: null };
  let opened: Awaited<ReturnType<typeof openCheckpointWithPin>>;
  try {
    opened = await openCheckpointWithPin(keys.checkpoint, vkey ?? keys.keys[0]?.vkey ?? "", keys.log_keys);
  } catch (error) {
    return { kind: "bad", text: TEXTS.notSigned(vkey !== null, (error as Error).message), next: null };
  }
  if (vkey === null) return { kind: "busy", text: TEXTS.unpinned, next: null };
  const { checkpoint } = opened;
  const next = opened.vkey === vkey ? null : opened.vkey;
  const before = readSeen();
  if (before === null || before.vkey !== vkey || before.size === 0) {
    storeSeen(vkey, checkpoint);
    return { kind: "good", text: `${TEXTS.signed(next !== null)}. ${TEXTS.first}`, next };
  }
  if (before.size > checkpoint.size)
    return { kind: "bad", text: TEXTS.shrunk(before.size, checkpoint.size), next: null };
  // If the checkpoint does not extend the stored checkpoint, keep the stored checkpoint as evidence.
  if (!(await extendsSeen(before, checkpoint))) return { kind: "bad", text: TEXTS.changed(before.size), next: null };
  storeSeen(vkey, checkpoint);
  return { kind: "good", text: `${TEXTS.signed(next !== null)}. ${TEXTS.goesOn(before.size)}`, next };
}

async function extendsSeen(before: SeenCheckpoint, checkpoint: Checkpoint): Promise<boolean> {
  const { path } =
    before.size === checkpoint.size
      ? { path: [] }
      : await request("GET /v1/provenance/consistency", { query: { first: before.size, second: checkpoint.size } });
  return verifyConsistency({
    first: before.size,
    second: checkpoint.size,
    firstRoot: fromHex(before.root),
    secondRoot: checkpoint.root,
    path: path.map(fromHex),
  });
}
