/** Ledger entries about everything that decisions depend on: policies, keys, agents, users, stops and others. */
import type { JsonObject } from "../json.ts";
import type { Actor } from "./actions.ts";

/** A policy after a change. */
export interface RecordedPolicyChange {
  id: string;
  name: string;
  managed_by: string | null;
  /** The newest version of the policy. */
  version: number;
  /** Digest of the version's definition if this change created the version; else null. */
  digest: string | null;
  /** The active version; null if no version is active. */
  active: number | null;
  deleted: boolean;
}

export interface PolicySetEntry {
  type: "policy_set";
  v: 1;
  at: string;
  /** Digest of the policy set before the change. */
  previous: string | null;
  policy_set: string | null;
  policy_count: number;
  /**
   * The policies of the set; null if there are more than 200, because an entry's size is limited. The digest covers all
   * policies.
   */
  policies: { policy: string; version: number }[] | null;
  /**
   * Origin of the change. If it contains `refused` and `fault`, the source's new set was rejected and the previous set
   * stays active.
   */
  source: Record<string, string>;
  /**
   * Every policy that was stored, changed or deleted, split into several entries if there are many. The active set can
   * be unchanged.
   */
  changes: RecordedPolicyChange[];
  by: Actor | null;
}

export interface ApiKeyEntry {
  type: "api_key";
  v: 1;
  at: string;
  change: "created" | "revoked";
  key: {
    id: string;
    name: string;
    hash: string;
    scopes: string[];
    agent_id: string | null;
    owner: string | null;
    expires_at: string | null;
  };
  by: Actor | null;
}

export interface AgentEntry {
  type: "agent";
  v: 1;
  at: string;
  change: "registered" | "updated" | "suspended" | "resumed";
  agent: JsonObject;
  by: Actor | null;
}

/** A user was created, changed or deactivated. */
export interface UserEntry {
  type: "user";
  v: 1;
  at: string;
  change:
    | "created"
    | "updated"
    | "link_created"
    | "passkey_added"
    | "passkey_removed"
    | "recovery_codes_created"
    | "ended"
    | "resumed";
  /** The user after the change. */
  user: {
    id: string;
    /** Display name. It does not identify the user. */
    name: string;
    /** Names of roles (src/domain/roles.ts). */
    roles: string[];
    groups: string[];
    /** Accounts at identity providers. The pair of issuer and subject identifies the user. */
    identities: { issuer: string; subject: string }[];
    passkeys: {
      /** Credential id, base64url. */
      id: string;
      /** COSE key, base64url. */
      public_key: string;
      /** Origin of the page on which the passkey was created. Its host name is the id of the relying party. */
      origin: string;
      name: string;
      added_at: string;
    }[];
    /** One-time link that adds a passkey: SHA-256 of its token, hex. Null if no unused link exists. */
    link: { hash: string; expires_at: string } | null;
    /** SHA-256 of each unused recovery code, hex. */
    recovery_codes: string[];
    /**
     * Names of the provider's groups to which a SCIM client added the user. The service derives `roles` and `groups`
     * from them.
     */
    provider_groups: string[];
    /** Source that manages the user: `oidc:<provider>`, `scim:<provider>`, or null for this service. */
    managed_by: string | null;
    /**
     * Digest of the e-mail address that the provider has verified (src/domain/person-reference.ts); null if there is
     * none.
     */
    email: string | null;
    created_at: string;
    ended_at: string | null;
  };
  reason: string | null;
  /**
   * Id of the passkey with which the user confirmed a change of their own passkeys or recovery codes. Null for other
   * changes, and for users of an identity provider without a passkey.
   */
  confirmed_by: string | null;
  /** Null if the operator on the host or an identity provider made the change. */
  by: Actor | null;
}

/**
 * A delegation was created or ended: one user lets another approve on their behalf. A delegation also becomes inactive
 * without an entry: at the time `until`, and when either user is deactivated.
 */
export interface DelegationEntry {
  type: "delegation";
  v: 1;
  at: string;
  change: "created" | "ended";
  /** The delegation with its original terms. */
  delegation: {
    id: string;
    /** Id of the user on whose behalf the other user approves. */
    from: string;
    to: string;
    /** Groups and rotas for which the delegate's vote counts; null for all groups of the delegator. */
    groups: string[] | null;
    /** Globs of the agents and tools that the delegation covers; null for all agents or tools. */
    agents: string[] | null;
    tools: string[] | null;
    starts_at: string;
    until: string;
  };
  /** Cause of the end; null when the delegation was created. */
  cause: "revoked" | "user_ended" | null;
  comment: string | null;
  /** The delegator, or the credential that ended the delegation. */
  by: Actor;
}

/** A new key signs permits that are issued after this entry. No entry records the store's first permit key. */
export interface PermitKeyEntry {
  type: "permit_key";
  v: 1;
  at: string;
  /** The new Ed25519 key: 32 bytes in hex. */
  public_key: string;
  /** The public key that it replaces. */
  previous: string;
  /** End of the period in which permits signed by the previous key are accepted. */
  previous_until: string;
  /** Null, because only an operator on the host can rotate this key. */
  by: null;
}

/** A new key signs the checkpoints that include this entry. No entry records the log's first key. */
export interface LogKeyEntry {
  type: "log_key";
  v: 1;
  at: string;
  /** The new key, as C2SP vkey. */
  vkey: string;
  /** The previous key. */
  previous: string;
  /** End of the overlap in which the previous key signs in addition to the new key. */
  previous_until: string;
  /**
   * A checkpoint of the log before this entry, with the extension line `log-key <previous> <vkey>`, signed by both
   * keys. Only the holder of both keys can produce it.
   */
  handover: string;
  /** Null, because only an operator on the host can rotate this key. */
  by: null;
}
