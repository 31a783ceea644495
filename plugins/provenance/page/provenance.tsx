/** The ledger page: size, signature, and the verification of a proof, all computed in this browser. */
import { useState } from "preact/hooks";
import {
  ActionName,
  Badge,
  CopyButton,
  encodeSegment,
  ErrorNotice,
  FactList,
  Hash,
  JsonBlock,
  LoadedPage,
  MarkedValue,
  Notice,
  request,
  Time,
  useLoad,
} from "../../console/app/kit.ts";
import { storePinnedKey, readPinnedKey, readTrustedKey, EntryProof, VerifiedProof, verifyEntry } from "./proof.tsx";
import { canVerify, type Checkpoint, fromHex, verifyProof } from "./verify.ts";
import { checkLedger, type LedgerKeys, rebindStoredCheckpoint } from "./ledger-check.ts";

const TEXTS = {
  title: "Provenance",
  again: "Check again",
  intro: "Every decision is an entry of a Merkle log. A later change or omission of a signed entry can be detected.",
  checkpoint: "Checkpoint",
  asSigned: "As signed",
  key: "Key",
  keyHelp:
    "A signature proves as much as its key. Get the ledger's verifier key from the operator of the service, not from this page, and paste it.",
  vkey: "Verifier key",
  pin: "Pin this key",
  served: "The key that the service reports",
  servedHelp: "Pinning it proves only that the log stays the same from now on.",
  pinned: "Pinned in this browser:",
  otherKey: "The service reports a different key:",
  otherKeyHelp: "Ask the operator before you trust either.",
  newKey: "The log has a new key, and the pinned key signed this change:",
  pinNew: "Pin the new key",
  unpin: "Unpin",
  verify: "Verify a proof",
  leafHash: "Leaf hash",
  leafHashHelp: "The decision_hash of an action, or the hash of any entry.",
  proofFile: "Proof file",
  proofFileHelp: "(.tlog-proof; if you choose no file, the service sends the proof)",
  verifyButton: "Verify in this browser",
  notAHash: "a leaf hash has 64 hex digits, such as the decision_hash of an action",
  openEntry: "Open the entry",
  entryTitle: "Ledger entry",
  proof: "Proof",
  recorded: "What was recorded",
};

/** @param props.id leaf hash of an entry */
export function Provenance({ id }: { id: string | null }) {
  return id === null ? <Ledger /> : <Entry key={id} hash={id} />;
}

function Ledger() {
  const [vkey, setVkey] = useState(readPinnedKey());
  const loaded = useLoad(
    async (signal) => {
      const keys = await request("GET /v1/provenance/keys", { signal });
      return { keys, check: await checkLedger(keys, vkey) };
    },
    [vkey],
  );
  return (
    <LoadedPage
      title={TEXTS.title}
      what="the ledger"
      loaded={loaded}
      side={
        <button type="button" onClick={loaded.reload}>
          {TEXTS.again}
        </button>
      }
    >
      {({ keys, check }) => (
        <>
          <p>{TEXTS.intro}</p>
          <section class="card" aria-labelledby="ledger">
            <h2 id="ledger">{TEXTS.checkpoint}</h2>
            <Notice kind={check.kind}>
              <MarkedValue value={check.text} />
            </Notice>
            <CheckpointFacts keys={keys} />
          </section>
          <PinnedKey keys={keys} vkey={vkey} next={check.next} onPinned={() => setVkey(readPinnedKey())} />
          <VerifyProof />
        </>
      )}
    </LoadedPage>
  );
}

function CheckpointFacts({ keys: { origin, checkpoint } }: { keys: LedgerKeys }) {
  const [, size = "", root = ""] = checkpoint.split("\n");
  return (
    <>
      <FactList
        rows={[
          ["Log", origin],
          ["Entries", Number(size).toLocaleString("en")],
          ["Root (base64)", <Hash value={root} />],
        ]}
      />
      <details>
        <summary>{TEXTS.asSigned}</summary>
        <pre class="data" tabIndex={0} role="region" aria-label="Checkpoint as signed">
          <MarkedValue value={checkpoint} lines />
        </pre>
      </details>
    </>
  );
}

interface PinProps {
  keys: LedgerKeys;
  vkey: string | null;
  /** The successor of the pinned key; null if the key has no successor. */
  next: string | null;
  onPinned(): void;
}

