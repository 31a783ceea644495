import { readFile } from "node:fs/promises";
import { listBuiltInCommands } from "../config/built-in-plugins.ts";
import { fromBase64, fromHex, toHex, equalBytes } from "../domain/hash.ts";
import { parseVkey, NoteError } from "../domain/checkpoint.ts";
import { currentVkey, openCheckpointFromPin, type LogKeyProof, type LogKeys } from "../domain/log-keys.ts";
import { hashLeaf, verifyInclusion } from "../domain/merkle.ts";
import { verifyCosignatures, parseCosignerVkey } from "../domain/cosignature.ts";
import type { ActionRequest } from "../domain/actions.ts";
import { commitDigest, encodeRequest } from "../domain/request.ts";
import { toRfc3339 } from "../domain/time.ts";
import { parseTlogProof, ProofError, verifyTlogProof } from "../domain/tlog-proof.ts";
import { verifyEd25519 } from "../identity/vault.ts";
import {
  CommandError,
  EXIT_CODES,
  colourText,
  parseArguments,
  usageError,
  printJson,
  type Command,
} from "./command.ts";
import { readTextFlag } from "./remote.ts";

export interface Verified {
  leaf_hash: string;
  index: number;
  size: number;
  origin: string;
  /** The key that signed the checkpoint: the pinned key or its successor. */
  vkey: string;
  /**
   * Keys that replaced the pinned key, each authorized by the previous key. If there are any, the reader should pin
   * `vkey` from now on.
   */
  moved: { vkey: string; index: number; previous_until: string }[];
  /**
   * The witnesses given with --witness, all of which cosigned the checkpoint. Each has the time of its cosignature, by
   * the witness's clock.
   */
  witnesses: { name: string; at: string }[];
  /** The entry, if the proof or --entry contains its bytes. */
  entry: Record<string, unknown> | null;
  /** The request that the entry commits to, if the proof contains it. */
  request: ActionRequest | null;
}

/** A check that a feature adds to `assent verify` for entries of its types. */
export interface EntryCheck {
  /** Names of options with a value, and their lines in the help text. */
  options: readonly string[];
  help: string;
  /**
   * Resolves to members of the JSON output, with a text for people or null. Throws CommandError if the entry is not what
   * it claims.
   * @param values of all options
   * @param verifyFile verifies the proof in a file with the same key
   */
  check(
    verified: Pick<Verified, "entry" | "origin">,
    values: Readonly<Record<string, unknown>>,
    verifyFile: (path: string) => Promise<Verified>,
  ): Promise<Record<string, string | null>>;
}

/** Returns the command, with the checks that features add. */
export async function loadVerify(): Promise<Command> {
  const loads = Object.values(listBuiltInCommands("verify"));
  const checks = await Promise.all(loads.map(async (load) => (await load()).default as EntryCheck));
  return {
    help: `usage: assent verify PROOF --key VKEY [--witness VKEY]... [--entry FILE] [--json]

PROOF is a file (or - for standard input): the JSON of GET /v1/provenance/{hash}/proof, or a .tlog-proof.
Does not contact any service. If the proof contains the request that the entry commits to, that is checked too. Pin the key: get it once from GET /v1/provenance/keys, or from
your operator, and store it.

  --key VKEY      verifier key of the log: <name>+<id>+<base64>, or @file. If the log's key was rotated since, the
                  old key is enough: the proof contains the rotation, and the key to pin from now on is printed
  --witness VKEY  verifier key of a witness that must have cosigned the checkpoint, or @file; may be repeated.
                  Request the proof with ?witnessed=true
${checks.map(({ help }) => help).join("")}  --entry FILE    the entry's bytes; required for a .tlog-proof, which does not contain them

exits 0 if the entry is in the log of that key, 6 if the proof does not verify.

examples:
  assent verify decision.json --key "$VKEY"
  assent verify decision.tlog-proof --entry entry.json --key @log.vkey
`,
    async run(args, io) {
      const { values, positionals } = parseArguments(args, {
        key: { type: "string" },
        witness: { type: "string", multiple: true },
        entry: { type: "string" },
        ...Object.fromEntries(
          checks.flatMap(({ options }) => options.map((name) => [name, { type: "string" } as const])),
        ),
        json: { type: "boolean" },
      });
      const [file, ...more] = positionals;
      if (file === undefined || more.length > 0) throw usageError("assent verify takes one proof file, or -");
      if (values.key === undefined) throw usageError("--key is required: without a pinned key, a proof shows nothing");
      const vkey = (await readTextFlag(values.key, (key) => key)).trim();
      const proof = await readTextFlag(file === "-" ? "-" : `@${file}`, (text) => text);
      const entry = values.entry === undefined ? null : await entryIn(values.entry);
      const witnesses = await Promise.all((values.witness ?? []).map((flag) => readTextFlag(flag, (key) => key)));
      const verified = verifyProofText(
        proof,
        vkey,
        entry,
        witnesses.map((witness) => witness.trim()),
      );
      const verifyFile = async (path: string): Promise<Verified> =>
        verifyProofText(await readTextFlag(`@${path}`, (text) => text), vkey, null);
      const found = await Promise.all(checks.map(({ check }) => check(verified, values, verifyFile)));
      if (values.json === true) printJson(io, Object.assign({ verified: true, ...verified }, ...found));
      else {
        io.out(
          `${colourText(io, "green", "verified")}: entry ${verified.index} is in the log ${verified.origin} of size ${verified.size}`,
        );
        for (const { vkey: next, index } of verified.moved)
          io.out(`at entry ${index} the log's previous key authorized the new key ${next}`);
        if (verified.moved.length > 0) io.out(`pin this key from now on: ${verified.vkey}`);
        for (const { name, at } of verified.witnesses) io.out(`cosigned by ${name} at ${at}`);
        if (verified.entry !== null) printJson(io, verified.entry);
        for (const text of found.flatMap((each) => Object.values(each))) if (text !== null) io.out(text);
        if (verified.request !== null) io.out(`the entry commits to this request: ${JSON.stringify(verified.request)}`);
      }
      return EXIT_CODES.ok;
    },
  };
}

