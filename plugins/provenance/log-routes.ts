/**
 * Routes that serve the log: checkpoints, tiles, consistency proofs and keys. With the option `public`, they need no
 * credential.
 */
import { type CoreHost, parseVkey, toHex } from "../../src/core.ts";
import { defineRoute, Refusal, type Reply, toRfc3339 } from "../../src/plugin.ts";
import * as schema from "./schemas.ts";
import { replyWithEntryBundle, replyWithHashTile } from "./tile-replies.ts";
import { NOT_WITNESSED, witnessedCheckpoint } from "./witnessed-checkpoint.ts";

const TAG = "provenance";
const CHECKPOINT_RESPONSES = { 200: { description: "C2SP tlog-checkpoint.", contentType: "text/plain" } };

/**
 * Returns the routes of the log.
 * @param open true if the routes do not need a credential; bundles of entries always do
 */
export function logRoutes(host: CoreHost, open: boolean) {
  const scope = open ? null : "provenance:read";
  // Declare this error for open routes, because the core adds it only to routes that need a key.
  const unkeyed = open ? (["STORAGE_UNAVAILABLE"] as const) : [];
  return [
    defineRoute({
      method: "GET",
      path: "/checkpoint",
      tag: TAG,
      summary: "Signed size and root of the ledger, at the path that monitors read",
      scope,
      responses: CHECKPOINT_RESPONSES,
      errors: unkeyed,
      handle: async () => noteReply(await host.ledger.checkpoint()),
    }),
    defineRoute({
      method: "GET",
      path: "/tile/:level/:tile+",
      tag: TAG,
      summary: "A tile of hashes",
      scope,
      params: schema.TileParams,
      description: "C2SP tlog-tiles: up to 256 hashes of 32 bytes. Partial tiles exist for every size.",
      responses: { 200: { description: "The hashes.", contentType: "application/octet-stream" } },
      errors: [...unkeyed, "TILE_NOT_FOUND"],
      handle: ({ params }) => replyWithHashTile(host, params, open),
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
      handle: ({ params, credential }) => replyWithEntryBundle(host, params.tile, credential),
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/checkpoint",
      tag: TAG,
      summary: "Signed size and root of the ledger",
      scope,
      query: schema.WitnessedQuery,
      responses: CHECKPOINT_RESPONSES,
      errors: [...unkeyed, NOT_WITNESSED],
      handle: async ({ query }) =>
        noteReply(query.witnessed === true ? await witnessedCheckpoint(host, 0) : await host.ledger.checkpoint()),
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
      handle: ({ query }) => proveConsistency(host, query),
    }),
    defineRoute({
      method: "GET",
      path: "/v1/provenance/keys",
      tag: TAG,
      summary: "Verifier keys to pin",
      scope,
      responses: { 200: { description: "The log's keys.", schema: schema.Keys } },
      errors: unkeyed,
      handle: () => listLogKeys(host),
    }),
  ];
}

function noteReply({ note }: { note: string }): Reply {
  return { status: 200, text: note, headers: { "Content-Type": "text/plain; charset=utf-8" } };
}

async function proveConsistency(host: CoreHost, { first, second }: { first: number; second: number }): Promise<Reply> {
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
}

async function listLogKeys(host: CoreHost): Promise<Reply> {
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
}
