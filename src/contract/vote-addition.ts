/**
 * Lets an approving vote allow later actions, too: the member `grant` of its body. The entry of the vote and its
 * signature contain the terms.
 */
import type { TObject } from "@sinclair/typebox";
import type { Facts, GrantTerms, RequiredApproval } from "../domain/policy/policy-types.ts";
import type { CompiledPolicySet } from "../domain/policy/compile/compile.ts";
import type { JsonObject } from "../domain/json.ts";
import type { VoteGrantTerms } from "../domain/gesture.ts";
import type { ErrorKind } from "./errors.ts";
import type { Credential } from "./host.ts";
import type { LedgerTransaction } from "./ledger.ts";
import type { ActionRow, Storage } from "./storage.ts";

/** At most one plugin declares it. */
export interface VoteAddition<Host = never> {
  /** Schema of the member `grant` of a vote's body. */
  readonly body: TObject;
  /** Errors of a vote with a grant. */
  readonly errors: readonly ErrorKind[];
  /**
   * Throws a refusal unless this vote may contain a grant. `caller` is null for a vote by link whose voter no facade has
   * verified.
   */
  assertMayCarry(caller: Pick<Credential, "session"> | null, approve: boolean): void;
  /** Returns the terms in the form that is recorded and signed. Throws VALIDATION_FAILED. */
  readTerms(body: unknown): VoteGrantTerms;
  /** Records the grant. The entry of the vote follows. Throws a refusal if the rules do not allow it. */
  record(host: Host, tx: LedgerTransaction, caller: Grantor, action: ActionRow, grant: VotedGrant): void;
  /** Returns the grant in the form in which its own route returns it. */
  render(host: Host, id: string): Promise<JsonObject>;
  /**
   * Returns the grants that the approval page of a pending action offers: their scope in CEL, and one line that is safe
   * to display.
   * @param approval what the newest decision requires
   */
  listOffers(
    storage: Pick<Storage, "actions">,
    action: ActionRow,
    policies: CompiledPolicySet,
    approval: RequiredApproval,
  ): Promise<readonly VoteOffer[]>;
}

/** The caller whose vote creates a grant. */
export type Grantor = Pick<Credential, "key" | "principal" | "visibility" | "hasScope" | "session">;

export interface VoteOffer {
  scope: string;
  text: string;
}

export interface VotedGrant {
  id: string;
  terms: VoteGrantTerms;
  /** Caps of the rules that require this approval; null if they exclude grants or require more approvers. */
  largest: GrantTerms | null;
  facts: Pick<Facts, "principal">;
  reason: string | null;
  /** Credential id of the passkey that signed the vote together with the terms; null if no passkey signed. */
  passkey: string | null;
}
