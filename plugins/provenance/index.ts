/** The ledger for those who check it: entries by leaf hash, proofs, checkpoints, keys. */
import { Type } from "@sinclair/typebox";
import { Refusal, type ErrorCode } from "../../src/contract/errors.ts";
import type { Credential, Host } from "../../src/contract/host.ts";
import type { Reply, RequestContext, Route } from "../../src/contract/resource.ts";
import type { EntryRow } from "../../src/contract/storage.ts";
import { fromHex, toBase64, toHex } from "../../src/domain/hash.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { toRfc3339 } from "../../src/domain/time.ts";
import { formatTlogProof } from "../../src/domain/tlog-proof.ts";
import { maySee } from "../../src/domain/visibility.ts";
import { definePlugin } from "../../src/plugin.ts";
import { entryBundle, hashTile } from "./tiles.ts";

const Options = Type.Object(
  { public: Type.Boolean({ default: false, description: "Checkpoint, consistency proofs, keys and tiles of hashes need no credential, so that witnesses can follow the log. Entries never become public." }) },
  { additionalProperties: false },
);

const Hex = Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256, lowercase hex." });
const HashParams = Type.Object({ hash: Type.String({ pattern: "^[0-9a-f]{64}$", description: "Leaf hash, lowercase hex." }) }, { additionalProperties: false });

const Entry = Type.Object(
  {
    hash: Hex,
    index: Type.Integer({ description: "Leaf index; the entry's `seq`." }),
    type: Type.String(),
    at: Type.String({ format: "date-time" }),
    leaf: Type.String({ description: "The entry's bytes, base64: SHA-256(0x00 ‖ bytes) is `hash`." }),
    entry: Type.Record(Type.String(), Type.Unknown()),
  },
  { additionalProperties: false },
);

const Proof = Type.Object(
  {
    leaf_hash: Hex,
    leaf: Type.String({ description: "The entry's bytes, base64." }),
    index: Type.Integer(),
    size: Type.Integer(),
    root: Hex,
    path: Type.Array(Hex, { description: "From the leaf to the root (RFC 6962 section 2.1.1)." }),
    checkpoint: Type.String({ description: "C2SP signed checkpoint of `size` and `root`." }),
  },
  { additionalProperties: false },
);

const Consistency = Type.Object(
  { first: Type.Integer(), second: Type.Integer(), first_root: Hex, second_root: Hex, path: Type.Array(Hex, { description: "RFC 6962 section 2.1.2." }) },
  { additionalProperties: false },
);

const Keys = Type.Object(
  { origin: Type.String(), keys: Type.Array(Type.Object({ vkey: Type.String({ description: "C2SP verifier key: pin this." }), algorithm: Type.Literal("ed25519"), public_key: Hex }, { additionalProperties: false })) },
  { additionalProperties: false },
);

const BundleParams = Type.Object({ tile: Type.String({ maxLength: 64, examples: ["000.p/1"], description: "Index in groups of three digits, all but the last after an x, and the width where it is partial: `x001/234.p/8`." }) }, { additionalProperties: false });
const TileParams = Type.Object({ level: Type.String({ maxLength: 2, examples: ["0"], description: "0 for leaf hashes; level L + 1 holds the roots of level L's full tiles." }), ...BundleParams.properties }, { additionalProperties: false });

const ConsistencyQuery = Type.Object(
  { first: Type.Integer({ minimum: 1, description: "Smaller size." }), second: Type.Integer({ minimum: 1, description: "Larger size, at most the ledger's." }) },
  { additionalProperties: false },
);

const AUTH: ErrorCode[] = ["MISSING_CREDENTIAL", "INVALID_CREDENTIAL", "INSUFFICIENT_SCOPE"];
const TAG = "provenance";

export default definePlugin({
  name: "provenance",
  options: Options,
  setup: (host, options) => ({ routes: routes(host, options.public) }),
});