function PinnedKey({ keys, vkey, next, onPinned }: PinProps) {
  const [error, setError] = useState<unknown>(null);
  const set = async (value: string | null): Promise<void> => {
    try {
      await storePinnedKey(value);
      if (value !== vkey) rebindStoredCheckpoint(value, value !== null && value === next);
      setError(null);
      onPinned();
    } catch (fault) {
      setError(fault);
    }
  };
  const served = keys.keys.map((key) => key.vkey);
  return (
    <section class="card" aria-labelledby="key">
      <h2 id="key">{TEXTS.key}</h2>
      {vkey === null ? (
        <PinForm served={served[0] ?? ""} onPin={(value) => void set(value)} />
      ) : (
        <>
          <p>
            {TEXTS.pinned} <Hash value={vkey} />
          </p>
          {served.includes(vkey) ? null : (
            <Notice kind="bad">
              {TEXTS.otherKey} <Hash value={served.join(", ")} />. {TEXTS.otherKeyHelp}
            </Notice>
          )}
          {next === null ? null : (
            <Notice kind="busy">
              {TEXTS.newKey} <Hash value={next} />{" "}
              <button type="button" onClick={() => void set(next)}>
                {TEXTS.pinNew}
              </button>
            </Notice>
          )}
          <button type="button" onClick={() => void set(null)}>
            {TEXTS.unpin}
          </button>
        </>
      )}
      <ErrorNotice error={error} />
    </section>
  );
}

/** @param props.served the current key according to the service */
function PinForm({ served, onPin }: { served: string; onPin: (vkey: string) => void }) {
  return (
    <>
      <p>{TEXTS.keyHelp}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onPin(new FormData(event.currentTarget).get("vkey") as string);
        }}
      >
        <div class="field">
          <label for="vkey">{TEXTS.vkey}</label>
          <input id="vkey" name="vkey" required autocomplete="off" spellcheck={false} />
        </div>
        <button type="submit" class="primary">
          {TEXTS.pin}
        </button>
      </form>
      <details>
        <summary>{TEXTS.served}</summary>
        <p>{TEXTS.servedHelp}</p>
        <p>
          <Hash value={served} />
        </p>
        <p class="row">
          <CopyButton value={served} />
        </p>
      </details>
    </>
  );
}

type VerificationOutcome =
  | { hash: string; result: { index: number; checkpoint: Checkpoint; vkey: string; request?: unknown } }
  | { error: unknown };

async function verifyForm(form: HTMLFormElement): Promise<VerificationOutcome> {
  const fields = new FormData(form);
  const hash = (fields.get("hash") as string).trim().toLowerCase();
  const file = fields.get("file") as File;
  try {
    if (!/^[0-9a-f]{64}$/.test(hash)) throw new Error(TEXTS.notAHash);
    const vkey = await readTrustedKey();
    const result =
      file.size > 0 ? await verifyProof(await file.text(), fromHex(hash), vkey) : await verifyEntry(hash, vkey);
    return { hash, result };
  } catch (error) {
    return { error };
  }
}

function VerifyProof() {
  const [outcome, setOutcome] = useState<VerificationOutcome | null>(null);
  return (
    <section class="card" aria-labelledby="verify">
      <h2 id="verify">{TEXTS.verify}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void verifyForm(event.currentTarget).then(setOutcome);
        }}
      >
        <div class="field">
          <label for="hash">{TEXTS.leafHash}</label>
          <input id="hash" name="hash" required autocomplete="off" spellcheck={false} aria-describedby="hash-help" />
          <span id="hash-help" class="quiet">
            {TEXTS.leafHashHelp}
          </span>
        </div>
        <div class="field">
          <label for="file">
            {TEXTS.proofFile} <span class="quiet">{TEXTS.proofFileHelp}</span>
          </label>
          <input id="file" name="file" type="file" accept=".tlog-proof,text/plain" />
        </div>
        <button type="submit" class="primary" disabled={!canVerify}>
          {TEXTS.verifyButton}
        </button>
      </form>
      {outcome === null ? null : "error" in outcome ? (
        <ErrorNotice error={outcome.error} />
      ) : (
        <>
          <VerifiedProof {...outcome.result} />
          <p>
            <a href={`#/provenance/${encodeSegment(outcome.hash)}`}>{TEXTS.openEntry}</a>
          </p>
        </>
      )}
    </section>
  );
}

function Entry({ hash }: { hash: string }) {
  const loaded = useLoad((signal) => request("GET /v1/provenance/{hash}", { path: [hash], signal }), [hash]);
  const action = loaded.data?.entry["action_id"];
  return (
    <LoadedPage
      title={loaded.data === null ? TEXTS.entryTitle : `Entry ${loaded.data.index}`}
      what="the entry"
      loaded={loaded}
      back={{ href: "#/provenance", text: TEXTS.title }}
    >
      {({ type, at: time, entry }) => (
        <>
          <section class="card" aria-label={TEXTS.entryTitle}>
            <FactList
              rows={[
                ["Type", <Badge value={type} />],
                ["At", <Time at={time} />],
                [
                  "Action",
                  typeof action === "string" ? (
                    <a href={`#/actions/${encodeSegment(action)}`}>
                      <ActionName id={action} />
                    </a>
                  ) : null,
                ],
              ]}
            />
          </section>
          <section class="card">
            <h2>{TEXTS.proof}</h2>
            <EntryProof hash={hash} />
          </section>
          <section class="card">
            <h2>{TEXTS.recorded}</h2>
            <JsonBlock value={entry} label="Entry" />
          </section>
        </>
      )}
    </LoadedPage>
  );
}
