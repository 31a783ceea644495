/** The card with the proof of an action's decision. */
import { type Action, Card } from "../../console/app/kit.ts";
import { EntryProof } from "./proof.tsx";

export function ActionProof({ action }: { action: Action }) {
  return (
    <Card id="proof" title="Proof">
      <p>Leaf hash of the decision in the ledger:</p>
      <EntryProof hash={action.decision_hash} />
    </Card>
  );
}
