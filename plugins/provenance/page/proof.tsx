/** Verifies one ledger entry in the browser, with the pinned key or else with the key that the service publishes. */
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

/** Returns the pinned key, or else the key that the service publishes. */
export async function readTrustedKey(signal?: AbortSignal): Promise<string> {
  return readPinnedKey() ?? (await request("GET /v1/provenance/keys", { signal })).keys[0]?.vkey ?? "";
}

/** @param props.hash leaf hash of an entry */
export function EntryProof({ hash }: { hash: string }) {
  const [result, setResult] = useState<VerifiedEntry | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const check = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      setResult(await verifyEntry(hash, await readTrustedKey()));
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
      {readPinnedKey() === null ? (
        <p class="quiet">
          No key is pinned in this browser, so the entry is verified with the key that the service publishes.{" "}
          <a href="#/provenance">Pin it</a>, so that this browser notices if the service ever shows a different history.
        </p>
      ) : null}
      <div class="row">
        <button type="button" disabled={isBusy || !canVerify} onClick={() => void check()}>
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
  const pinned = readPinnedKey();
  const signer =
    pinned === null ? "the published key" : vkey === pinned ? "the pinned key" : "a successor of the pinned key";
  return (
    <Notice kind="good">
      <p>
        <strong>Verified in this browser.</strong> The entry is at index {index} of the log{" "}
        <MarkedValue value={checkpoint.origin} />, under a checkpoint that {signer} signed.
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
