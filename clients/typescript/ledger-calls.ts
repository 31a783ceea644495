/** The client's methods that read the ledger: events, proofs and replays. */
import type { ApiCalls } from "./api-calls.ts";
import type { CallOptions, EventQuery, LedgerEvent } from "./action-types.ts";

/** Returns the methods that read the ledger. `proof` verifies proofs against the pinned key `logKey`. */
export function ledgerCalls(
  { call, transport }: ApiCalls,
  { logKey, onLogKey }: { logKey?: string | undefined; onLogKey?: ((vkey: string) => void) | undefined },
) {
  return {
    /**
     * Yields new events, or all events after `after`. Reconnects if the connection ends, and never returns. Throws
     * Unauthorized or RequestRefused if the service refuses the stream, and the reason of an aborted signal.
     */
    async *events(query: EventQuery = {}): AsyncGenerator<LedgerEvent, never, undefined> {
      const { followEvents } = await import("./events.ts");
      return yield* followEvents(transport, query);
    },
    replay: (request: Record<string, unknown>, { signal }: CallOptions = {}) =>
      call<{ equal: boolean; fields: { field: string; equal: boolean }[]; now: { changed: boolean } | null }>(
        "POST",
        "/v1/replay",
        request,
        { signal, repeatable: true },
      ),
    /** Returns a proof. With a pinned `logKey`, verifies it and throws ProofInvalid if it is invalid. */
    async proof(hash: string, { signal }: CallOptions = {}): Promise<Record<string, unknown>> {
      const path = `/v1/provenance/${encodeURIComponent(hash)}/proof`;
      const proof = await call<Record<string, unknown>>("GET", path, undefined, { signal });
      if (logKey === undefined) return proof;
      const { vkey } = await (await import("./proof.ts")).verifyProof(proof, hash, logKey);
      if (vkey !== logKey) onLogKey?.(vkey);
      return proof;
    },
    logKeys: ({ signal }: CallOptions = {}) =>
      call<{ origin: string; keys: { vkey: string }[] }>("GET", "/v1/provenance/keys", undefined, { signal }),
  };
}
