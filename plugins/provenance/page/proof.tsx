/** Verifies one ledger entry in the browser, with the pinned key. */
import { useState } from "preact/hooks";
import {
  downloadText,
  encodeSegment,
  ErrorNotice,
  FactList,
  fetchText,
  Hash,
  JsonBlock,
  MarkedValue,
  Notice,
  request,
} from "../../console/app/kit.ts";
import { canVerify, parseVkey, toHex, verifyProofResponse, type Checkpoint, type VerifiedEntry } from "./verify.ts";

const STORE = "assent.pinned";

/** Returns the verifier key that this browser trusts; null if none is pinned. It is not secret. */
export function readPinnedKey(): string | null {
  return localStorage.getItem(STORE);
}

/** Pins a verifier key; null removes the pinned key. Throws an Error unless the string is a verifier key. */
export async function storePinnedKey(vkey: string | null): Promise<void> {
  if (vkey === null) return localStorage.removeItem(STORE);
  await parseVkey(vkey);
  localStorage.setItem(STORE, vkey.trim());
}

/**
 * Reads the proof of an entry and verifies it: computes the hash, follows the path, and checks the signature.
 * @param hash leaf hash of the entry, hex
 */
export async function verifyEntry(hash: string, vkey: string): Promise<VerifiedEntry> {
  return verifyProofResponse(await request("GET /v1/provenance/{hash}/proof", { path: [hash] }), hash, vkey);
}

/** @param props.hash leaf hash of an entry */
export function EntryProof({ hash }: { hash: string }) {
  const [result, setResult] = useState<VerifiedEntry | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const vkey = readPinnedKey();
  const check = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      setResult(await verifyEntry(hash, vkey ?? ""));
    } catch (problem) {
      setResult(null);
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const save = async (): Promise<void> => {
    try {
      downloadText(
        `${hash.slice(0, 16)}.tlog-proof`,
        await fetchText(`/v1/provenance/${encodeSegment(hash)}/proof.tlog-proof`),
      );
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      <p>
        <Hash value={hash} />
      </p>
      {canVerify ? null : (
        <Notice kind="busy">
          Browsers can verify only on https pages and on localhost. Save the proof and verify it with{" "}
          <code>assent verify</code>.
        </Notice>
      )}
      {vkey === null ? (
        <Notice kind="busy">
          Nothing can be verified yet, because no key is pinned in this browser:{" "}
          <a href="#/provenance">pin the ledger's key</a> first.
        </Notice>
      ) : null}
      <div class="row">
        <button type="button" disabled={isBusy || vkey === null || !canVerify} onClick={() => void check()}>
          Verify in this browser
        </button>
        <button type="button" onClick={() => void save()}>
          Save the proof
        </button>
      </div>
      <ErrorNotice error={error} />
      {result === null ? null : <VerifiedProof {...result} />}
    </>
  );
}

export function VerifiedProof({
  index,
  checkpoint,
  vkey,
  request: committed = null,
}: {
  index: number;
  checkpoint: Checkpoint;
  vkey: string;
  request?: unknown;
}) {
  const isFollower = vkey !== readPinnedKey();
  return (
    <Notice kind="good">
      <p>
        <strong>Verified in this browser.</strong> The entry is at index {index} of the log{" "}
        <MarkedValue value={checkpoint.origin} />, under a checkpoint that{" "}
        {isFollower ? "a successor of the pinned key signed." : "the pinned key signed."}
        {committed === null ? null : " The entry commits to the request below."}
      </p>
      <FactList
        rows={[
          ["Log size then", checkpoint.size],
          ["Root", <Hash value={toHex(checkpoint.root)} />],
        ]}
      />
      {committed === null ? null : <JsonBlock value={committed} label="Request" />}
    </Notice>
  );
}
