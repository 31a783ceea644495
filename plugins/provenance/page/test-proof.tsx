/** The proof of a settled test request, verified in the browser. */
import {
  type Action,
  encodeSegment,
  ErrorNotice,
  hasScope,
  Loading,
  MarkedValue,
  Notice,
  request,
  useLoad,
} from "../../console/app/kit.ts";
import { readPinnedKey, readTrustedKey, verifyEntry } from "./proof.tsx";
import { canVerify, toHex, type VerifiedEntry } from "./verify.ts";

const TEXTS = {
  proof: "Proof of your vote",
  noProof: "The ledger has a proof of your vote. Reading it needs the scope provenance:read.",
  verified: "Verified in this browser.",
  entry: (index: number, size: number) =>
    `Your vote is entry ${index.toLocaleString("en")} of ${size.toLocaleString("en")} in the ledger`,
  root: "Signed root:",
  showEntry: "Show the entry",
  unpinned: "Verified with the key that the service publishes.",
  pin: "Pin it, so that this browser notices if the service ever shows a different history.",
  cannotVerify: "browsers can verify only on https pages and on localhost; use assent verify",
} as const;

interface ProvedEntry extends VerifiedEntry {
  hash: string;
}

export function TestRequestProof({ action }: { action: Pick<Action, "id"> }) {
  if (!hasScope("provenance:read")) return <p class="quiet">{TEXTS.noProof}</p>;
  return <LoadedProof action={action} />;
}

function LoadedProof({ action: { id } }: { action: Pick<Action, "id"> }) {
  const { data, error, reload } = useLoad((signal) => proveVote(id, signal), [id]);
  return (
    <section aria-labelledby="test-proof">
      <h2 class="part" id="test-proof">
        {TEXTS.proof}
      </h2>
      <ErrorNotice error={error} onRetry={reload} />
      {data === null ? (
        error === null ? (
          <Loading what="the proof" />
        ) : null
      ) : (
        <Notice kind="good">
          <p>
            <strong>{TEXTS.verified}</strong> {TEXTS.entry(data.index, data.checkpoint.size)}{" "}
            <MarkedValue value={data.checkpoint.origin} />. {TEXTS.root}{" "}
            <code class="hash">{toHex(data.checkpoint.root)}</code>
          </p>
          <p>
            <a href={`#/provenance/${encodeSegment(data.hash)}`}>{TEXTS.showEntry}</a>
          </p>
        </Notice>
      )}
      {readPinnedKey() === null ? (
        <p class="quiet">
          {TEXTS.unpinned} <a href="#/provenance">{TEXTS.pin}</a>
        </p>
      ) : null}
    </section>
  );
}

/**
 * Verifies the entry of the last vote, or the action's last entry if there is no vote. Uses the pinned key, or else the
 * key that the service publishes.
 */
async function proveVote(id: string, signal: AbortSignal): Promise<ProvedEntry> {
  if (!canVerify) throw new Error(TEXTS.cannotVerify);
  const { events } = await request("GET /v1/actions/{id}/events", { path: [id], signal });
  const vote = events.findLast(({ type }) => type === "approval") ?? events.at(-1);
  if (vote === undefined) throw new Error("the ledger has no entry of this action");
  return { ...(await verifyEntry(vote.hash, await readTrustedKey(signal))), hash: vote.hash };
}
