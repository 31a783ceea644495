/** Information of the server about a request that the web standard's Request does not have. */
export interface RequestInfo {
  /** Set for the inner request that a facade makes. The outer request was already counted. Never set by a server. */
  inner?: true;
  /** Address of the client. */
  ip?(): string | undefined;
  /** Returns path and query as the client sent them, or null if the server knows only the normalised form. */
  target?(): string | null;
  /**
   * Reads the body faster than the Request. Rejects with BodyTooLarge above `max` bytes, and with any error of `take`,
   * which is called with the number of bytes before they are stored.
   */
  readBody?(max: number, take: (bytes: number) => void): Promise<Uint8Array>;
  /** Reads and discards a body that was not read to its end: up to `maxBytes`, until no data arrives for `timeoutMs`. */
  discardBody?(maxBytes: number, timeoutMs: number): Promise<void>;
}

/** Thrown by a body reader if the body is larger than allowed. */
export class BodyTooLarge extends Error {}
