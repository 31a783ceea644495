/**
 * Verifies in the browser, without trusting the service, that a log with a signed checkpoint contains an entry, and that
 * the entry commits to a request. Implements RFC 8785, RFC 6962 and C2SP signed-note, tlog-checkpoint and tlog-proof.
 * Uses the browser's SHA-256 and Ed25519 (WebCrypto).
 */

const encoder = new TextEncoder();

export interface Checkpoint {
  origin: string;
  size: number;
  root: Uint8Array;
}

/** A change of the log's key: the bytes of its entry (base64), its index, and its path to the checkpoint (hex). */
interface KeyChange {
  leaf: string;
  index: number;
  path: readonly string[];
}

/** Whether WebCrypto is available. Browsers provide it only to pages on https and localhost. */
export const canVerify: boolean = globalThis.crypto?.subtle !== undefined;

async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource));
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param text lowercase hex */
export function fromHex(text: string): Uint8Array {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text))
    throw new Error(`"${text.slice(0, 80)}" is not lowercase hex`);
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Decodes base64. Accepts only the standard alphabet, padded and canonical, as the specifications require. */
function fromBase64(text: string): Uint8Array {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text))
    throw new Error(`"${text.slice(0, 80)}" is not padded base64`);
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  if (btoa(String.fromCharCode(...bytes)) !== text) throw new Error(`"${text.slice(0, 80)}" is not canonical base64`);
  return bytes;
}

/** Returns the canonical JSON (RFC 8785) of a parsed value. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalText((value as Record<string, unknown>)[name])}`)
    .join(",")}}`;
}

function concat(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** Returns the leaf hash of an entry's bytes (RFC 6962 section 2.1). */
export function hashLeaf(entry: Uint8Array): Promise<Uint8Array> {
  return sha256(concat(Uint8Array.of(0), entry));
}

function hashNode(left: Uint8Array, right: Uint8Array): Promise<Uint8Array> {
  return sha256(concat(Uint8Array.of(1), left, right));
}

/**
 * Returns the root hash computed from a leaf and its path (RFC 9162 section 2.1.3.2). Returns null if the index or the
 * length of the path does not fit the size, or if a hash is not 32 bytes.
 */
export async function rootFromInclusion(
  index: number,
  size: number,
  leaf: Uint8Array,
  path: readonly Uint8Array[],
): Promise<Uint8Array | null> {
  if (!Number.isSafeInteger(size) || !Number.isSafeInteger(index) || index < 0 || index >= size || leaf.length !== 32)
    return null;
  let [f, s] = [index, size - 1];
  let root = leaf;
  for (const sibling of path) {
    if (s === 0 || sibling.length !== 32) return null;
    if (f % 2 === 1 || f === s) {
      root = await hashNode(sibling, root);
      while (f % 2 === 0 && f !== 0) [f, s] = [f / 2, Math.floor(s / 2)];
    } else {
      root = await hashNode(root, sibling);
    }
    [f, s] = [Math.floor(f / 2), Math.floor(s / 2)];
  }
  return s === 0 ? root : null;
}

interface VerifierKey {
  name: string;
  id: Uint8Array;
  publicKey: Uint8Array;
}

/** Parses a verifier key, `<name>+<hex key id>+<base64>`. Throws an Error with the fault. */
export async function parseVkey(text: string): Promise<VerifierKey> {
  const [name = "", hex = "", ...rest] = text.trim().split("+");
  const bad = (reason: string): Error => new Error(`"${text.slice(0, 200)}" is not a verifier key: ${reason}`);
  if (name === "" || /\s/.test(name) || !/^[0-9a-f]{8}$/.test(hex))
    throw bad("expected <name>+<8 hex digits>+<base64>");
  const key = fromBase64(rest.join("+"));
  if (key.length !== 33 || key[0] !== 1) throw bad("its key is not Ed25519");
  const id = (await sha256(concat(encoder.encode(`${name}\n`), key))).slice(0, 4);
  if (toHex(id) !== hex) throw bad("its id does not belong to its name and key");
  return { name, id, publicKey: key.slice(1) };
}

/**
 * Returns the checkpoint in a note that the pinned key signed. Ignores other signatures. Throws an Error if the pinned
 * key's signature is missing or invalid.
 */
