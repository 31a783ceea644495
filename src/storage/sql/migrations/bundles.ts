/** Step 22: bytes of entries in bundles. An entry's own bytes may go where its bundle is there, and nothing else of it. */
import type { SqlDialect } from "../dialect.ts";
import { tablesOf } from "./table.ts";

const FIXED = ["seq", "leaf_hash", "type", "created_at"];
const SAID = ["action_id", "agent_id", "submitted_by"];
const OWN = ["api_key", "agent", "stop", "permit_key", "log_key"];

export function bundles(kit: SqlDialect): string[] {
  const { bytes, integer } = kit;
  const table = tablesOf(kit)("entry_bundles", [], { start: integer, bytes });
  return [
    kit.finish(table.addPrimaryKeyConstraint("entry_bundles_key", ["start"])).compile().sql,
    ...kit.appendOnly("entry_bundles", ["start"], "refuse"),
    ...(kit.guard === undefined ? [] : [kit.guard("entry_bundles")]),
    ...kit.mayEmptyEntries([...FIXED, ...SAID], OWN),
    ...kit.bundlesInLine(),
  ];
}

/** Step 23: what finds entries by their hash. The index that did is dropped when this has caught up: see upkeep.ts. */
export function leafRuns(kit: SqlDialect): string[] {
  const { bytes, integer } = kit;
  const table = tablesOf(kit)("leaf_runs", [], { place: integer, bytes });
  return [
    kit.finish(table.addPrimaryKeyConstraint("leaf_runs_key", ["place"])).compile().sql,
    ...kit.appendOnly("leaf_runs", ["place"], "refuse"),
    ...(kit.guard === undefined ? [] : [kit.guard("leaf_runs")]),
  ];
}

/** Step 26: what a decision's bytes say goes from its row as well, when they go into a bundle. */
export function saidOnce(kit: SqlDialect): string[] {
  return kit.mayEmptyEntries(FIXED, OWN, SAID);
}
