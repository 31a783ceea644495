/**
 * A witness of other logs (C2SP tlog-witness). Cosigns a checkpoint only with a proof that it extends the last
 * checkpoint that it cosigned. The new state is durable before the cosignature is returned.
 */
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import {
  equalBytes,
  formatCosignature,
  fromHex,
  NoteError,
  type NoteSigner,
  openCheckpoint,
  parseCheckpoint,
  parseVkey,
  readNote,
  sha256,
  sha256Hex,
  toHex,
  utf8,
  verifyConsistency,
  type VerifySignature,
} from "../../src/core.ts";
import { type AddCheckpointRequest, parseAddCheckpoint } from "./protocol.ts";

/** The tree that was cosigned last. */
interface WitnessedTree {
  size: number;
  /** Root of the cosigned tree, 32 bytes. */
  root: Uint8Array;
}

export interface WitnessStateStore {
  /** Returns the last cosigned tree; null for a log that was never cosigned. */
  read(origin: string): Promise<WitnessedTree | null>;
  /** Stores the cosigned tree; it is durable when this resolves. */
  write(origin: string, tree: WitnessedTree): Promise<void>;
}

interface WitnessAnswer {
  status: number;
  body: string;
  contentType: string;
}

interface WitnessOptions {
  /** Verifier keys of the logs to witness. Several keys can have the same origin; each of them is accepted. */
  logs: readonly string[];
  state: WitnessStateStore;
  signer: NoteSigner;
  /** Returns the time in milliseconds. */
  clock(): number;
  verify: VerifySignature;
}

export interface Witness {
  /**
   * Handles an add-checkpoint request. Rejects only if the state cannot be read or written. In that case, nothing is
   * cosigned.
   */
  addCheckpoint(body: string): Promise<WitnessAnswer>;
}

const textAnswer = (status: number, body: string): WitnessAnswer => ({
  status,
  body: `${body}\n`,
  contentType: "text/plain; charset=utf-8",
});
const conflictAnswer = (size: number): WitnessAnswer => ({
  status: 409,
  body: `${size}\n`,
  contentType: "text/x.tlog.size",
});

export function createWitness({ logs, state, signer, clock, verify }: WitnessOptions): Witness {
  const turns = new Map<string, Promise<unknown>>();

  async function decide(
    origin: string,
    vkeys: readonly string[],
    request: AddCheckpointRequest,
  ): Promise<WitnessAnswer> {
    const { old, proof, checkpoint: note } = request;
    const checkpoint = openWithAnyKey(note, vkeys, verify);
    if (checkpoint === null) return textAnswer(403, "no signature by a trusted key of this log is valid");
    const { size, root } = checkpoint;
    if (old > size) return textAnswer(400, `the old size ${old} is larger than the checkpoint's, ${size}`);
    const last = (await state.read(origin)) ?? { size: 0, root: sha256(new Uint8Array(0)) };
    if (old !== last.size) return conflictAnswer(last.size);
    if (old === size && !equalBytes(root, last.root)) return conflictAnswer(last.size);
    const claim = { first: old, second: size, firstRoot: last.root, secondRoot: root, path: proof };
    // The first checkpoint of a log does not need a proof, because there is no earlier checkpoint.
    const consistent = old === 0 ? proof.length === 0 : verifyConsistency(claim);
    if (!consistent) return textAnswer(422, `the proof does not lead from size ${old} to size ${size}`);
    if (size > last.size) await state.write(origin, { size, root });
    const line = formatCosignature(readNote(note).text, Math.floor(clock() / 1000), signer);
    return { status: 200, body: line, contentType: "text/plain; charset=utf-8" };
  }

  return {
    async addCheckpoint(body) {
      let request: AddCheckpointRequest;
      let origin: string;
      try {
        request = parseAddCheckpoint(body);
        origin = parseCheckpoint(readNote(request.checkpoint).text).origin;
      } catch (error) {
        if (error instanceof NoteError) return textAnswer(400, error.message);
        throw error;
      }
      const vkeys = logs.filter((vkey) => parseVkey(vkey).name === origin);
      if (vkeys.length === 0) return textAnswer(404, "this witness does not witness this log");
      // Handle requests for the same log one at a time. Otherwise two requests could be checked against the same state.
      const turn = (turns.get(origin) ?? Promise.resolve()).then(() => decide(origin, vkeys, request));
      turns.set(
        origin,
        turn.catch(() => undefined),
      );
      return turn;
    },
  };
}

function openWithAnyKey(
  note: string,
  vkeys: readonly string[],
  verify: VerifySignature,
): ReturnType<typeof openCheckpoint> | null {
  for (const vkey of vkeys) {
    try {
      return openCheckpoint(note, vkey, verify);
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
    }
  }
  return null;
}

/** Stores one file for each log. Only one process at a time may use the folder. */
export function createWitnessStateStore(folder: string): WitnessStateStore {
  const pathOf = (origin: string): string => join(folder, `${sha256Hex(utf8(origin)).slice(0, 32)}.json`);
  return {
    async read(origin) {
      let content: string;
      try {
        content = await readFile(pathOf(origin), "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
      const storedState = JSON.parse(content) as { origin?: unknown; size?: unknown; root?: unknown };
      if (
        storedState.origin !== origin ||
        !Number.isSafeInteger(storedState.size) ||
        typeof storedState.root !== "string"
      )
        throw new Error(`${pathOf(origin)} does not contain the cosigned state of ${origin}; restore it from a backup`);
      return { size: storedState.size as number, root: fromHex(storedState.root) };
    },
    async write(origin, { size, root }) {
      const path = pathOf(origin);
      const part = `${path}.new`;
      const file = await open(part, "w", 0o600);
      try {
        await file.writeFile(JSON.stringify({ origin, size, root: toHex(root) }));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(part, path);
      const parent = await open(folder, "r");
      try {
        await parent.sync();
      } finally {
        await parent.close();
      }
    },
  };
}
