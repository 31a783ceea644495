/**
 * Every read and every guarded write of the contract finds its rows through an index, so that its cost does not grow
 * with the store.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { prepareReads } from "../../plugins/storage-sql/queries.ts";
import type { Statement } from "../../plugins/storage-sql/statement.ts";
import { prepareWrites } from "../../plugins/storage-sql/writes.ts";
import { sqliteStorage } from "../../plugins/storage-sqlite/index.ts";
import { sqliteDialect, sqliteSqlBuilder as writer } from "../../plugins/storage-sql/dialects/sqlite.ts";
import { loadSqlite } from "../../plugins/storage-sqlite/load-library.ts";
import type { ActionFilter } from "../../src/contract/storage.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("assent-plans-");
after(() => rmSync(folder, { recursive: true }));
const path = join(folder, "assent.db");
const storage = sqliteStorage({ path });
await storage.open();
await storage.close();
const { DatabaseSync } = await loadSqlite();
const db = new DatabaseSync(path);

function planOf(statement: Statement): string[] {
  return db
    .prepare(`explain query plan ${statement.sql}`)
    .all()
    .map((row) => String((row as { detail: unknown }).detail));
}

const {
  actions,
  openAction,
  agents,
  sums,
  decisions,
  deliveryBacklog,
  deliveryLists,
  documentLists,
  dueDeliveries,
  pendingActions,
  approvedActions,
  openActionsOf,
  followedEntries,
  rejectedAction,
  // Used by the audit.
  bundledEntries: _b,
  agentNames: _f,
  faultyTotals: _o,
  hashIndexSize: _h,
  ...reads
} = prepareReads(writer, sqliteDialect);
const {
  updateAction,
  erasePart,
  updateAgent,
  updatePolicy,
  updateDelivery,
  deferDeliveries,
  hastenDeliveries,
  pruneDeliveries,
  pruneLimitUses,
  prunePastActions,
  insertPastAction: _q,
  insertDelivery: _d,
  insertLimitUse: _l,
  insertTotal: _x,
  insertAgent: _g,
  insertEntry: _e,
  insertTile: _t,
  insertBundle: _u,
  insertAction: _a,
  insertApproval: _p,
  insertIdempotency: _i,
  insertKey: _k,
  insertPolicy: _y,
  insertPolicyVersion: _v,
  putPolicySet: _s,
  putMeta: _m,
  countDocument: _c,
  insertDocument: _n,
  ...updates
} = prepareWrites(writer, sqliteDialect);

/** The votes of an action, whose comments a search compares. */
const COMMENTS = ["CORRELATED SCALAR SUBQUERY 1", "SEARCH approvals USING PRIMARY KEY (action_id=?)"];
const COMPOUND = ["CO-ROUTINE parts", "COMPOUND QUERY", "LEFT-MOST SUBQUERY", "UNION ALL", "SCAN parts"];

