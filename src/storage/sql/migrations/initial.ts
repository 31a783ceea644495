/** Step 1: the ledger, actions, keys, policies. */
import { sql, type Compilable, type CreateTableBuilder } from "kysely";
import type { SqlDialect } from "../dialect.ts";
import { tablesOf } from "./table.ts";

/** RFC 6962, section 2.1: SHA-256 of nothing. */
const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

export function initial(kit: SqlDialect): string[] {
  const { bytes, integer, text } = kit;
  const table = tablesOf(kit);
  const key = (
    builder: CreateTableBuilder<string, string>,
    name: string,
    ...columns: string[]
  ): CreateTableBuilder<string, string> => builder.addPrimaryKeyConstraint(`${name}_key`, columns);
  const single = (builder: CreateTableBuilder<string, string>, name: string): CreateTableBuilder<string, string> =>
    key(builder, name, "id").addCheckConstraint(`${name}_single`, sql`id = 1`);
  const index = (name: string, on: string, ...columns: string[]): Compilable =>
    kit.db.schema.createIndex(name).on(on).columns(columns);

  const statements: (Compilable | string)[] = [
    // Hashes stand before the bytes: reading a range of hashes then touches no overflow page.
    kit.finish(
      key(
        table("entries", ["action_id", "agent_id", "submitted_by"], {
          seq: integer,
          leaf_hash: bytes,
          type: text,
          action_id: text,
          agent_id: text,
          submitted_by: text,
          created_at: integer,
          bytes,
        }),
        "entries",
        "seq",
      ),
    ),
    index("entries_by_leaf_hash", "entries", "leaf_hash"),
    kit.db.schema
      .createIndex("entries_by_action")
      .on("entries")
      .columns(["action_id", "seq"])
      .where(sql<boolean>`action_id is not null`),

    kit.finish(
      key(
        table("tiles", [], { level: integer, index: integer, root: bytes, hashes: bytes }),
        "tiles",
        "level",
        "index",
      ),
    ),
    kit.finish(
      single(
        table("ledger_head", ["policy_set"], {
          id: integer,
          size: integer,
          root: bytes,
          edge: bytes,
          policy_set: text,
          epoch: integer,
        }),
        "ledger_head",
      ),
    ),
    kit.finish(single(table("checkpoint", ["note"], { id: integer, size: integer, note: text }), "checkpoint")),

    kit.finish(
      key(
        table(
          "actions",
          [
            "risk_level",
            "policy",
            "rule",
            "policy_version",
            "policy_hash",
            "submitted_agent",
            "submitted_owner",
            "quorum",
            "expires_at",
            "permit_issued_at",
            "permit_expires_at",
            "started_at",
            "started_by",
            "result",
          ],
          {
            decision_seq: integer,
            id: text,
            agent_id: text,
            tool: text,
            operation: text,
            status: text,
            submitted_by: text,
            created_at: integer,
            updated_at: integer,
            expires_at: integer,
            permit_issued_at: integer,
            permit_expires_at: integer,
            started_at: integer,
            started_by: text,
            quorum: integer,
            decision: text,
            reason: text,
            reason_code: text,
            risk_level: text,
            policy: text,
            rule: text,
            policy_version: integer,
            policy_hash: text,
            decision_hash: text,
            submitted_agent: text,
            submitted_owner: text,
            request_hash: text,
            salt: text,
            result: text,
            request: text,
          },
        ),
        "actions",
        "decision_seq",
      ),
    ),
    kit.db.schema.createIndex("actions_by_id").on("actions").column("id").unique(),
    index("actions_by_agent", "actions", "agent_id", "decision_seq"),
    index("actions_by_submitter", "actions", "submitted_by", "decision_seq"),
    index("actions_by_status", "actions", "status", "decision_seq"),
    index("actions_by_tool", "actions", "tool", "decision_seq"),
    index("actions_by_operation", "actions", "operation", "decision_seq"),
    index("actions_by_time", "actions", "created_at"),
    // Only what can expire: an action that is decided at once costs this index nothing. The status comes
    // first, or the planner takes the index over all statuses and sorts.
    kit.db.schema
      .createIndex("actions_pending")
      .on("actions")
      .columns(["status", "expires_at", "decision_seq"])
      .where(sql<boolean>`status = 'pending_approval'`),

    kit.finish(
      key(
        table("approvals", ["reason"], {
          action_id: text,
          principal: text,
          key_id: text,
          approve: integer,
          reason: text,
          self_approval: integer,
          seq: integer,
          created_at: integer,
        }),
        "approvals",
        "action_id",
        "principal",
      ).addForeignKeyConstraint("approvals_action", ["action_id"], "actions", ["id"]),
      true,
    ),

    kit.finish(
      key(
        table("idempotency", [], {
          key_id: text,
          route: text,
          idempotency_key: text,
          body_hash: text,
          resource_id: text,
          created_at: integer,
        }),
        "idempotency",
        "key_id",
        "route",
        "idempotency_key",
      ),
      true,
    ),

    kit.finish(
      key(
        table("api_keys", ["agent_id", "owner", "created_by", "expires_at", "revoked_at"], {
          id: text,
          name: text,
          hash: text,
          prefix: text,
          scopes: text,
          agent_id: text,
          owner: text,
          created_by: text,
          created_at: integer,
          expires_at: integer,
          revoked_at: integer,
        }),
        "api_keys",
        "id",
      ).addUniqueConstraint("api_keys_hash", ["hash"]),
    ),

    kit.finish(
      key(
        table("policies", ["managed_by", "active_version"], {
          id: text,
          name: text,
          managed_by: text,
          latest_version: integer,
          active_version: integer,
          created_at: integer,
          updated_at: integer,
        }),
        "policies",
        "id",
      ).addUniqueConstraint("policies_name", ["name"]),
    ),
    kit.finish(
      key(
        table("policy_versions", ["created_by"], {
          policy_id: text,
          version: integer,
          digest: text,
          created_by: text,
          created_at: integer,
          definition: text,
        }),
        "policy_versions",
        "policy_id",
        "version",
      ).addForeignKeyConstraint("policy_versions_policy", ["policy_id"], "policies", ["id"]),
    ),
    kit.finish(
      key(table("policy_sets", [], { digest: text, created_at: integer, document: text }), "policy_sets", "digest"),
    ),

    kit.finish(key(table("meta", [], { name: text, value: text }), "meta", "name")),
    kit.finish(single(table("liveness", [], { id: integer, pings: integer }), "liveness")),

    sql`insert into ledger_head (id, size, root, edge, epoch) values (1, 0, ${kit.bytesOf(EMPTY_ROOT)}, ${kit.bytesOf("")}, 0)`.compile(
      kit.db,
    ).sql,
    sql`insert into checkpoint (id, size) values (1, 0)`.compile(kit.db).sql,
    sql`insert into liveness (id, pings) values (1, 0)`.compile(kit.db).sql,

    ...kit.appendOnly("entries", ["seq"], "refuse"),
    ...kit.appendOnly("tiles", ["level", "index"], "refuse"),
    ...kit.appendOnly("policy_versions", ["policy_id", "version"], "refuse"),
    ...kit.appendOnly("policy_sets", ["digest"], "keep"),
    ...kit.neverShrinks("ledger_head", "size"),
    ...kit.neverShrinks("checkpoint", "size"),
  ];
  return statements.map((statement) => (typeof statement === "string" ? statement : statement.compile().sql));
}
