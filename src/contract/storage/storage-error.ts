/**
 * - `full`: no disk space. `readonly`: writes are not permitted. `locked`: another process has the store open.
 * - `unavailable`: a temporary failure.
 * - `conflict`: another transaction interfered. This transaction was rolled back, and the same work can be retried.
 * - `corrupt`: the stored data is damaged.
 * - `invalid`: the caller passed a value that the store cannot represent exactly.
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

/**
 * Resolves to the result of `read`, or to null if the stored data is corrupt. Rejects with any other error.
 * @example
 * const action = await nullIfCorrupt(storage.action(id));
 */
export async function nullIfCorrupt<T>(read: Promise<T>): Promise<T | null> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof StorageError && error.kind === "corrupt") return null;
    throw error;
  }
}
