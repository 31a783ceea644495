import { readFile } from "node:fs/promises";
import { fromBase64, fromHex, toHex, equalBytes } from "../domain/hash.ts";
import { parseVkey, NoteError } from "../domain/checkpoint.ts";
import { currentVkey, openCheckpointFromPin, type LogKeyProof, type LogKeys } from "../domain/log-keys.ts";
import { hashLeaf, verifyInclusion } from "../domain/merkle.ts";
import { verifyCosignatures, parseWitnessVkey } from "../domain/cosignature.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { commitDigest, encodeRequest } from "../domain/request.ts";
import { toRfc3339 } from "../domain/time.ts";
import { parseTlogProof, ProofError, verifyTlogProof } from "../domain/tlog-proof.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import { CommandError, EXIT, colour, parse, usage, type Command } from "./command.ts";
import { textFlag } from "./remote.ts";

interface Verified {
  leaf_hash: string;
  index: number;
  size: number;
  origin: string;
  /** What signed the checkpoint: the pinned key, or the one that has followed it. */
  vkey: string;
  /** How the pinned key was followed, each by the word of the one before: the pin is to be moved to `vkey`. */
  moved: { vkey: string; index: number; previous_until: string }[];
  /** Witnesses of --witness that cosigned the checkpoint, and when, by their own clocks. */
  witnesses: { name: string; at: string }[];
  /** The entry, when the proof or --entry brought its bytes. */
  entry: Record<string, unknown> | null;
  /** What was asked, where the proof brought what opens the entry's commitment. */
  request: ActionRequest | null;
}

export const verify: Command = {
  summary: "check a proof, offline",
  help: `usage: assent verify PROOF --key VKEY [--witness VKEY]... [--entry FILE] [--json]

PROOF is a file (or - for standard input): the JSON of GET /v1/provenance/{hash}/proof, or a .tlog-proof.
Nothing is asked of any service. Where the proof brings what opens the entry's commitment, that is checked too. The key is pinned: take it once from GET /v1/provenance/keys, or from
your operator, and keep it.

  --key VKEY      verifier key of the log: <name>+<id>+<base64>, or @file. One that has been followed by another since
                  is enough: the proof brings what shows that, and the key to pin instead is printed
  --witness VKEY  verifier key of a witness that must have cosigned the checkpoint, or @file; may be repeated.
                  Ask for the proof with ?witnessed=true then
  --entry FILE    the entry's bytes; needed for a .tlog-proof, which does not bring them

exits 0 when the entry is in the log under that key, 6 when it is not proven.

examples:
  assent verify decision.json --key "$VKEY"
  assent verify decision.tlog-proof --entry entry.json --key @log.vkey
`,
  async run(args, io) {
    const { values, positionals } = parse(args, {
      key: { type: "string" },
      witness: { type: "string", multiple: true },
      entry: { type: "string" },
      json: { type: "boolean" },
    });
    const [file, ...more] = positionals;
    if (file === undefined || more.length > 0) throw usage("assent verify takes one proof file, or -");
    if (values.key === undefined) throw usage("--key is needed: without a pinned key a proof proves nothing");
    const vkey = (await textFlag(values.key, (key) => key)).trim();
    const proof = await textFlag(file === "-" ? "-" : `@${file}`, (text) => text);
    const entry = values.entry === undefined ? null : await entryIn(values.entry);
    const witnesses = await Promise.all((values.witness ?? []).map((one) => textFlag(one, (key) => key)));
    const verified = check(
      proof,
      vkey,
      entry,
      witnesses.map((one) => one.trim()),
    );
    if (values.json === true) io.out(JSON.stringify({ verified: true, ...verified }));
    else {
      io.out(
        `${colour(io, "green", "verified")}: entry ${verified.index} is in the log ${verified.origin} of size ${verified.size}`,
      );
      for (const { vkey: next, index } of verified.moved)
        io.out(`the log's key was changed at entry ${index}, by the word of the one before, to ${next}`);
      if (verified.moved.length > 0) io.out(`pin this key from now on: ${verified.vkey}`);
      for (const { name, at } of verified.witnesses) io.out(`cosigned by ${name} at ${at}`);
      if (verified.entry !== null) io.out(JSON.stringify(verified.entry));
      if (verified.request !== null) io.out(`the entry commits to this request: ${JSON.stringify(verified.request)}`);
    }
    return EXIT.ok;
  },
};

async function entryIn(path: string): Promise<Uint8Array> {
  const bytes = await readFile(path).catch((error: Error) => {
    throw usage(`"${path}" cannot be read: ${error.message}`);
  });
  return new Uint8Array(bytes);
}

