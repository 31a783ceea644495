/** Compares what services acknowledged with what the ledger contains. */
import assert from "node:assert/strict";
import { parseCheckpoint, readNote } from "../../src/domain/checkpoint.ts";
import type { ApprovalEntry, DecisionEntry, EntryBody, ExecutionEntry } from "../../src/domain/entries.ts";
import { hashLeaf, appendToEdge, rootFromEdge } from "../../src/domain/merkle.ts";
import { sha256Hex, toHex, utf8 } from "../../src/domain/hash.ts";
import type { StorageReader } from "../../src/contract/storage.ts";
import type { Acknowledged, Load } from "./load.ts";

const PAGE = 1000;
const STATUS = { allowed: "allowed", approved: "pending_approval", denied: "denied" } as const;

/** The ledger's record of one action. */
interface Recorded {
  status: string;
  approvals: number;
  /** SHA-256 of the attempt. */
  attempt: string | null;
  starts: number;
  results: number;
}

/**
 * The ledger as this test read it. Every check reads the complete ledger and recomputes its tree, so that it detects
 * entries that were changed or dropped since the last check.
 */
export class History {
  /** Throws if an acknowledged action is missing or duplicated, or if the tree contradicts a signed checkpoint. */
  async verify(store: StorageReader, load: Load, isOver = false): Promise<{ entries: number; checkpoints: number }> {
    // Copy the acknowledgements first, because later ones may belong to entries after the end of the read.
    const claims = [...load.acknowledged].map(([key, own]): [string, Acknowledged] => [key, { ...own }]);
    const notes = new Map([...load.checkpoints].map(readCheckpoint));
    const { size } = await store.head();
    const recorded = new Map<string, Recorded>();
    let edge: Uint8Array[] = [];
    let verified = 0;
    for (let from = 0; from < size; from += PAGE) {
      for (const { seq, bytes } of await store.entries(from, Math.min(from + PAGE, size))) {
        edge = appendToEdge(edge, seq, hashLeaf(bytes));
        const root = notes.get(seq + 1);
        if (root !== undefined) {
          assert.equal(
            toHex(rootFromEdge(edge)),
            root,
            `a checkpoint of size ${seq + 1} was signed over another history`,
          );
          verified += 1;
        }
        take(recorded, JSON.parse(new TextDecoder().decode(bytes)) as EntryBody);
      }
    }
    assert.equal(verified, notes.size, "a checkpoint was signed over entries that are gone");
    for (const [key, claim] of claims) compare(key, claim, recorded.get(claim.id));
    assert.equal(new Set(claims.map(([, { id }]) => id)).size, claims.length, "two keys got one action");
    const keys = load.keys();
    if (isOver) assert.equal(recorded.size, keys, "each idempotency key made one action");
    else assert.ok(recorded.size <= keys, `${keys} idempotency keys made ${recorded.size} actions`);
    return { entries: size, checkpoints: verified };
  }
}

function readCheckpoint(note: string): [size: number, root: string] {
  const { size, root } = parseCheckpoint(readNote(note).text);
  return [size, toHex(root)];
}

function take(recorded: Map<string, Recorded>, entry: EntryBody): void {
  if (entry.type === "decision") {
    const { action_id: id, status } = entry as DecisionEntry;
    assert.ok(!recorded.has(id), `the action ${id} was decided twice`);
    recorded.set(id, { status, approvals: 0, attempt: null, starts: 0, results: 0 });
  } else if (entry.type === "approval") {
    const { action_id: id, verdict } = entry as ApprovalEntry;
    if (verdict === "approve") of(recorded, id).approvals += 1;
  } else if (entry.type === "execution") {
    const { action_id: id, phase, attempt } = entry as ExecutionEntry;
    const action = of(recorded, id);
    if (phase === "result") action.results += 1;
    else Object.assign(action, { starts: action.starts + 1, attempt });
  }
}

function of(recorded: ReadonlyMap<string, Recorded>, id: string): Recorded {
  const action = recorded.get(id);
  assert.ok(action !== undefined, `the action ${id} goes on without a decision`);
  return action;
}

function compare(key: string, claim: Acknowledged, action: Recorded | undefined): void {
  assert.ok(action !== undefined, `the decision for ${key} was acknowledged and is lost`);
  assert.equal(action.status, STATUS[claim.kind], key);
  const most = { approvals: claim.kind === "approved" ? 1 : 0, starts: claim.kind === "denied" ? 0 : 1 };
  assert.ok(
    action.approvals <= most.approvals && action.starts <= most.starts && action.results <= most.starts,
    `${key} is doubled: ${JSON.stringify(action)}`,
  );
  if (claim.isApproved) assert.equal(action.approvals, 1, `the approval of ${key} was acknowledged and is lost`);
  if (claim.attempt !== null) {
    assert.equal(action.starts, 1, `the start of ${key} was acknowledged and is lost`);
    assert.equal(action.attempt, sha256Hex(utf8(claim.attempt)));
  }
  if (claim.hasResult) assert.equal(action.results, 1, `the result of ${key} was acknowledged and is lost`);
}