async function entryIn(path: string): Promise<Uint8Array> {
  const bytes = await readFile(path).catch((error: Error) => {
    throw usageError(`"${path}" cannot be read: ${error.message}`);
  });
  return new Uint8Array(bytes);
}

/** Verifies a proof. Throws CommandError with `EXIT_CODES.unverified` if the proof is invalid. */
export function verifyProofText(
  proof: string,
  vkey: string,
  entry: Uint8Array | null,
  witnesses: readonly string[] = [],
): Verified {
  try {
    parseVkey(vkey);
    witnesses.forEach(parseCosignerVkey);
  } catch (error) {
    throw usageError(error instanceof Error ? error.message : String(error));
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
      throw new CommandError(`NOT VERIFIED: ${error.message}`, EXIT_CODES.unverified);
    }
    throw error;
  }
}

/**
 * Returns all of the witnesses, each with the time of its cosignature. Throws NoteError if a cosignature is missing.
 */
function cosigners(note: string, witnesses: readonly string[]): Verified["witnesses"] {
  const cosignatures = verifyCosignatures(note, witnesses, verifyEd25519);
  return witnesses.map((vkey) => {
    const { name } = parseCosignerVkey(vkey);
    const cosignature = cosignatures.find((candidate) => candidate.name === name);
    if (cosignature === undefined)
      throw new NoteError("unknown_key", `the witness ${name} did not cosign the checkpoint`);
    return { name, at: toRfc3339(cosignature.seconds * 1000) };
  });
}

type Unwitnessed = Omit<Verified, "witnesses"> & { note: string };

function checkText(proof: string, vkey: string, entry: Uint8Array | null): Unwitnessed {
  if (entry === null) throw usageError("a .tlog-proof does not contain the entry; give its bytes with --entry");
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

function checkJson(text: string, vkey: string, entryHash: Uint8Array | null): Unwitnessed {
  const proof = JSON.parse(text) as {
    leaf: string;
    leaf_hash: string;
    index: number;
    path: string[];
    checkpoint: string;
    log_keys?: LogKeyProof[];
    opening?: { salt: string | null; request: string | null } | null;
  };
  const entry = entryHash ?? fromBase64(proof.leaf);
  const leafHash = hashLeaf(entry);
  if (!equalBytes(leafHash, fromHex(proof.leaf_hash)))
    throw new ProofError("the entry's bytes do not hash to leaf_hash: the entry was altered");
  // Use the size and root of the signed checkpoint, never other members of the proof.
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

/** Returns the request that the entry commits to, or null if the proof does not contain it. Throws ProofError. */
function readOpening(
  entry: Record<string, unknown>,
  opening: { salt: string | null; request: string | null } | null,
): ActionRequest | null {
  if (opening === null || opening.salt === null || opening.request === null) return null;
  const request = JSON.parse(opening.request) as ActionRequest;
  const { text, hash } = encodeRequest(request);
  if (text !== opening.request || commitDigest(opening.salt, hash) !== entry["commitment"])
    throw new ProofError("the request in the proof is not the one that the entry commits to");
  return request;
}

function readEntry(bytes: Uint8Array, index: number): Record<string, unknown> {
  const entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Record<string, unknown>;
  if (entry["seq"] !== index)
    throw new ProofError(`the entry says that its index is ${String(entry["seq"])}, the proof says ${index}`);
  return entry;
}
