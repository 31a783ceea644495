/** What the ledger records of what actions are decided with: policies, keys, agents, stops. */
import type { JsonObject } from "../json.ts";
import type { Actor } from "./actions.ts";

/** A policy as a change left it. */
export interface PolicyChange {
  id: string;
  name: string;
  managed_by: string | null;
  /** The newest. */
  version: number;
  /** Of that version's definition, where this change made it; null where it made none. */
  digest: string | null;
  /** Version that decides; null when none does. */
  active: number | null;
  deleted: boolean;
}

export interface PolicySetEntry {
  type: "policy_set";
  v: 1 | 2;
  at: string;
  /** Digest before and after. */
  previous: string | null;
  policy_set: string | null;
  policy_count: number;
  /** Null above 200 policies: the digest covers them, and an entry has a limit. */
  policies: { policy: string; version: number }[] | null;
  /** Where it came from. With `refused` and `fault`: something was offered and not taken, and the set is the one before. */
  source: Record<string, string>;
  /** Every policy that was stored, changed or deleted; with many of them in several entries. The set may be the one before. From version 2 on. */
  changes?: PolicyChange[];
  by: Actor | null;
}

export interface KeyEntry {
  type: "api_key";
  /** From version 2 on the key's own times are the entry's, also of keys that nobody's key made. */
  v: 1 | 2;
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

/** Decisions were halted, or let go on. */
export interface StopEntry {
  type: "stop";
  v: 1;
  at: string;
  /** `lift_asked`: by fewer people than it takes; the stop holds. */
  change: "placed" | "lift_asked" | "lifted";
  /** As it was placed. */
  stop: {
    id: string;
    /** Globs; null for every one. */
    agent: string | null;
    tool: string | null;
    policy: string | null;
    reason: string;
    /** When it ends by itself, null when never. */
    until: string | null;
  };
  /** Of whoever lifts it. */
  comment: string | null;
  /** How many people asked for it to be lifted so far, this one included, and how many it takes. 0 where it was placed. */
  approvals: number;
  needed: number;
  by: Actor;
}

/** Permits are signed with another key from here on. The store's first key stands in no entry. */
export interface PermitKeyEntry {
  type: "permit_key";
  v: 1;
  at: string;
  /** Ed25519, 32 bytes in hex. */
  public_key: string;
  /** The one before. */
  previous: string;
  /** Until when its permits are taken. */
  previous_until: string;
  /** Null: an operator at the machine. */
  by: null;
}

/** Checkpoints that cover this entry are signed with another key. The log's first key stands in no entry. */
export interface LogKeyEntry {
  type: "log_key";
  v: 1;
  at: string;
  /** The new key, as C2SP vkey. */
  vkey: string;
  /** The one before. */
  previous: string;
  /** Until when it signs too. */
  previous_until: string;
  /**
   * A checkpoint of this log before the entry, with one line more, `log-key <previous> <vkey>`, signed by both keys: nobody
   * else can say that one follows the other.
   */
  handover: string;
  /** Null: an operator at the machine. */
  by: null;
}
