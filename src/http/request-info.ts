/** What the server at hand knows of a request besides the web's Request. */
export interface RequestInfo {
  /** A facade asks on behalf of a request that was counted already. Never set by a server. */
  inner?: true;
  /** Address of the client. */
  ip?(): string | undefined;
  /** Path and query as the client sent them; null where the server only knows the normalised form. */
  target?(): string | null;
  /** A quicker way to the body than the Request's. Rejects with BodyTooLarge above `max` bytes, and with what `take` throws, which is told of bytes before they are held. */
  readBody?(max: number, take: (bytes: number) => void): Promise<Uint8Array>;
  /** Reads and throws away what comes of a body that `readBody` gave up or never began, at most `most` bytes, while it keeps coming. */
  discardBody?(most: number, patienceMs: number): Promise<void>;
}

/** What a body reader rejects with when the body is larger than allowed. */
export class BodyTooLarge extends Error {}
