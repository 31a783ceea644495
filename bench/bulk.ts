/**
 * Extends a store with actions that copy the decisions of its existing actions, with separate ids, salts, requests,
 * entries, tiles and bundles. Policies are not evaluated again, and the indexes of actions are created at the end. The
 * resulting store equals one that was filled by single submissions, and passes `assent audit`.
 */
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { V7Generator } from "uuidv7";
import type { PreparedSubmission } from "../plugins/actions/submit.ts";
import type { LedgerHead, Storage, TileRow } from "../src/contract/storage.ts";
import { canonicalText } from "../src/domain/canonical.ts";
import { decodeEntry } from "../src/domain/entries.ts";
import { sha256 } from "../src/domain/hash.ts";
import type { JsonObject } from "../src/domain/json.ts";
import { appendToEdge, hashLeaf, rootFromEdge } from "../src/domain/merkle.ts";
import { encodeEntryBundle, rootOfTile, TILE_WIDTH } from "../src/domain/tiles.ts";
import { toRfc3339 } from "../src/domain/time.ts";

/** Tiles in one transaction. */
const TILES = 64;
const GZIP = { level: 6 };
const SALT_BYTES = 32;

/** An action, with the sequence number of the action whose decision it copies. */
export interface BulkAction {
  seq: number;
  template: number;
  id: string;
  agentId: string;
  at: number;
  approvedUntil: number | null;
  request: string;
  requestHash: Buffer;
  salt: Buffer;
  leafHash: Buffer;
}

/** The rows of one transaction. */
export interface BulkBatch {
  actions: BulkAction[];
  tiles: TileRow[];
  bundles: { start: number; bytes: Uint8Array }[];
  head: Pick<LedgerHead, "size" | "root" | "edge">;
}

export interface BulkWriter {
  write(batch: BulkBatch): Promise<void>;
}

interface Template {
  seq: number;
  /** JSON of the entry, split at its variable members, and the names of these members. */
  parts: string[];
  names: string[];
  /** Validity of the decision in milliseconds; null for a denied action. */
  valid: number | null;
}

type Request = PreparedSubmission["request"];

interface BulkOptions {
  storage: Storage;
  writer: BulkWriter;
  /** Number of tiles to append. The store must end with a full tile. */
  tiles: number;
  /** Returns the request of the action that follows `n` others. */
  request(n: number): Request;
  /** Time of the last action. Milliseconds. */
  until: number;
  progress(done: number): void;
}

const VARIABLE = ["action_id", "agent_id", "approved_until", "at", "commitment", "seq"] as const;
const kindOf = ({ tool, operation }: Pick<Request, "tool" | "operation">): string => `${tool} ${operation}`;

/** Reads one allowed or denied action of each kind. */
async function readTemplates(storage: Storage): Promise<Map<string, Template>> {
  const templates = new Map<string, Template>();
  for (const row of await storage.actions({ visibility: { all: true }, limit: 200 })) {
    if (row.decision === "require_approval" || templates.has(kindOf(row))) continue;
    const [entry] = await storage.entries(row.decision_seq, row.decision_seq + 1);
    if (entry === undefined) throw new Error(`entry ${row.decision_seq} is missing`);
    const body: JsonObject = { ...decodeEntry(entry.bytes) };
    for (const name of VARIABLE) if (body[name] !== null) body[name] = `<<${name}>>`;
    const cut = canonicalText(body).split(/"<<(\w+)>>"/);
    templates.set(kindOf(row), {
      seq: row.decision_seq,
      parts: cut.filter((_, i) => i % 2 === 0),
      names: cut.filter((_, i) => i % 2 === 1),
      valid: row.approved_until === null ? null : row.approved_until - row.created_at,
    });
  }
  return templates;
}

/** The tree of tiles: the roots of the last tiles of each level that do not fill a tile of the next level yet. */
class Tiles {
  private readonly levels: Uint8Array[][] = [];
  edge: Uint8Array[] = [];
  private count = 0;

  /** Adds a full tile of leaves. Returns the tiles that it completes. */
  add(leaves: Uint8Array): TileRow[] {
    const rows: TileRow[] = [];
    let hashes = leaves;
    let index = this.count;
    for (let level = 0; ; level++) {
      const root = rootOfTile(hashes);
      rows.push({ level, index, hashes, root });
      if (level === 0) this.edge = appendToEdge(this.edge, this.count++, root);
      const siblings = (this.levels[level] ??= []);
      siblings.push(root);
      if (siblings.length < TILE_WIDTH) return rows;
      hashes = Buffer.concat(siblings.splice(0));
      index = Math.floor(index / TILE_WIDTH);
    }
  }
}

