/**
 * The schema as ordered steps. A step that was released is never edited: a change is a new step.
 * Each runs in its own transaction together with the row that records it.
 */
import type { SchemaKit } from "./dialect.ts";
import { approvals } from "./migrations/approvals.ts";
import { bundles, leafRuns, saidOnce } from "./migrations/bundles.ts";
import { documents } from "./migrations/documents.ts";
import { guards } from "./migrations/guards.ts";
import { idempotencyAge } from "./migrations/idempotency.ts";
import { initial } from "./migrations/initial.ts";
import {
  agents,
  deliveries,
  erasure,
  leases,
  meta,
  past,
  processes,
  sums,
  sumsAnew,
  urgency,
} from "./migrations/later.ts";
import { directory, logKeys, permitKeys, stops } from "./migrations/directory.ts";
import { asks, join } from "./migrations/join.ts";
import { packedActions } from "./migrations/packed.ts";
import { permits } from "./migrations/permits.ts";
import { rejections } from "./migrations/rejections.ts";
import { shortActionIndexes, shortEntryIndex } from "./migrations/short-indexes.ts";

export interface Migration {
  /** From 1, without a gap. */
  readonly version: number;
  readonly name: string;
  statements(kit: SchemaKit): string[];
  /** Recorded and not run where the table has this column: it mends what an earlier form of a step left. */
  readonly unlessColumn?: readonly [table: string, column: string];
}

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "ledger, actions, keys, policies", statements: initial },
  { version: 2, name: "agents, last use of keys, deleted policies", statements: agents },
  { version: 3, name: "sums for analytics", statements: sums },
  { version: 4, name: "leases", statements: leases },
  { version: 5, name: "deliveries, uses of limits", statements: deliveries },
  { version: 6, name: "documents of plugins", statements: documents },
  { version: 7, name: "no change outside of a transaction", statements: guards },
  { version: 8, name: "what decisions read of the past", statements: past },
  { version: 9, name: "what may start", statements: permits },
  { version: 10, name: "sums of the first form", statements: sumsAnew, unlessColumn: ["action_sums", "counts"] },
  { version: 11, name: "entries of keys and agents", statements: directory },
  { version: 12, name: "erasure", statements: erasure },
  { version: 13, name: "the most urgent delivery", statements: urgency },
  { version: 14, name: "what is kept beside requests", statements: meta },
  { version: 15, name: "entries of stops", statements: stops },
  { version: 16, name: "actions by their request", statements: join },
  { version: 17, name: "entries of permit keys", statements: permitKeys },
  { version: 18, name: "until when it may start", statements: approvals },
  { version: 19, name: "who waits for actions", statements: asks },
  { version: 20, name: "idempotency keys by their age", statements: idempotencyAge },
  { version: 21, name: "entries of the log's keys", statements: logKeys },
  { version: 22, name: "entries in bundles", statements: bundles },
  { version: 23, name: "runs of the entries' hashes", statements: leafRuns },
  { version: 24, name: "short indexes of actions", statements: shortActionIndexes },
  { version: 25, name: "entries of actions behind their decision", statements: shortEntryIndex },
  { version: 26, name: "what decisions say, once", statements: saidOnce },
  { version: 27, name: "ids and hashes as bytes, kinds of decisions", statements: packedActions },
  { version: 28, name: "processes that share the store", statements: processes },
  { version: 29, name: "rejections that hold", statements: rejections },
];