/** Throws CommandError with EXIT.unverified and what fails. */
export function check(
  proof: string,
  vkey: string,
  entry: Uint8Array | null,
  witnesses: readonly string[] = [],
): Verified {
  try {
    parseVkey(vkey);
    witnesses.forEach(parseWitnessVkey);
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error));
  }
  try {
    const { note, ...verified } = proof.trimStart().startsWith("{")
      ? checkJson(proof, vkey, entry)
      : checkText(proof, vkey, entry);
    return { ...verified, witnesses: cosigners(note, witnesses) };
  } catch (error) {
    if (
      error instanceof NoteError ||
      error instanceof ProofError ||
      error instanceof RangeError ||
      error instanceof SyntaxError ||
      error instanceof TypeError
    ) {
      throw new CommandError(`NOT VERIFIED: ${error.message}`, EXIT.unverified);
    }
    throw error;
  }
}

/** Every one of them, or NoteError. */
function cosigners(note: string, witnesses: readonly string[]): Verified["witnesses"] {
  const cosignatures = verifyCosignatures(note, witnesses, verifyEd25519);
  return witnesses.map((vkey) => {
    const { name } = parseWitnessVkey(vkey);
    const cosignature = cosignatures.find((one) => one.name === name);
    if (cosignature === undefined)
      throw new NoteError("unknown_key", `the witness ${name} did not cosign the checkpoint`);
    return { name, at: toRfc3339(cosignature.seconds * 1000) };
  });
}

type Unwitnessed = Omit<Verified, "witnesses"> & { note: string };

function checkText(proof: string, vkey: string, entry: Uint8Array | null): Unwitnessed {
  if (entry === null) throw usage("a .tlog-proof does not bring the entry; give its bytes with --entry");
  const leafHash = hashLeaf(entry);
  const { index, checkpoint, keys } = verifyTlogProof(proof, leafHash, vkey, verifyEd25519);
  return {
    note: parseTlogProof(proof).checkpoint,
    leaf_hash: toHex(leafHash),
    index,
    size: checkpoint.size,
    origin: checkpoint.origin,
    ...keyOf(keys),
    entry: readEntry(entry, index),
    request: null,
  };
}

function checkJson(text: string, vkey: string, given: Uint8Array | null): Unwitnessed {
  const proof = JSON.parse(text) as {
    leaf: string;
    leaf_hash: string;
    index: number;
    path: string[];
    checkpoint: string;
    log_keys?: LogKeyProof[];
    opening?: { salt: string | null; request: string | null } | null;
  };
  const entry = given ?? fromBase64(proof.leaf);
  const leafHash = hashLeaf(entry);
  if (!equalBytes(leafHash, fromHex(proof.leaf_hash)))
    throw new ProofError("the entry's bytes do not hash to leaf_hash: the entry was altered");
  // Size and root are taken from what is signed, never from what the proof says beside it.
  const { checkpoint, keys } = openCheckpointFromPin(proof.checkpoint, vkey, proof.log_keys ?? [], verifyEd25519);
  const claim = {
    index: proof.index,
    size: checkpoint.size,
    leafHash,
    path: proof.path.map(fromHex),
    root: checkpoint.root,
  };
  if (!verifyInclusion(claim)) throw new ProofError("the path does not lead from this entry to the signed root");
  const opened = readEntry(entry, proof.index);
  return {
    note: proof.checkpoint,
    leaf_hash: toHex(leafHash),
    index: proof.index,
    size: checkpoint.size,
    origin: checkpoint.origin,
    ...keyOf(keys),
    entry: opened,
    request: readOpening(opened, proof.opening ?? null),
  };
}

function keyOf(keys: LogKeys): Pick<Verified, "vkey" | "moved"> {
  const moved = keys.changes.map(({ seq, vkey, previous_until }) => ({
    vkey,
    index: seq,
    previous_until: toRfc3339(previous_until),
  }));
  return { vkey: currentVkey(keys), moved };
}

/** What the entry commits to; null where the proof does not tell it. */
function readOpening(
  entry: Record<string, unknown>,
  opening: { salt: string | null; request: string | null } | null,
): ActionRequest | null {
  if (opening === null || opening.salt === null || opening.request === null) return null;
  const request = JSON.parse(opening.request) as ActionRequest;
  const { text, hash } = encodeRequest(request);
  if (text !== opening.request || commitDigest(opening.salt, hash) !== entry["commitment"])
    throw new ProofError("the request beside the proof is not the one that the entry commits to");
  return request;
}

function readEntry(bytes: Uint8Array, index: number): Record<string, unknown> {
  const entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Record<string, unknown>;
  if (entry["seq"] !== index)
    throw new ProofError(`the entry says that it stands at ${String(entry["seq"])}, the proof says ${index}`);
  return entry;
}
