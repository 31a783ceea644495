/** The proof of a settled test request, verified in the browser. */
import type { Action } from "../core/api-types.ts";
import { encodeSegment, request } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { Loading, Notice, ErrorNotice, MarkedValue } from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";
import { readPinnedKey, verifyEntry } from "../ui/proof.tsx";
import { canVerify, toHex, type VerifiedEntry } from "../verify.ts";
import { FIRST_STEPS as TEXTS } from "./first-steps-texts.ts";

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
  const { keys } = await request("GET /v1/provenance/keys", { signal });
  const vkey = readPinnedKey() ?? keys[0]?.vkey ?? "";
  return { ...(await verifyEntry(vote.hash, vkey)), hash: vote.hash };
}
