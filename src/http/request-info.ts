import type { VerifiedAccount } from "../contract/resource.ts";

/** Information about a request that the server has and the web's Request does not. */
export interface RequestInfo {
  /**
   * Set for a request that a facade makes. Such a request is not counted for rate limits, because the request that the
   * facade received was counted already. Servers never set this member.
   */
  inner?: true;
  /** Set with `inner` only. See `RequestContext.account`. */
  account?: VerifiedAccount;
  /** Address of the client. */
  ip?(): string | undefined;
  /** Returns path and query as the client sent them; null if the server has only the normalised form. */
  target?(): string | null;
  /**
   * Reads the body faster than the Request. Calls `take` before it uses more memory, with the number of bytes. Rejects
   * with BodyTooLarge if the body exceeds `max` bytes, and with any error of `take`.
   */
  readBody?(max: number, take: (bytes: number) => void): Promise<Uint8Array>;
  /** Reads and discards the rest of a body. Stops after `maxBytes`, or when no data arrives for `timeoutMs`. */
  discardBody?(maxBytes: number, timeoutMs: number): Promise<void>;
}

/** Thrown by a body reader if the body is larger than allowed. */
export class BodyTooLarge extends Error {}