function routes(host: Host, open: boolean): Route[] {
  async function find({ params, credential }: RequestContext): Promise<EntryRow> {
    const hash = params["hash"] as string;
    const row = await host.storage.entryByHash(fromHex(hash));
    if (row === null || !maySee((credential as Credential).visibility, row)) {
      throw new Refusal("ENTRY_NOT_FOUND", `no entry that this key may see has the leaf hash ${hash}`);
    }
    return row;
  }

  async function entry(context: RequestContext): Promise<Reply> {
    const row = await find(context);
    const { seq: index, type, bytes } = row;
    return {
      status: 200,
      json: { hash: toHex(row.leaf_hash), index, type, at: toRfc3339(row.created_at), leaf: toBase64(bytes), entry: JSON.parse(new TextDecoder().decode(bytes)) as JsonObject },
    };
  }

  async function proof(context: RequestContext): Promise<Reply> {
    const row = await find(context);
    const { index, size, path, checkpoint } = await host.ledger.inclusion(row.seq);
    return {
      status: 200,
      json: { leaf_hash: toHex(row.leaf_hash), leaf: toBase64(row.bytes), index, size, root: toHex(checkpoint.root), path: path.map(toHex), checkpoint: checkpoint.note },
    };
  }

  async function tlogProof(context: RequestContext): Promise<Reply> {
    const row = await find(context);
    const { index, path, checkpoint } = await host.ledger.inclusion(row.seq);
    return {
      status: 200,
      text: formatTlogProof({ index, path, checkpoint: checkpoint.note }),
      headers: { "Content-Type": "text/plain; charset=utf-8", "Content-Disposition": `attachment; filename="${toHex(row.leaf_hash).slice(0, 16)}.tlog-proof"` },
    };
  }

  async function consistency({ query }: RequestContext): Promise<Reply> {
    const { first, second } = query as { first: number; second: number };
    const { size } = await host.ledger.head();
    if (first > second || second > size) {
      throw new Refusal("INVALID_RANGE", `there is no consistency proof from ${first} to ${second}: the ledger's size is ${size}, and first must not be above second`);
    }
    const [path, firstRoot, secondRoot] = await Promise.all([host.ledger.consistency(first, second), host.ledger.rootAt(first), host.ledger.rootAt(second)]);
    return { status: 200, json: { first, second, first_root: toHex(firstRoot), second_root: toHex(secondRoot), path: path.map(toHex) } };
  }

  async function checkpoint(): Promise<Reply> {
    const { note } = await host.ledger.checkpoint();
    return { status: 200, text: note, headers: { "Content-Type": "text/plain; charset=utf-8" } };
  }

  const scope = open ? null : "provenance:read";
  const auth = open ? [] : AUTH;
  return [
    {
      method: "GET", path: "/checkpoint", tag: TAG, summary: "Signed size and root of the ledger, where monitors look", scope,
      responses: { 200: { description: "C2SP tlog-checkpoint.", contentType: "text/plain" } }, errors: [...auth, "STORAGE_UNAVAILABLE"], handle: checkpoint,
    },
    {
      method: "GET", path: "/tile/:level/:tile+", tag: TAG, summary: "A tile of hashes", scope, params: TileParams,
      description: "C2SP tlog-tiles: up to 256 hashes of 32 bytes. Partial tiles are there for every size.",
      responses: { 200: { description: "The hashes.", contentType: "application/octet-stream" } }, errors: [...auth, "TILE_NOT_FOUND", "STORAGE_UNAVAILABLE"], handle: (context) => hashTile(host, context, open),
    },
    {
      method: "GET", path: "/tile/entries/:tile+", tag: TAG, summary: "A bundle of entries", scope: "provenance:read", params: BundleParams,
      description: "C2SP tlog-tiles: up to 256 entries, each a big-endian uint16 length and its bytes. For keys that see all actions; never public.",
      responses: { 200: { description: "The entries.", contentType: "application/octet-stream" } }, errors: [...AUTH, "TILE_NOT_FOUND", "STORAGE_UNAVAILABLE"], handle: (context) => entryBundle(host, context),
    },
    {
      method: "GET", path: "/v1/provenance/checkpoint", tag: TAG, summary: "Signed size and root of the ledger", scope,
      responses: { 200: { description: "C2SP tlog-checkpoint.", contentType: "text/plain" } }, errors: [...auth, "STORAGE_UNAVAILABLE"], handle: checkpoint,
    },
    {
      method: "GET", path: "/v1/provenance/consistency", tag: TAG, summary: "Proof that one size extends another", scope, query: ConsistencyQuery,
      responses: { 200: { description: "The proof.", schema: Consistency } }, errors: [...auth, "INVALID_RANGE", "VALIDATION_FAILED", "STORAGE_UNAVAILABLE"], handle: consistency,
    },
    {
      method: "GET", path: "/v1/provenance/keys", tag: TAG, summary: "Verifier keys to pin", scope,
      responses: { 200: { description: "The log's keys.", schema: Keys } }, errors: [...auth],
      handle: () => ({ status: 200, json: { origin: host.ledger.origin, keys: [{ vkey: host.ledger.vkey, algorithm: "ed25519", public_key: toHex(host.vault.publicKey) }] } }),
    },
    {
      method: "GET", path: "/v1/provenance/:hash", tag: TAG, summary: "A ledger entry", scope: "provenance:read", params: HashParams,
      responses: { 200: { description: "The entry.", schema: Entry } }, errors: [...AUTH, "ENTRY_NOT_FOUND", "VALIDATION_FAILED", "STORAGE_UNAVAILABLE"], handle: entry,
    },
    {
      method: "GET", path: "/v1/provenance/:hash/proof", tag: TAG, summary: "Inclusion proof", scope: "provenance:read", params: HashParams,
      responses: { 200: { description: "Proof and checkpoint.", schema: Proof } }, errors: [...AUTH, "ENTRY_NOT_FOUND", "VALIDATION_FAILED", "STORAGE_UNAVAILABLE"], handle: proof,
    },
    {
      method: "GET", path: "/v1/provenance/:hash/proof.tlog-proof", tag: TAG, summary: "Inclusion proof as a file", scope: "provenance:read", params: HashParams,
      responses: { 200: { description: "C2SP tlog-proof.", contentType: "text/plain" } }, errors: [...AUTH, "ENTRY_NOT_FOUND", "VALIDATION_FAILED", "STORAGE_UNAVAILABLE"], handle: tlogProof,
    },
  ];
}