describe("query plans", () => {
  // Small tables that are read completely.
  const whole = ["keys", "policies"];
  for (const [name, statement] of Object.entries({ ...reads, ...updates })) {
    if (whole.includes(name)) continue;
    it(`${name} searches, and neither scans nor sorts`, () => {
      // An action has few votes, which are found through a key with a different order. The parameters of a batch are
      // few, too.
      const given = "SCAN json_each VIRTUAL TABLE INDEX 1:";
      const few: Record<string, string[]> = {
        approvals: ["USE TEMP B-TREE FOR ORDER BY"],
        approvalRequests: ["CO-ROUTINE newest", "SCAN newest", "USE TEMP B-TREE FOR count(DISTINCT)"],
        actionsById: [given],
        approvalsOfActions: [given],
        idempotencies: [given],
        // A history contains at most some hundred actions.
        pastActions: ["CO-ROUTINE given", "SCAN given", "USE TEMP B-TREE FOR ORDER BY"],
        limitsUsed: [given, ...COMPOUND, "USE TEMP B-TREE FOR GROUP BY"],
        changeTotals: [given, "SCAN change", "MATERIALIZE change", "USE TEMP B-TREE FOR GROUP BY"],
        entriesOfAction: ["MERGE (UNION ALL)", "LEFT", "RIGHT", "SCALAR SUBQUERY 2"],
      };
      const sorts = few[name] ?? [];
      for (const step of planOf(statement))
        assert.ok(/^(SEARCH|CORRELATED SCALAR SUBQUERY) /.test(step) || sorts.includes(step), step);
    });
  }

  it("requests for approval are counted in an index that holds only them", () => {
    assert.ok(
      planOf(reads.approvalRequests).some((step) => step.includes("USING COVERING INDEX actions_asked")),
      planOf(reads.approvalRequests).join("; "),
    );
  });

  it("the usage of a limit is read from totals, and from the uses before and after them", () => {
    const steps = planOf(reads.limitsUsed).filter((step) => /limit_|^SEARCH t /.test(step));
    const [key, least, most] = ["(policy=? AND limit_name=? AND subject=? AND ", ">?)", "<?)"];
    assert.deepEqual(steps, [
      `SEARCH limit_totals USING PRIMARY KEY ${key}from_at${least}`,
      `SEARCH limit_uses USING PRIMARY KEY ${key}at>? AND at${most}`,
      `SEARCH t USING PRIMARY KEY ${key}from_at${least}`,
      `SEARCH limit_uses USING PRIMARY KEY ${key}at${least}`,
      `SEARCH t USING PRIMARY KEY ${key}from_at${least}`,
    ]);
  });

  it("a change of an action or a policy searches by id", () => {
    const guarded = updateAction(
      { status: "pending_approval", expires_after: 1, expired_by: 1, approved_after: 1 },
      { status: "approved", updated_at: 1 },
    );
    assert.deepEqual(planOf(guarded), ["SEARCH actions USING INDEX actions_by_id (id=?)"]);
    assert.deepEqual(planOf(erasePart.result), ["SEARCH actions USING INDEX actions_by_id (id=?)"]);
    assert.match(planOf(updatePolicy).join(), /^SEARCH policies USING INDEX/);
    assert.match(planOf(updateAgent).join(), /^SEARCH agents USING INDEX/);
  });

  it("waiting deliveries are found with an index that contains only them, and lists with an index for their filter", () => {
    const steps = planOf(dueDeliveries).join();
    assert.match(steps, /SEARCH deliveries USING COVERING INDEX deliveries_(waiting|next|urgent) \(destination>\?\)/);
    assert.match(steps, /SEARCH deliveries USING COVERING INDEX deliveries_urgent \(destination=\?\)/);
    assert.match(steps, /SEARCH first USING COVERING INDEX deliveries_urgent \(destination=\?\)/);
    assert.doesNotMatch(steps, /SCAN deliveries|deliveries_by_destination/);
    for (const [state, statement] of Object.entries(deliveryBacklog))
      assert.match(
        planOf(statement).join(),
        state === "dead" ? /USING INDEX deliveries_dead/ : /USING INDEX deliveries_/,
        state,
      );
    assert.deepEqual(planOf(reads.nextScheduled), ["SEARCH deliveries USING COVERING INDEX deliveries_scheduled"]);
    assert.deepEqual(planOf(deliveryLists({ state: "dead", before_position: 1, limit: 1 })), [
      "SEARCH deliveries USING INDEX deliveries_dead (position<?)",
    ]);
    assert.deepEqual(planOf(deliveryLists({ destination: "d", before_position: 1, limit: 1 })), [
      "SEARCH deliveries USING INDEX deliveries_by_destination (destination=? AND position<?)",
    ]);
    assert.deepEqual(planOf(updateDelivery({ state: "dead", updated_at: 1 })), [
      "SEARCH deliveries USING INDEX deliveries_id (id=?)",
    ]);
    for (const statement of [deferDeliveries, hastenDeliveries])
      assert.match(
        planOf(statement).join(),
        /^SEARCH deliveries USING INDEX deliveries_next \(destination=\? AND next_at[<>]\?/,
      );
    assert.match(planOf(pruneDeliveries).join(), /SEARCH deliveries USING INDEX deliveries_over/);
    assert.match(planOf(pruneLimitUses).join(), /SEARCH limit_uses USING (COVERING )?INDEX limit_uses_over/);
    assert.match(planOf(prunePastActions).join(), /SEARCH past_actions USING (COVERING )?INDEX past_actions_over/);
  });

  it("documents are found and listed by their key", () => {
    for (const bounds of [
      { after: false, to: false },
      { after: true, to: true },
    ])
      assert.match(
        planOf(documentLists(bounds)).join(),
        /^SEARCH documents USING INDEX sqlite_autoindex_documents_1 \(plugin=\? AND key>\?( AND key<\?)?\)$/,
      );
  });

  it("decisions are read by sequence, for every kind of caller", () => {
    for (const kind of ["all", "agent_id", "key_id"] as const)
      assert.deepEqual(planOf(decisions[kind]), [
        "SEARCH actions USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        "SEARCH entries USING INTEGER PRIMARY KEY (rowid=?)",
      ]);
  });

  it("counts read sums by key, actions at the edges by time, and actions not yet in the sums by sequence", () => {
    assert.match(
      planOf(sums.bucketsOf).join(),
      /SEARCH action_sums USING PRIMARY KEY \(grain=\? AND visible=\? AND dimension=\? AND start=\?\)/,
    );
    assert.match(planOf(sums.foldedActions).join(), /SEARCH actions USING INDEX actions_by_id \(id=\?/);
    assert.match(planOf(sums.buckets).join(), /SEARCH action_sums USING PRIMARY KEY/);
    for (const kind of ["all", "agent_id", "key_id"] as const) {
      assert.match(
        planOf(sums.edge[kind]).join(),
        /SEARCH actions USING INDEX actions_by_time \(created_at>\? AND created_at<\?\)/,
      );
      assert.match(planOf(sums.tail[kind]).join(), /SEARCH actions USING INTEGER PRIMARY KEY \(rowid>\?\)/);
      assert.match(planOf(sums.waits[kind]).join(), /SEARCH actions USING (COVERING )?INDEX actions_waited/);
    }
    assert.match(planOf(sums.next).join(), /SEARCH actions USING (COVERING INDEX|INTEGER PRIMARY KEY)/);
    assert.match(planOf(sums.fold).join(), /SEARCH actions USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/);
  });

  it("a page of agents needs no sorting", () => {
    for (const filter of [{}, { suspended: true }])
      assert.deepEqual(planOf(agents({ ...filter, before_seq: 9, limit: 1 })), [
        "SEARCH agents USING INDEX agents_registered (registered_seq<?)",
      ]);
  });

  it("pending actions are found with an index that contains only them", () => {
    assert.match(planOf(reads.overdueActions).join(), /USING INDEX actions_pending/);
    assert.match(planOf(reads.nextExpiry).join(), /USING COVERING INDEX actions_pending/);
    const search = "SEARCH actions USING INDEX actions_pending (status=? AND expires_at>?)";
    for (const { page, found } of Object.values(pendingActions)) {
      assert.deepEqual(planOf(page), [search]);
      assert.deepEqual(planOf(found), [search, ...COMMENTS]);
    }
    for (const { count } of [pendingActions.all, pendingActions.agent_id])
      assert.match(planOf(count).join(), /^SEARCH actions USING (COVERING )?INDEX actions_pending/);
  });

  it("the pending actions of a key are counted without reading their rows", () => {
    assert.deepEqual(planOf(pendingActions.key_id.count), [
      "SEARCH actions USING COVERING INDEX actions_open_waiting (status=? AND submitted_by=?)",
    ]);
  });

  it("entries of keys and agents are found with an index that contains only them", () => {
    assert.deepEqual(planOf(followedEntries), ["SEARCH entries USING INDEX entries_followed (seq>?)"]);
  });

  it("approved actions are found with an index that contains only them", () => {
    assert.deepEqual(planOf(approvedActions), [
      "SEARCH actions USING INDEX actions_approved (status=? AND approved_until>?)",
    ]);
  });

  it("open actions of an agent or a key are found by an index over open actions, from their deadline on", () => {
    assert.deepEqual(planOf(openActionsOf.agent_id), [
      "SEARCH actions USING INDEX actions_open_of_agent (<expr>=? AND <expr>>?)",
    ]);
    assert.deepEqual(planOf(openActionsOf.key_id), [
      "SEARCH actions USING INDEX actions_open_of_key (submitted_by=? AND status=? AND <expr>>?)",
    ]);
  });

  it("the action that a submission can join is the first row of an index that contains only open actions", () => {
    for (const [name, search] of [
      ["waiting", "actions_open_waiting (status=? AND submitted_by=? AND request_hash=? AND expires_at>?)"],
      ["approved", "actions_open_approved (status=? AND submitted_by=? AND request_hash=? AND approved_until>?)"],
    ] as const)
      assert.deepEqual(planOf(openAction[name]), [`SEARCH actions USING INDEX ${search}`]);
  });

  it("the allowed action that a submission can join is found in an index over open actions, without reading rows", () => {
    assert.deepEqual(planOf(openAction.allowed), [
      "SEARCH actions USING INTEGER PRIMARY KEY (rowid=?)",
      "SCALAR SUBQUERY 2",
      "CO-ROUTINE newest",
      "SEARCH actions USING COVERING INDEX actions_open_of_key (submitted_by=? AND status=? AND <expr>>?)",
      "SCAN newest",
      "USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
    ]);
  });

  it("the active rejection of a request is a row of an index that contains only rejections", () => {
    for (const [statement, index, column] of [
      [rejectedAction.submitted, "actions_rejected", "request_hash"],
      [rejectedAction.edited, "actions_rejected_edits", "effective_hash"],
    ] as const) {
      const search = `SEARCH actions USING INDEX ${index} ((${column},rejection_until)>(?,?) AND ${column}<?)`;
      assert.deepEqual(planOf(statement), [search]);
    }
  });

  it("the first actions of plans are rows of an index that contains only them, in the order of the list", () => {
    for (const visibility of [{ all: true }, { agent_id: "a" }, { key_id: "k" }] as const)
      for (const more of [{}, { before_seq: 9 }, { agent_id: "a" }]) {
        const [search, ...sorts] = planOf(actions({ visibility, first_of_plan: true, limit: 9, ...more }));
        assert.match(search ?? "", /^SEARCH actions USING INDEX actions_first_of_plan \(plan_position=\?/);
        assert.deepEqual(sorts, []);
      }
  });

  it("the actions of one request, and those that one permission allowed, are found by its hash or its id, whatever the other filters are", () => {
    const by = "SEARCH actions USING INTEGER PRIMARY KEY (rowid=?)";
    const allowed = "SEARCH actions USING INDEX actions_allowed_by (allowed_by=?)";
    for (const visibility of [{ all: true }, { agent_id: "a" }, { key_id: "k" }] as const)
      for (const more of [
        {},
        { status: "allowed" },
        { tool: "t", operation: "o", agent_id: "a" },
        { status: "pending_approval", as_of: 9 },
        { since: 1, until: 2 },
      ] as const) {
        assert.deepEqual(planOf(actions({ visibility, request_hash: "h", ...more, limit: 20 })), [by]);
        assert.deepEqual(planOf(actions({ visibility, allowed_by: "g", ...more, limit: 20 })), [allowed]);
      }
    const expired = planOf(actions({ visibility: all, request_hash: "h", status: "expired", as_of: 9, limit: 20 }));
    assert.ok(!expired.some((step) => /SCAN actions|actions_(pending|by_status)/.test(step)), expired.join("; "));
  });

  const all = { all: true } as const;
  const lists: [string, Omit<ActionFilter, "limit">][] = [
    ["agent's own", { visibility: { agent_id: "a" } }],
    ["key's own", { visibility: { key_id: "k" } }],
    ["status", { visibility: all, status: "allowed" }],
    ["agent", { visibility: all, agent_id: "a" }],
    ["tool", { visibility: all, tool: "t" }],
    ["operation", { visibility: all, operation: "o" }],
    ["agent's own by status", { visibility: { agent_id: "a" }, status: "allowed" }],
    ["key's own by tool, further back", { visibility: { key_id: "k" }, tool: "t", before_seq: 9 }],
    ["everything by status, tool and operation", { visibility: all, status: "allowed", tool: "t", operation: "o" }],
    ["further back", { visibility: all, before_seq: 9 }],
    ["text in a slice", { visibility: all, contains: { text: "a", id_prefix: "" }, from_seq: 1, before_seq: 9 }],
  ];
  for (const [name, filter] of lists) {
    it(`the list of ${name} searches and needs no sorting`, () => {
      const plan = planOf(actions({ ...filter, limit: 20 }));
      assert.deepEqual(plan.slice(1), "contains" in filter ? COMMENTS : []);
      assert.match(plan[0] as string, /^SEARCH actions USING (INDEX|INTEGER PRIMARY KEY)/);
    });
  }

  it("the list without a filter reads the table backwards and needs no sorting", () => {
    assert.deepEqual(planOf(actions({ visibility: all, limit: 20 })), ["SCAN actions"]);
  });

  it("the list of currently pending actions searches and needs no sorting", () => {
    const plan = planOf(actions({ visibility: all, status: "pending_approval", as_of: 9, limit: 20 }));
    assert.deepEqual(plan, ["SEARCH actions USING INDEX actions_by_status (status=?)"]);
  });

  it("the list of expired actions, marked or not, merges two sorted lists", () => {
    const plan = planOf(actions({ visibility: all, status: "expired", as_of: 9, limit: 20 }));
    assert.ok(plan.includes("MERGE (UNION ALL)"), plan.join("; "));
    assert.ok(!plan.some((step) => step.includes("SCAN actions")), plan.join("; "));
  });

  it("the list of a time span finds its ends by time, and reads its rows in order by the index of the other filter", () => {
    const span = { visibility: all, since: 1, until: 2, limit: 20 } as const;
    for (const [filter, search] of [
      [{}, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"],
      [{ agent_id: "a" }, "INDEX actions_by_agent (agent_id=? AND decision_seq>? AND decision_seq<?)"],
    ] as const) {
      const [rows, ...ends] = planOf(actions({ ...span, ...filter }));
      assert.equal(rows, `SEARCH actions USING ${search}`);
      assert.deepEqual(ends.filter((step) => !step.startsWith("SCALAR SUBQUERY")).sort(), [
        "SEARCH actions USING COVERING INDEX actions_by_time (created_at<?)",
        "SEARCH actions USING COVERING INDEX actions_by_time (created_at>?)",
      ]);
    }
  });
});
