/** Routes that serve single entries and their proofs, to keys that may see them. */
import {
  commitDigest,
  decodeEdit,
  canSee,
  type CoreHost,
  decodeEntry,
  encodeRequest,
  findRedactedPaths,
  formatTlogProof,
  fromHex,
  parseStoredRequest,
  toBase64,
  toHex,
  utf8,
} from "../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Reply, toRfc3339 } from "../../src/plugin.ts";
import type { EntryRow } from "../../src/storage/index.ts";
import * as schema from "./schemas.ts";
import { NOT_WITNESSED, witnessedCheckpoint } from "./witnessed-checkpoint.ts";

const TAG = "provenance";

/** Parameters of a request for a proof. */
interface ProofRequest {
  params: { hash: string };
  query: { witnessed?: boolean };
  credential: Credential;
}

export function entryRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/provenance/:hash",
      tag: TAG,
      summary: "A ledger entry",
      scope: "provenance:read",
      params: schema.HashParams,
      responses: { 200: { description: "The entry.", schema: schema.Entry } },
      errors: ["ENTRY_NOT_FOUND"],
      handle: async ({ params, credential }) => entryReply(await findEntry(host, params.hash, credential)),
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
      errors: ["ENTRY_NOT_FOUND", NOT_WITNESSED],
      handle: (request) => proveEntry(host, request),
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
      errors: ["ENTRY_NOT_FOUND", NOT_WITNESSED],
      handle: (request) => proveEntryAsFile(host, request),
    }),
  ];
}

async function findEntry(host: CoreHost, hash: string, { visibility }: Credential): Promise<EntryRow> {
  const row = await host.storage.entryByHash(fromHex(hash));
  // Also read the action, because only its row contains the tool, and access through groups can depend on the tool.
  const action = "within" in visibility && row?.action_id != null ? await host.storage.action(row.action_id) : null;
  if (row === null || !canSee(visibility, { ...row, tool: action?.tool ?? null })) {
    throw new Refusal("ENTRY_NOT_FOUND", `no entry that this key may see has the leaf hash ${hash}`);
  }
  return row;
}

/**
 * Returns the opening of the entry's commitment. It contains the parameters, so the key also needs `actions:read`. If
 * parameters are redacted, only the keys that submitted or started the action receive it.
 */
async function openCommitment(
  host: CoreHost,
  { action_id, bytes }: EntryRow,
  credential: Credential,
): Promise<{ salt: string | null; request: string | null; erased_at: string | null } | null> {
  const action =
    action_id === null || !credential.hasScope("actions:read") ? null : await host.storage.action(action_id);
  if (action === null || !canSee(credential.visibility, action)) return null;
  const { erased_at } = action;
  const hidden = findRedactedPaths((await host.policies.current()).compiled, action);
  if (hidden.length > 0 && ![action.submitted_by, action.started_by].includes(credential.key.id)) return null;
  // Entries after a change of the request commit to the changed request.
  const { commitment } = decodeEntry<{ commitment?: string }>(bytes);
  const isProposed = erased_at !== null || commitment === commitDigest(action.salt, action.request_hash);
  const edit = isProposed ? null : decodeEdit(action.effective);
  // The row may have the members in the client's order, but the hash covers the canonical form.
  const request = edit?.request ?? parseStoredRequest(action);
  const salt = edit?.salt ?? action.salt;
  return erased_at === null && request !== null
    ? { salt, request: encodeRequest(request).text, erased_at: null }
    : { salt: null, request: null, erased_at: toRfc3339(erased_at ?? 0) };
}

function entryReply({ seq, type, bytes, leaf_hash, created_at }: EntryRow): Reply {
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
}

/** Proves that the ledger contains an entry, against the checkpoint in the request. */
async function prove(host: CoreHost, { params, query, credential }: ProofRequest) {
  const row = await findEntry(host, params.hash, credential);
  const under = query.witnessed === true ? await witnessedCheckpoint(host, row.seq) : undefined;
  return { row, proof: await host.ledger.inclusion(row.seq, under) };
}

async function proveEntry(host: CoreHost, request: ProofRequest): Promise<Reply> {
  const { row, proof } = await prove(host, request);
  return {
    status: 200,
    json: {
      leaf_hash: toHex(row.leaf_hash),
      leaf: toBase64(row.bytes),
      index: proof.index,
      size: proof.size,
      root: toHex(proof.checkpoint.root),
      path: proof.path.map(toHex),
      checkpoint: proof.checkpoint.note,
      log_keys: proof.log_keys,
      opening: await openCommitment(host, row, request.credential),
    },
  };
}

async function proveEntryAsFile(host: CoreHost, request: ProofRequest): Promise<Reply> {
  const { row, proof } = await prove(host, request);
  const { index, path, checkpoint, log_keys } = proof;
  const extra = log_keys.length === 0 ? null : utf8(JSON.stringify({ log_keys }));
  return {
    status: 200,
    text: formatTlogProof({ index, path, checkpoint: checkpoint.note, extra }),
    headers: {
      "Content-Type": "text/plain; charset=utf-8",
      "Content-Disposition": `attachment; filename="${toHex(row.leaf_hash).slice(0, 16)}.tlog-proof"`,
    },
  };
}
