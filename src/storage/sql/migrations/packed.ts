/**
 * Step 27: actions hold ids and hashes as bytes, and what decisions have in common once (forms.ts, kinds.ts). Only where one
 * process has the store: another of the version before could not read it. Of 100,000 actions it takes seconds, all of them
 * in its one transaction: a process that is killed meanwhile finds the store as it was.
 */
import type { Form, PackedSql } from "../forms.ts";
import type { SchemaKit } from "../dialect.ts";

const KIND = {
  decision: "text",
  reason: "text",
  reason_code: "text",
  risk_level: "text",
  policy: "text",
  rule: "text",
  policy_version: "integer",
  policy_hash: "hash",
} as const;
const KIND_COLUMNS = Object.keys(KIND);
/** What a row without a kind has itself. */
const DECIDED = ["decision", "reason", "reason_code"];

/** Of a row with a kind: its reason alone may be another than its kind's. */
const OF_KIND = `coalesce(${KIND_COLUMNS.filter((column) => !column.startsWith("reason"))
  .map((column) => `"${column}"`)
  .join(", ")}) is null`;

/** In the order in which they stand in a row, by type or form; `!` where there is always one. */
const ACTION = {
  decision_seq: "integer!",
  id: "uuid!",
  agent_id: "text!",
  tool: "text!",
  operation: "text!",
  status: "text!",
  submitted_by: "uuid!",
  created_at: "integer!",
  updated_at: "integer!",
  expires_at: "integer",
  approved_until: "integer",
  started_at: "integer",
  started_by: "text",
  quorum: "integer",
  kind: "integer",
  ...KIND,
  decision_hash: "hash!",
  submitted_agent: "text",
  submitted_owner: "text",
  request_hash: "hash!",
  salt: "hash!",
  result: "text",
  request: "text!",
  waited_ms: "integer",
  past: "text",
  erased_at: "integer",
  meta: "text",
  asked_at: "integer",
  waits: "text",
} as const;

const APPROVAL = {
  action_id: "uuid!",
  principal: "text!",
  key_id: "text!",
  approve: "integer!",
  reason: "text",
  self_approval: "integer!",
  seq: "integer!",
  created_at: "integer!",
} as const;

const HASH = "substr(request_hash, 1, 6)";
const KEY = "substr(submitted_by, 13)";

const INDEXES: readonly (readonly [name: string, columns: string, where?: string])[] = [
  ["actions_by_time", "created_at"],
  ["actions_by_agent", "agent_id"],
  ["actions_by_status", "status"],
  ["actions_by_tool", "tool"],
  ["actions_by_operation", "operation"],
  ["actions_by_hash", HASH],
  ["actions_by_key", KEY],
  ["actions_allowed", "status, approved_until", "status = 'allowed'"],
  ["actions_approved", "status, approved_until", "status = 'approved'"],
  ["actions_startable", `${HASH}, ${KEY}, approved_until`, "status in ('allowed', 'approved')"],
  ["actions_pending", "status, expires_at, decision_seq", "status = 'pending_approval'"],
  [
    "actions_open_waiting",
    "status, submitted_by, request_hash, expires_at, decision_seq",
    "status = 'pending_approval'",
  ],
  ["actions_waited", "created_at, waited_ms, agent_id, submitted_by", "waited_ms is not null"],
];

const formOf = (type: string): Form | null => (/^(hash|uuid)/.exec(type)?.[0] as Form | undefined) ?? null;

function table(name: string, columns: Readonly<Record<string, string>>, packed: PackedSql, rest: string): string {
  const own = Object.entries(columns).map(
    ([column, type]) =>
      `"${column}" ${formOf(type) === null ? type.replace("!", "") : "any"}${type.endsWith("!") ? " not null" : ""}`,
  );
  const checks = Object.entries(columns).flatMap(([column, type]) => {
    const form = formOf(type);
    return form === null ? [] : [`check (${packed.check(form, column)})`];
  });
  return `create table "${name}" (${[...own, ...checks].join(", ")}, ${rest}`;
}

/** Each column of the table of before as it stands in the new one. */
const values = (columns: Readonly<Record<string, string>>, packed: PackedSql): string[] =>
  Object.entries(columns).map(([column, type]) => {
    const form = formOf(type);
    return form === null ? `"${column}"` : packed.pack(form, `"${column}"`);
  });

export function packedActions(kit: SchemaKit): string[] {
  const { packed } = kit;
  if (packed === null || kit.shared) return [];
  const kinds = Object.fromEntries(
    Object.entries(KIND).map(([column, type]) => [`kind_${column}`, DECIDED.includes(column) ? `${type}!` : type]),
  );
  const kindOf = values(KIND, packed);
  const actions = values(ACTION, packed).map((value, i) => {
    const column = Object.keys(ACTION)[i] as string;
    if (column === "kind") return "number";
    return KIND_COLUMNS.includes(column) ? `case when number is null then ${value} end` : value;
  });
  return [
    table("action_kinds", { number: "integer!", ...kinds }, packed, `primary key ("number")) strict`),
    `insert into action_kinds (${Object.keys(kinds).join(", ")})
      select ${kindOf.join(", ")} from actions group by ${KIND_COLUMNS.join(", ")} having count(*) > 1`,
    ...kit.appendOnly("action_kinds", ["number"], "refuse"),
    table(
      "actions_27",
      ACTION,
      packed,
      `check (("kind" is null) = ("decision" is not null)), check ("kind" is null or ${OF_KIND}), constraint "actions_key" primary key ("decision_seq"), constraint "actions_kind" foreign key ("kind") references "action_kinds" ("number")) strict`,
    ),
    `create index "kinds_27" on "action_kinds" (kind_reason, kind_rule, kind_policy_hash)`,
    `insert into actions_27 (${Object.keys(ACTION).join(", ")})
      select ${actions.join(", ")} from actions left join action_kinds on ${KIND_COLUMNS.map((column, i) => `kind_${column} is ${kindOf[i]}`).join(" and ")}
      order by decision_seq`,
    `drop index "kinds_27"`,
    `drop index "actions_by_id"`,
    `create unique index "actions_by_id" on "actions_27" ("id")`,
    table(
      "approvals_27",
      APPROVAL,
      packed,
      `constraint "approvals_key" primary key ("action_id", "principal"), constraint "approvals_action" foreign key ("action_id") references "actions_27" ("id")) strict, without rowid`,
    ),
    `insert into approvals_27 (${Object.keys(APPROVAL).join(", ")}) select ${values(APPROVAL, packed).join(", ")} from approvals`,
    `drop table "approvals"`,
    `drop table "actions"`,
    `alter table "actions_27" rename to "actions"`,
    `alter table "approvals_27" rename to "approvals"`,
    ...INDEXES.map(
      ([name, columns, where]) =>
        `create index "${name}" on "actions" (${columns})${where === undefined ? "" : ` where ${where}`}`,
    ),
  ];
}
