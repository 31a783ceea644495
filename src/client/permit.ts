import type { ActionRequest } from "./types.ts";

/** What the tool is about to run, as it was submitted; `context` is not part of it. */
export type PermittedRequest = Pick<ActionRequest, "agent_id" | "tool" | "operation" | "params">;

/** A JSON Web Key Set (RFC 7517). */
export interface PermitKeySet {
  keys: readonly object[];
}

export interface VerifyPermitOptions {
  /**
   * The service's `/.well-known/jwks.json`: its URL, which is read at most once a minute, and again for a key that is not
   * in it; the set itself; or what gives the set.
   */
  jwks: string | URL | PermitKeySet | (() => PermitKeySet | Promise<PermitKeySet>);
  /** The tool's own name, which the permit must be for. */
  audience: string;
  /** Name of the log, where the permit must be of one. Absent: whoever holds a key of the set. */
  issuer?: string;
  /** Seconds by which the service's clock may be ahead of this one. A permit's end is not put off. Default 5. */
  clockTolerance?: number;
  /** Milliseconds; for tests. Default: the time of day. */
  now?: () => number;
}

/** What a permit says: docs/permits.md. Times in seconds. */
export interface PermitClaims {
  iss: string;
  sub: string;
  aud: string;
  iat: number;
  exp: number;
  jti: string;
  agent_id: string;
  operation: string;
  action_digest: string;
  request_hash: string;
  decision_hash: string;
}

export type PermitRefusedReason =
  /** No permit's text, or its claims have another form. */
  | "malformed"
  /** Signed with an algorithm that permits are not signed with. */
  | "wrong_algorithm"
  | "wrong_type"
  /** By no key of the set. */
  | "unknown_key"
  | "bad_signature"
  | "wrong_issuer"
  /** For another tool. */
  | "wrong_audience"
  | "not_yet_valid"
  | "expired"
  /** For another agent, operation or other parameters. */
  | "wrong_request"
  /** What is to run has no canonical JSON. */
  | "unreadable_request"
  /** The keys could not be read: the same may do better later. */
  | "keys_unavailable";

/** The permit does not cover the request: it must not run. */
export class PermitRefused extends Error {
  readonly reason: PermitRefusedReason;
  constructor(reason: PermitRefusedReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "PermitRefused";
    this.reason = reason;
  }
}

/**
 * Resolves with what the permit says when it is the service's, for this tool, for exactly this request, and holds now;
 * rejects with PermitRefused otherwise. It says nothing about whether the permit was used: `start` the action with it.
 * Loads `jose` with the first call.
 */
export async function verifyPermit(
  request: PermittedRequest,
  permit: string,
  options: VerifyPermitOptions,
): Promise<PermitClaims> {
  const { checkPermit } = await import("./permit-check.ts");
  return checkPermit(request, permit, options);
}
