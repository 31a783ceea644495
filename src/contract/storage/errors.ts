/**
 * `full`: no room. `readonly`: may not write. `locked`: another process holds the store. `unavailable`: anything
 * passing. `conflict`: another transaction was in the way; nothing of this one was kept, and the same work may be done
 * again. `corrupt`: what was read cannot be. `invalid`: a value that could not be given back as it was; the
 * caller's fault, and nobody else's.
 */
export type StorageErrorKind = "full" | "readonly" | "locked" | "unavailable" | "conflict" | "corrupt" | "invalid";

export class StorageError extends Error {
  readonly kind: StorageErrorKind;
  constructor(kind: StorageErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StorageError";
    this.kind = kind;
  }
}

/** What a read resolves to; null where the store holds it and it was damaged. Rejects with everything else. */
export async function nullIfCorrupt<T>(read: Promise<T>): Promise<T | null> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof StorageError && error.kind === "corrupt") return null;
    throw error;
  }
}
