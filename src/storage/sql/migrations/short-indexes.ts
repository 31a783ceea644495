/**
 * Steps 24 and 25: less in the lists' indexes. Of a hash its first 12 characters, and of a key's id what stands behind its
 * time, tell almost all apart: statements compare them and the whole value. An action's decision is found by its number.
 * A step for each table: who holds a lock of one never waits for the other.
 */
import type { SchemaKit, SqlDialect } from "../dialect.ts";

const HASH = "substr(request_hash, 1, 12)";
const KEY = "substr(submitted_by, 29)";

type Index = readonly [name: string, columns: string, where?: string];

/** What held whole hashes and keys. */
const LONG = ["actions_by_request", "actions_by_submitter"];
const SHORT: readonly Index[] = [
  ["actions_by_hash", HASH],
  ["actions_by_key", KEY],
];

/** What held the table's key twice. */
const TWICE: readonly Index[] = [
  ["actions_by_agent", "agent_id"],
  ["actions_by_status", "status"],
  ["actions_by_tool", "tool"],
  ["actions_by_operation", "operation"],
  ["actions_allowed", "status, approved_until", "status = 'allowed'"],
  ["actions_approved", "status, approved_until", "status = 'approved'"],
];

const OPEN = "actions_open_startable";
const OF_ACTION = "entries_by_action";

const longOf = ({ expectsRows }: SqlDialect): readonly string[] => (expectsRows ? [] : LONG);

/** Where several processes share the store these are dropped later: see upkeep.ts. */
export const replacedIndexes = (kit: SqlDialect): readonly string[] => [OPEN, OF_ACTION, ...longOf(kit)];

function creations(kit: SqlDialect, table: string, key: string, indexes: readonly Index[]): string[] {
  return indexes.map(
    ([name, columns, where]) =>
      `create index "${name}" on "${table}" (${columns}${kit.indexesHoldKey ? "" : `, ${key}`})${where === undefined ? "" : ` where ${where}`}`,
  );
}

export function shortActionIndexes(kit: SchemaKit): string[] {
  const twice = kit.indexesHoldKey ? TWICE : [];
  const gone = [...(kit.shared ? [] : [OPEN, ...longOf(kit)]), ...twice.map(([name]) => name)];
  return [
    ...gone.flatMap(kit.dropIndex),
    ...creations(kit, "actions", "decision_seq", [
      ...twice,
      ...(kit.expectsRows ? [] : SHORT),
      ["actions_startable", `${HASH}, ${KEY}, approved_until`, "status in ('allowed', 'approved')"],
    ]),
  ];
}

export function shortEntryIndex(kit: SchemaKit): string[] {
  return [
    ...(kit.shared ? [] : kit.dropIndex(OF_ACTION)),
    ...creations(kit, "entries", "seq", [
      ["entries_of_action", "action_id", "type <> 'decision' and action_id is not null"],
    ]),
  ];
}