export async function openCheckpoint(note: string, vkey: string): Promise<Checkpoint> {
  const key = await parseVkey(vkey);
  const split = note.lastIndexOf("\n\n");
  // eslint-disable-next-line no-control-regex -- a note has no control characters but line feeds
  if (split < 0 || !note.endsWith("\n") || /[\x00-\x09\x0b-\x1f]|\p{Cs}/u.test(note))
    throw new Error("the checkpoint has no signatures after a blank line, or has control characters");
  const text = note.slice(0, split + 1);
  const lines = note.slice(split + 2, -1).split("\n");
  if (lines.length > 100) throw new Error("the checkpoint has more than 100 signatures");
  let verified = false;
  for (const line of lines) {
    const match = /^\u2014 (\S+) (\S+)$/.exec(line);
    if (match === null) throw new Error("a line after the checkpoint's last blank line is not a signature");
    const bytes = fromBase64(match[2] ?? "");
    if (bytes.length < 5) throw new Error(`the signature of ${match[1]} is too short`);
    if (match[1] !== key.name || !equal(bytes.slice(0, 4), key.id)) continue;
    const publicKey = await crypto.subtle.importKey("raw", key.publicKey as BufferSource, { name: "Ed25519" }, false, [
      "verify",
    ]);
    if (
      bytes.length !== 68 ||
      !(await crypto.subtle.verify(
        { name: "Ed25519" },
        publicKey,
        bytes.slice(4) as BufferSource,
        encoder.encode(text),
      ))
    )
      throw new Error(`the signature of ${key.name} does not match the checkpoint`);
    verified = true;
  }
  if (!verified) throw new Error(`the checkpoint is not signed by the pinned key of ${key.name}`);
  const [origin = "", decimal = "", root = "", ...rest] = text.split("\n");
  if (
    rest.at(-1) !== "" ||
    rest.slice(0, -1).includes("") ||
    !/^(?:0|[1-9]\d{0,15})$/.test(decimal) ||
    !Number.isSafeInteger(Number(decimal))
  )
    throw new Error("the checkpoint cannot be read: expected origin, size and root, on separate lines");
  if (origin !== key.name) throw new Error(`the checkpoint is of the log "${origin}", the key is of "${key.name}"`);
  const bytes = fromBase64(root);
  if (bytes.length !== 32) throw new Error("the checkpoint's root is not 32 bytes");
  return { origin, size: Number(decimal), root: bytes };
}

interface ParsedProof {
  index: number;
  path: Uint8Array[];
  extra: Uint8Array | null;
  checkpoint: string;
}

/** Parses a C2SP tlog-proof. */
function parseProof(text: string): ParsedProof {
  const split = text.indexOf("\n\n");
  const lines = text.slice(0, Math.max(split, 0)).split("\n");
  if (split < 0 || lines.shift() !== "c2sp.org/tlog-proof@v1")
    throw new Error(
      'this is not a proof: it does not start with "c2sp.org/tlog-proof@v1", or has no blank line before its checkpoint',
    );
  const extra = lines[0]?.startsWith("extra ") ? fromBase64((lines.shift() ?? "").slice(6)) : null;
  const index = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? "")?.[1];
  if (index === undefined || !Number.isSafeInteger(Number(index)))
    throw new Error('the proof has no line "index <number>"');
  const path = lines.map(fromBase64);
  if (path.length > 63 || path.some((hash) => hash.length !== 32))
    throw new Error("the proof's path does not consist of at most 63 hashes of 32 bytes");
  return { index: Number(index), path, extra, checkpoint: text.slice(split + 2) };
}

/** The members of a `log_key` entry that this module reads. */
interface KeyChangeEntry {
  type: string;
  seq: number;
  previous: string;
  vkey: string;
  handover: string;
}

/**
 * Opens the checkpoint in a note for a reader who pinned an earlier key of the log. Each `log_key` entry after that key
 * must be signed by the key that it replaces and by the key that it introduces. The log that the last key signed must
 * contain these entries.
 * @param changes changes of the log's key, in order; changes before the pinned key are ignored
 */
export async function openCheckpointWithPin(
  note: string,
  pin: string,
  changes: readonly KeyChange[],
): Promise<{ checkpoint: Checkpoint; vkey: string }> {
  const keys = [pin.trim()];
  const steps = [];
  for (const { leaf, index, path } of changes) {
    const bytes = fromBase64(leaf);
    const entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as KeyChangeEntry;
    if (entry.type !== "log_key" || entry.seq !== index)
      throw new Error(`the entry ${index} is not a change of the log's key`);
    const key = keys.at(-1) ?? "";
    if (keys.length === 1 && entry.previous !== key) continue;
    if (entry.previous !== key || keys.includes(entry.vkey))
      throw new Error(`the change of the log's key at ${index} does not follow the previous change`);
    const { size } = await openCheckpoint(entry.handover, key);
    await openCheckpoint(entry.handover, entry.vkey);
    const [line, ...more] = entry.handover.slice(0, entry.handover.lastIndexOf("\n\n")).split("\n").slice(3);
    if (line !== `log-key ${key} ${entry.vkey}` || more.length > 0 || size > index)
      throw new Error(`the change of the log's key at ${index} was not signed by the previous key`);
    keys.push(entry.vkey);
    steps.push({ index, leaf: await hashLeaf(bytes), path: path.map(fromHex) });
  }
  const vkey = keys.at(-1) ?? "";
  const checkpoint = await openCheckpoint(note, vkey);
  for (const step of steps) await assertIncluded(step, checkpoint);
  return { checkpoint, vkey };
}

