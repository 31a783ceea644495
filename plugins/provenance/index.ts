/** Serves the ledger to verifiers: entries by leaf hash, proofs, checkpoints and keys. */
import { Type } from "@sinclair/typebox";
import {
  canSee,
  type CoreHost,
  decodeEntry,
  defineCorePlugin,
  encodeRequest,
  formatTlogProof,
  fromHex,
  parseStoredRequest,
  parseVkey,
  type SignedCheckpoint,
  toBase64,
  toHex,
  utf8,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, type Route, toRfc3339 } from "../../src/plugin.ts";
import type { EntryRow } from "../../src/storage/index.ts";
import * as schema from "./schemas.ts";
import { entryBundle, hashTile } from "./tile-replies.ts";

const Options = Type.Object(
  {
    public: Type.Boolean({
      default: false,
      description:
        "Checkpoint, consistency proofs, keys and tiles of hashes need no credential, so that witnesses can follow the log. Entries never become public.",
    }),
  },
  { additionalProperties: false },
);

const TAG = "provenance";

export default defineCorePlugin({
  name: "provenance",
  options: Options,
  setup: (host, options) => ({ routes: routes(host, options.public) }),
});

function routes(host: CoreHost, open: boolean): Route[] {
  async function find(hash: string, { visibility }: Credential): Promise<EntryRow> {
    const row = await host.storage.entryByHash(fromHex(hash));
    // Read the action too: only its row has the tool, which the visibility of group members depends on.
    const action = "within" in visibility && row?.action_id != null ? await host.storage.action(row.action_id) : null;
    if (row === null || !canSee(visibility, { ...row, tool: action?.tool ?? null })) {
      throw new Refusal("ENTRY_NOT_FOUND", `no entry that this key may see has the leaf hash ${hash}`);
    }
    return row;
  }

  /**
   * Returns the opening of the entry's commitment. It contains the parameters, so the key also needs `actions:read`.
   */
  async function opening(
    { action_id }: EntryRow,
    credential: Credential,
  ): Promise<{ salt: string | null; request: string | null; erased_at: string | null } | null> {
    const action =
      action_id === null || !credential.hasScope("actions:read") ? null : await host.storage.action(action_id);
    if (action === null || !canSee(credential.visibility, action)) return null;
    const { salt, erased_at } = action;
    // The row may have the members in the order that the client sent, but the hash is of the canonical form.
    const request = parseStoredRequest(action);
    return erased_at === null && request !== null
      ? { salt, request: encodeRequest(request).text, erased_at: null }
      : { salt: null, request: null, erased_at: toRfc3339(erased_at ?? 0) };
  }

  /** Returns the newest checkpoint with a witness's cosignature. Throws NOT_WITNESSED if it does not cover the entry. */
  async function witnessed(index: number): Promise<SignedCheckpoint> {
    const signed = await host.ledger.witnessed();
    if (signed === null || signed.size <= index)
      throw new Refusal(
        "NOT_WITNESSED",
        `the newest checkpoint that a witness cosigned is of size ${signed?.size ?? 0}; witnesses are asked every ledger.witness_seconds, where ledger.witnesses names some`,
      );
    return signed;
  }

  const scope = open ? null : "provenance:read";
  // The core adds this error to routes that need a key.
  const unkeyed = open ? (["STORAGE_UNAVAILABLE"] as const) : [];
  const checkpoint = {
    method: "GET",
    tag: TAG,
    scope,
    responses: { 200: { description: "C2SP tlog-checkpoint.", contentType: "text/plain" } },
    errors: unkeyed,
    async handle(): Promise<Reply> {
      const { note } = await host.ledger.checkpoint();
      return { status: 200, text: note, headers: { "Content-Type": "text/plain; charset=utf-8" } };
    },
  } as const;
  return [
    defineRoute({
      ...checkpoint,
      path: "/checkpoint",
      summary: "Signed size and root of the ledger, where monitors look",
    }),
    defineRoute({
      method: "GET",
      path: "/tile/:level/:tile+",
      tag: TAG,
      summary: "A tile of hashes",
      scope,
      params: schema.TileParams,
      description: "C2SP tlog-tiles: up to 256 hashes of 32 bytes. Partial tiles are there for every size.",
      responses: { 200: { description: "The hashes.", contentType: "application/octet-stream" } },
      errors: [...unkeyed, "TILE_NOT_FOUND"],
      handle: ({ params }) => hashTile(host, params, open),
    }),
    defineRoute({
      method: "GET",
      path: "/tile/entries/:tile+",
      tag: TAG,
      summary: "A bundle of entries",
      scope: "provenance:read",
      params: schema.BundleParams,
      description:
        "C2SP tlog-tiles: up to 256 entries, each a big-endian uint16 length and its bytes. For keys that see all actions; never public.",
      responses: { 200: { description: "The entries.", contentType: "application/octet-stream" } },
      errors: ["TILE_NOT_FOUND"],
      handle: ({ params, credential }) => entryBundle(host, params.tile, credential),
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/checkpoint",
      tag: TAG,
      summary: "Signed size and root of the ledger",
      scope,
      query: schema.WitnessedQuery,
      responses: checkpoint.responses,
      errors: [...unkeyed, "NOT_WITNESSED"],
      async handle({ query }) {
        const { note } = query.witnessed === true ? await witnessed(0) : await host.ledger.checkpoint();
        return { status: 200, text: note, headers: { "Content-Type": "text/plain; charset=utf-8" } };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/consistency",
      tag: TAG,
      summary: "Proof that one size extends another",
      scope,
      query: schema.ConsistencyQuery,
      responses: { 200: { description: "The proof.", schema: schema.Consistency } },
      errors: [...unkeyed, "INVALID_RANGE"],
      async handle({ query: { first, second } }) {
        const { size } = await host.ledger.head();
        if (first > second || second > size) {
          throw new Refusal(
            "INVALID_RANGE",
            `there is no consistency proof from ${first} to ${second}: the ledger's size is ${size}, and first must not be above second`,
          );
        }
        const [path, firstRoot, secondRoot] = await Promise.all([
          host.ledger.consistency(first, second),
          host.ledger.rootAt(first),
          host.ledger.rootAt(second),
        ]);
        return {
          status: 200,
          json: { first, second, first_root: toHex(firstRoot), second_root: toHex(secondRoot), path: path.map(toHex) },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/keys",
      tag: TAG,
      summary: "Verifier keys to pin",
      scope,
      responses: { 200: { description: "The log's keys.", schema: schema.Keys } },
      errors: unkeyed,
      async handle() {
        const signed = await host.ledger.checkpoint();
        const keys = await host.ledger.logKeys();
        return {
          status: 200,
          json: {
            origin: host.ledger.origin,
            keys: keys.map(({ vkey, since, until }) => ({
              vkey,
              algorithm: "ed25519",
              public_key: toHex(parseVkey(vkey).publicKey),
              since,
              until: until === null ? null : toRfc3339(until),
            })),
            checkpoint: signed.note,
            log_keys: await host.ledger.logKeyProofs(signed),
          },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/:hash",
      tag: TAG,
      summary: "A ledger entry",
      scope: "provenance:read",
      params: schema.HashParams,
      responses: { 200: { description: "The entry.", schema: schema.Entry } },
      errors: ["ENTRY_NOT_FOUND"],
      async handle({ params, credential }) {
        const { seq, type, bytes, leaf_hash, created_at } = await find(params.hash, credential);
        return {
          status: 200,
          json: {
            hash: toHex(leaf_hash),
            index: seq,
            type,
            at: toRfc3339(created_at),
            leaf: toBase64(bytes),
            entry: decodeEntry(bytes),
          },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/:hash/proof",
      tag: TAG,
      summary: "Inclusion proof",
      scope: "provenance:read",
      params: schema.HashParams,
      query: schema.WitnessedQuery,
      responses: { 200: { description: "Proof and checkpoint.", schema: schema.Proof } },
      errors: ["ENTRY_NOT_FOUND", "NOT_WITNESSED"],
      async handle({ params, query, credential }) {
        const row = await find(params.hash, credential);
        const under = query.witnessed === true ? await witnessed(row.seq) : undefined;
        const { index, size, path, checkpoint: signed, log_keys } = await host.ledger.inclusion(row.seq, under);
        return {
          status: 200,
          json: {
            leaf_hash: toHex(row.leaf_hash),
            leaf: toBase64(row.bytes),
            index,
            size,
            root: toHex(signed.root),
            path: path.map(toHex),
            checkpoint: signed.note,
            log_keys,
            opening: await opening(row, credential),
          },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/:hash/proof.tlog-proof",
      tag: TAG,
      summary: "Inclusion proof as a file",
      scope: "provenance:read",
      params: schema.HashParams,
      query: schema.WitnessedQuery,
      responses: { 200: { description: "C2SP tlog-proof.", contentType: "text/plain" } },
      errors: ["ENTRY_NOT_FOUND", "NOT_WITNESSED"],
      async handle({ params, query, credential }) {
        const row = await find(params.hash, credential);
        const under = query.witnessed === true ? await witnessed(row.seq) : undefined;
        const { index, path, checkpoint: signed, log_keys } = await host.ledger.inclusion(row.seq, under);
        const extra = log_keys.length === 0 ? null : utf8(JSON.stringify({ log_keys }));
        return {
          status: 200,
          text: formatTlogProof({ index, path, checkpoint: signed.note, extra }),
          headers: {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Disposition": `attachment; filename="${toHex(row.leaf_hash).slice(0, 16)}.tlog-proof"`,
          },
        };
      },
    }),
  ];
}