/** Appends the actions. Returns their number. */
export async function appendBulk(options: BulkOptions): Promise<number> {
  const { storage, writer, tiles: total, until, progress } = options;
  const templates = await readTemplates(storage);
  const { size: start } = await storage.head();
  if (start % TILE_WIDTH !== 0) throw new Error(`the store ends within a tile, at ${start}`);
  const tree = new Tiles();
  for (let at = 0; at < start; at += TILE_WIDTH) tree.add(Buffer.concat(await storage.leafHashes(at, at + TILE_WIDTH)));
  const [last] = await storage.entries(start - 1, start);
  const since = last?.created_at ?? until;
  const make = createActions(templates, options.request);
  let written: Promise<void> = Promise.resolve();
  for (let tile = 0; tile < total;) {
    const batch: BulkBatch = {
      actions: [],
      tiles: [],
      bundles: [],
      head: { size: 0, root: tree.edge[0] as Uint8Array, edge: [] },
    };
    const bundles: Promise<{ start: number; bytes: Uint8Array }>[] = [];
    for (let end = Math.min(total, tile + TILES); tile < end; tile++) {
      const at = since + Math.floor(((until - since) * (tile + 1)) / total);
      const from = start + tile * TILE_WIDTH;
      const { actions, entries } = make(tile * TILE_WIDTH, from, at);
      batch.actions.push(...actions);
      batch.tiles.push(...tree.add(Buffer.concat(actions.map(({ leafHash }) => leafHash))));
      bundles.push(compress(encodeEntryBundle(entries), GZIP).then((bytes) => ({ start: from, bytes })));
    }
    batch.head = { size: start + tile * TILE_WIDTH, root: rootFromEdge(tree.edge), edge: tree.edge };
    // Compress on other threads while the previous batch is written.
    await written;
    const done = tile * TILE_WIDTH;
    written = Promise.all(bundles)
      .then((compressed) => writer.write({ ...batch, bundles: compressed }))
      .then(() => progress(done));
    written.catch(() => undefined);
  }
  await written;
  return total * TILE_WIDTH;
}

const compress = promisify(gzip) as (bytes: Uint8Array, options: object) => Promise<Uint8Array>;

/** Returns a function that makes the 256 actions of a tile from request `n` on, and the bytes of their entries. */
function createActions(templates: ReadonlyMap<string, Template>, requestOf: BulkOptions["request"]) {
  const ids = new V7Generator();
  return (n: number, from: number, at: number): { actions: BulkAction[]; entries: Uint8Array[] } => {
    const salts = randomBytes(TILE_WIDTH * SALT_BYTES);
    const time = JSON.stringify(toRfc3339(at));
    const actions: BulkAction[] = [];
    const entries: Uint8Array[] = [];
    for (let i = 0; i < TILE_WIDTH; i++) {
      const request = requestOf(n + i);
      const template = templates.get(kindOf(request));
      if (template === undefined) throw new Error(`no action of the kind ${kindOf(request)} was decided yet`);
      const salt = salts.subarray(i * SALT_BYTES, (i + 1) * SALT_BYTES);
      const text = canonicalText(request as unknown as JsonObject);
      const requestHash = Buffer.from(sha256(Buffer.from(text)));
      const id = ids.generateOrResetWithTs(at).toString();
      const approvedUntil = template.valid === null ? null : at + template.valid;
      const values: Record<string, string> = {
        action_id: `"${id}"`,
        agent_id: JSON.stringify(request.agent_id),
        approved_until: approvedUntil === null ? "null" : `"${toRfc3339(approvedUntil)}"`,
        at: time,
        commitment: `"${Buffer.from(sha256(Buffer.concat([salt, requestHash]))).toString("hex")}"`,
        seq: String(from + i),
      };
      let entry = template.parts[0] as string;
      template.names.forEach(
        (name, part) => (entry += (values[name] as string) + (template.parts[part + 1] as string)),
      );
      const bytes = Buffer.from(entry);
      entries.push(bytes);
      actions.push({
        seq: from + i,
        template: template.seq,
        id,
        agentId: request.agent_id,
        at,
        approvedUntil,
        request: text,
        requestHash,
        salt,
        leafHash: Buffer.from(hashLeaf(bytes)),
      });
    }
    return { actions, entries };
  };
}