async function assertIncluded(
  { index, leaf, path }: { index: number; leaf: Uint8Array; path: readonly Uint8Array[] },
  { size, root }: Pick<Checkpoint, "size" | "root">,
): Promise<void> {
  const led = await rootFromInclusion(index, size, leaf, path);
  if (led === null) throw new Error(`the path does not match index ${index} of a log of size ${size}`);
  if (!equal(led, root)) throw new Error("the path does not lead from this entry to the checkpoint's root");
}

/**
 * Returns the changes of the log's key in a proof file. Returns an empty list if the file has no extra data, or if its
 * extra data has a different format.
 */
function changesIn(extra: Uint8Array | null): KeyChange[] {
  try {
    const { log_keys } = JSON.parse(new TextDecoder().decode(extra ?? new Uint8Array())) as { log_keys?: unknown };
    return Array.isArray(log_keys) ? (log_keys as KeyChange[]) : [];
  } catch {
    return [];
  }
}

/**
 * Verifies a `.tlog-proof` file. Throws an Error with the failed check.
 * @param leaf leaf hash of the entry
 * @param pin the pinned key
 */
export async function verifyProof(
  text: string,
  leaf: Uint8Array,
  pin: string,
): Promise<{ index: number; checkpoint: Checkpoint; vkey: string }> {
  const { index, path, checkpoint: note, extra } = parseProof(text);
  const { checkpoint, vkey } = await openCheckpointWithPin(note, pin, changesIn(extra));
  await assertIncluded({ index, leaf, path }, checkpoint);
  return { index, checkpoint, vkey };
}

/** A proof as the service returns it, with the values that open the entry's commitment. */
interface ProofAnswer {
  leaf: string;
  index: number;
  path: readonly string[];
  checkpoint: string;
  log_keys?: readonly KeyChange[];
  opening?: { salt: string | null; request: string | null } | null;
}

export interface VerifiedEntry {
  index: number;
  checkpoint: Checkpoint;
  /** The key that signed the checkpoint: the pinned key or a successor. */
  vkey: string;
  entry: Record<string, unknown>;
  /** The request that the entry commits to; null if the proof does not contain it. */
  request: unknown;
}

/**
 * Verifies a proof that the service returned. Throws an Error with the failed check.
 * @param hash leaf hash of the entry, hex
 * @param pin the pinned key
 */
export async function verifyProofResponse(proof: ProofAnswer, hash: string, pin: string): Promise<VerifiedEntry> {
  const bytes = fromBase64(proof.leaf);
  const leaf = await hashLeaf(bytes);
  if (toHex(leaf) !== hash) throw new Error(`the entry's bytes have the hash ${toHex(leaf)}, not ${hash}`);
  const { index } = proof;
  const { checkpoint, vkey } = await openCheckpointWithPin(proof.checkpoint, pin, proof.log_keys ?? []);
  await assertIncluded({ index, leaf, path: proof.path.map(fromHex) }, checkpoint);
  const entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Record<string, unknown>;
  if (entry["seq"] !== index)
    throw new Error(`the entry says that its index is ${String(entry["seq"])}, the proof says ${index}`);
  const { salt = null, request = null } = proof.opening ?? {};
  if (salt === null || request === null) return { index, checkpoint, vkey, entry, request: null };
  const digest = await sha256(encoder.encode(canonicalText(JSON.parse(request))));
  if (toHex(await sha256(concat(fromHex(salt), digest))) !== entry["commitment"])
    throw new Error("the request in the proof is not the one that the entry commits to");
  return { index, checkpoint, vkey, entry, request: JSON.parse(request) };
}

/** Returns whether the log of `second` entries begins with the log of `first` entries (RFC 9162 section 2.1.4.2). */
export async function verifyConsistency({
  first,
  second,
  firstRoot,
  secondRoot,
  path,
}: {
  first: number;
  second: number;
  firstRoot: Uint8Array;
  secondRoot: Uint8Array;
  path: readonly Uint8Array[];
}): Promise<boolean> {
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(second) || first <= 0 || first > second) return false;
  if ([firstRoot, secondRoot, ...path].some((hash) => hash.length !== 32)) return false;
  if (first === second) return path.length === 0 && equal(firstRoot, secondRoot);
  let [f, s] = [first - 1, second - 1];
  while (f % 2 === 1) [f, s] = [Math.floor(f / 2), Math.floor(s / 2)];
  // If `first` is a power of two, its tree is a subtree. The computation then starts at the root of that subtree, which
  // the proof omits.
  const [start, ...steps] = f === 0 ? [firstRoot, ...path] : path;
  if (start === undefined) return false;
  let [fr, sr] = [start, start];
  for (const hash of steps) {
    if (s === 0) return false;
    if (f % 2 === 1 || f === s) {
      [fr, sr] = [await hashNode(hash, fr), await hashNode(hash, sr)];
      while (f % 2 === 0 && f !== 0) [f, s] = [f / 2, Math.floor(s / 2)];
    } else {
      sr = await hashNode(sr, hash);
    }
    [f, s] = [Math.floor(f / 2), Math.floor(s / 2)];
  }
  return s === 0 && equal(fr, firstRoot) && equal(sr, secondRoot);
}
