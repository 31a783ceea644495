import type { ActionRequest } from "./action-types.ts";

/** The request that the tool is about to run, without `context`. If an approver changed it, the changed request. */
export type PermittedRequest = Pick<ActionRequest, "agent_id" | "tool" | "operation" | "params">;

/** A JSON Web Key Set (RFC 7517). */
export interface PermitKeySet {
  keys: readonly object[];
}

export interface VerifyPermitOptions {
  /**
   * The service's `/.well-known/jwks.json`: its URL, the key set, or a function that returns it. A URL is read at most
   * once a minute, and again for an unknown key.
   */
  jwks: string | URL | PermitKeySet | (() => PermitKeySet | Promise<PermitKeySet>);
  /** The tool's own name, which must be the permit's audience. */
  audience: string;
  /** Required issuer, which is the name of the log. Default: any issuer with a key in the set is accepted. */
  issuer?: string;
  /** Seconds by which the service's clock may be ahead. Does not extend a permit's expiry. Default 5. */
  clockTolerance?: number;
  /** Returns the current time in milliseconds; for tests. Default: the system clock. */
  now?: () => number;
}

/** A permit's claims (docs/permits.md). Times are in seconds. */
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
  /** The string is not a permit, or its claims are malformed. */
  | "malformed"
  /** The permit uses an algorithm that permits do not use. */
  | "wrong_algorithm"
  | "wrong_type"
  /** The signing key is not in the set. */
  | "unknown_key"
  | "bad_signature"
  | "wrong_issuer"
  /** The permit is for another tool. */
  | "wrong_audience"
  | "not_yet_valid"
  | "expired"
  /** The permit is for a different agent, operation or parameters. */
  | "wrong_request"
  /** The request cannot be written as canonical JSON. */
  | "unreadable_request"
  /** The keys could not be read; a retry can succeed. */
  | "keys_unavailable";

/** Thrown if the permit is not valid for the request, or cannot be verified. The request must not run. */
export class PermitRefused extends Error {
  readonly reason: PermitRefusedReason;
  constructor(reason: PermitRefusedReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "PermitRefused";
    this.reason = reason;
  }
}

/**
 * Verifies that the service signed the permit, that it is for this tool and exactly this request, and that it is valid
 * now. Returns the permit's claims; throws PermitRefused otherwise. Does not check whether the permit was already used;
 * to check that, pass the permit to `start`. Loads `jose` on the first call.
 * @example
 * const keys = { jwks: `${url}/.well-known/jwks.json`, audience: "stripe" };
 * const { sub } = await verifyPermit({ agent_id, tool: "stripe", operation: "refund", params }, permit, keys);
 * await assent.start(sub, { permit });
 */
export async function verifyPermit(
  request: PermittedRequest,
  permit: string,
  options: VerifyPermitOptions,
): Promise<PermitClaims> {
  const { checkPermit } = await import("./permit-check.ts");
  return checkPermit(request, permit, options);
}
