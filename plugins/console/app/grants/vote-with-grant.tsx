/**
 * The vote bar of one request. If the rules and the voter's scopes permit it, the bar also offers to grant later
 * requests.
 */
import type { Ref } from "preact";
import { useState } from "preact/hooks";
import { hasScope } from "../core/me.ts";
import { VoteBar, type VoteBarHandle } from "../inbox/vote-bar.tsx";
import { GrantOffer, type GrantLimits, type GrantTerms } from "./offer.tsx";
import { TEXTS } from "./strings.ts";

interface Props {
  id: string;
  /** Null if the rules do not allow grants. */
  limits: GrantLimits | null;
  handle?: Ref<VoteBarHandle>;
  /** Whether a vote without a grant can be undone. */
  canUndo?(approve: boolean): boolean;
  onLeave?(): void;
  cast(approve: boolean, reason: string, grant: GrantTerms | null): Promise<boolean>;
}

export function VoteWithGrant({
  id,
  limits,
  cast,
  handle = null,
  canUndo = () => false,
  onLeave = () => undefined,
}: Props) {
  const [grant, setGrant] = useState<GrantTerms | null>(null);
  return (
    <>
      {limits === null || !hasScope("grants:write") ? null : <GrantOffer {...{ id, limits }} onChoose={setGrant} />}
      <VoteBar
        subject={id}
        handle={handle}
        onLeave={onLeave}
        canUndo={(approve) => (!approve || grant === null) && canUndo(approve)}
        approve={grant === null ? "Approve" : TEXTS.approve}
        cast={(approve, reason) => cast(approve, reason, approve ? grant : null)}
      />
    </>
  );
}
