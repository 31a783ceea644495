/** The vote bar of one request, with the additions of features to an approval. */
import type { Ref } from "preact";
import { useState } from "preact/hooks";
import type { VoteAddition, VoteTerms } from "../core/parts.ts";
import { Panels } from "../ui/panels.tsx";
import { VoteBar, type VoteBarHandle } from "./vote-bar.tsx";

interface Props {
  id: string;
  /** Null if the person votes by link, which features cannot add to. */
  terms: VoteTerms | null;
  handle?: Ref<VoteBarHandle>;
  /** Whether a vote without an addition can be undone. */
  canUndo?(approve: boolean): boolean;
  onLeave?(): void;
  cast(approve: boolean, reason: string, addition: VoteAddition | null): Promise<boolean>;
}

export function VoteWithAddition({
  id,
  terms,
  cast,
  handle = null,
  canUndo = () => false,
  onLeave = () => undefined,
}: Props) {
  const [addition, setAddition] = useState<VoteAddition | null>(null);
  return (
    <>
      {terms === null ? null : <Panels place="vote" id={id} terms={terms} onChoose={setAddition} />}
      <VoteBar
        subject={id}
        handle={handle}
        onLeave={onLeave}
        canUndo={(approve) => (!approve || addition === null) && canUndo(approve)}
        canApprove={terms?.blocked == null}
        approve={addition?.label ?? "Approve"}
        cast={(approve, reason) => cast(approve, reason, approve ? addition : null)}
      />
    </>
  );
}
