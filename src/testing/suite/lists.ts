/** Cases for lists of actions: every filter and combinations of filters, within the caller's visibility. */
import assert from "./assert.ts";
import type { ActionFilter, ActionRow, DecisionFilter, StoredVisibility } from "../../contract/storage.ts";
import { CHANGED_BY_POLICIES, encodeEdit } from "../../domain/edited-request.ts";
import { actionRow, appendEntries, approvalRow, leafHashHex, BASE_TIME, type DefineCase } from "./rows.ts";

/** 48 actions whose members repeat with different periods. Each creation time belongs to two actions. */
const ROWS: ActionRow[] = Array.from({ length: 48 }, (_, n) =>
  actionRow(n, {
    agent_id: `agent-${n % 2}`,
    submitted_by: `key-${n % 3}`,
    status: n % 4 === 0 ? "denied" : n % 4 === 1 ? "allowed" : "approved",
    tool: n % 5 < 3 ? "stripe" : "shell",
    operation: n % 7 < 4 ? "refund" : "exec",
    request_hash: leafHashHex(`request ${n % 11 < 6}`),
    allowed_by: n % 13 < 7 ? "grant-1" : n % 13 < 9 ? "grant-2" : null,
    plan_id: n % 17 < 8 ? "plan-1" : n % 17 < 11 ? "plan-2" : null,
    plan_position: n % 17 < 8 ? (n % 17) + 1 : n % 17 < 11 ? (n % 17) - 7 : null,
    created_at: BASE_TIME + Math.floor(n / 2) * 10,
  }),
);

const OPTIONS: { [Name in keyof ActionFilter]?: NonNullable<ActionFilter[Name]> } = {
  status: "approved",
  agent_id: "agent-1",
  tool: "stripe",
  operation: "refund",
  request_hash: leafHashHex("request true"),
  allowed_by: "grant-1",
  plan_id: "plan-1",
  since: BASE_TIME + 50,
  until: BASE_TIME + 200,
  before_seq: 37,
};

/** Applies the filter, with an implementation that is independent of the storage. */
function expected(filter: ActionFilter): ActionRow[] {
  const seen = filter.visibility;
  return ROWS.filter(
    (row) => "all" in seen || ("agent_id" in seen ? row.agent_id === seen.agent_id : row.submitted_by === seen.key_id),
  )
    .filter((row) => filter.status === undefined || row.status === filter.status)
    .filter((row) => filter.agent_id === undefined || row.agent_id === filter.agent_id)
    .filter((row) => filter.tool === undefined || row.tool === filter.tool)
    .filter((row) => filter.operation === undefined || row.operation === filter.operation)
    .filter((row) => filter.request_hash === undefined || row.request_hash === filter.request_hash)
    .filter((row) => filter.allowed_by === undefined || row.allowed_by === filter.allowed_by)
    .filter((row) => filter.plan_id === undefined || row.plan_id === filter.plan_id)
    .filter((row) => filter.since === undefined || row.created_at >= filter.since)
    .filter((row) => filter.until === undefined || row.created_at < filter.until)
    .filter((row) => filter.before_seq === undefined || row.decision_seq < filter.before_seq)
    .sort((a, b) => b.decision_seq - a.decision_seq)
    .slice(filter.offset ?? 0, (filter.offset ?? 0) + filter.limit);
}

function decisionCases(test: DefineCase): void {
  test("decisions are listed with their entries, newest first, by range, time and visibility", async ({ storage }) => {
    assert.equal(await storage.decisionSpan(0, Number.MAX_SAFE_INTEGER), null);
    await storage.write(async (tx) => {
      await appendEntries(tx, 12);
      // As if the clock had been set back once. Entries 3 and 7 are not decisions.
      for (const n of [0, 1, 2, 4, 5, 6, 8, 9, 10, 11])
        await tx.insertAction(
          actionRow(n, {
            created_at: BASE_TIME + (n === 5 ? 1 : n) * 10,
            agent_id: `agent-${n % 2}`,
            submitted_by: `key-${n % 3}`,
          }),
        );
    });
    const all = {
      visibility: { all: true } as StoredVisibility,
      from_seq: 0,
      before_seq: 12,
      since: BASE_TIME,
      until: BASE_TIME + 1000,
      limit: 100,
    };
    const seqs = async (filter: Partial<DecisionFilter>): Promise<number[]> =>
      (await storage.decisions({ ...all, ...filter })).map(({ seq }) => seq);
    assert.deepEqual(await seqs({}), [11, 10, 9, 8, 6, 5, 4, 2, 1, 0]);
    assert.deepEqual(await seqs({ before_seq: 9, limit: 3 }), [8, 6, 5]);
    assert.deepEqual(await seqs({ from_seq: 4, before_seq: 9 }), [8, 6, 5, 4]);
    assert.deepEqual(
      await seqs({ since: BASE_TIME + 20, until: BASE_TIME + 60 }),
      [4, 2],
      "by creation time, with an exclusive end",
    );
    assert.deepEqual(await seqs({ visibility: { agent_id: "agent-1" } }), [11, 9, 5, 1]);
    assert.deepEqual(await seqs({ visibility: { key_id: "key-0" } }), [9, 6, 0]);
    assert.deepEqual(await storage.decisionSpan(BASE_TIME + 10, BASE_TIME + 20), { first: 1, last: 5 });
    assert.deepEqual(await storage.decisionSpan(BASE_TIME + 110, BASE_TIME + 111), { first: 11, last: 11 });
    assert.equal(await storage.decisionSpan(BASE_TIME + 111, BASE_TIME + 1000), null);
    const [one] = await storage.decisions({ ...all, before_seq: 5, limit: 1 });
    assert.deepEqual(one, {
      seq: 4,
      action_id: "action-4",
      created_at: BASE_TIME + 40,
      request: actionRow(4).request,
      past: null,
      bytes: (await storage.entries(4, 5))[0]?.bytes,
    });
  });
}

export function listCases(test: DefineCase): void {
  decisionCases(test);
  const filled = (name: string, check: (list: (filter: ActionFilter) => Promise<ActionRow[]>) => Promise<void>): void =>
    test(name, async ({ storage }) => {
      await storage.write(async (tx) => {
        // Insert the rows in mixed order.
        for (const row of [...ROWS].sort((a, b) => (a.decision_seq % 7) - (b.decision_seq % 7)))
          await tx.insertAction(row);
      });
      await check((filter) => storage.actions(filter));
    });
  const everything: StoredVisibility = { all: true };

  filled("actions are listed newest first", async (list) => {
    assert.deepEqual(await list({ visibility: everything, limit: 1000 }), [...ROWS].reverse());
  });

  filled(
    "a credential sees only the actions of its agent, or only the actions that its key submitted",
    async (list) => {
      assert.deepEqual(
        await list({ visibility: { agent_id: "agent-0" }, limit: 99 }),
        ROWS.filter((row) => row.agent_id === "agent-0").reverse(),
      );
      assert.deepEqual(
        await list({ visibility: { key_id: "key-2" }, limit: 99 }),
        ROWS.filter((row) => row.submitted_by === "key-2").reverse(),
      );
      assert.deepEqual(await list({ visibility: { agent_id: "key-2" }, limit: 99 }), []);
      assert.deepEqual(await list({ visibility: { key_id: "" }, limit: 99 }), []);
    },
  );

  filled("a filter for another agent returns nothing to a key that sees one agent", async (list) => {
    assert.deepEqual(await list({ visibility: { agent_id: "agent-0" }, agent_id: "agent-1", limit: 99 }), []);
  });

  filled("the first action of each plan is found, even with other filters", async (list) => {
    const first = ROWS.filter((row) => row.plan_position === 1).reverse();
    assert.ok(first.length > 1);
    assert.deepEqual(await list({ visibility: everything, first_of_plan: true, limit: 99 }), first);
    const own = { visibility: { key_id: "key-1" }, agent_id: "agent-1", before_seq: 40 } as const;
    assert.deepEqual(
      await list({ ...own, first_of_plan: true, limit: 99 }),
      first.filter(
        (row) => row.submitted_by === "key-1" && row.agent_id === "agent-1" && row.decision_seq < own.before_seq,
      ),
    );
  });

  filled("since is inclusive, until is exclusive, the cursor is exclusive", async (list) => {
    const seqs = async (filter: Partial<ActionFilter>): Promise<number[]> =>
      (await list({ visibility: everything, limit: 99, ...filter })).map((row) => row.decision_seq);
    assert.deepEqual(await seqs({ since: BASE_TIME + 230 }), [47, 46]);
    assert.deepEqual(await seqs({ since: BASE_TIME + 231 }), []);
    assert.deepEqual(await seqs({ until: BASE_TIME + 10 }), [1, 0]);
    assert.deepEqual(await seqs({ until: BASE_TIME }), []);
    assert.deepEqual(await seqs({ since: BASE_TIME + 10, until: BASE_TIME + 11 }), [3, 2]);
    assert.deepEqual(await seqs({ before_seq: 2 }), [1, 0]);
    assert.deepEqual(await seqs({ before_seq: 0 }), []);
  });

  test("actions are found by text that they contain, the beginning of their id, and values without an index", async ({
    storage,
  }) => {
    const id = "019a17d2-0000-7000-8000-00000000000a";
    const erased = { request: "", request_hash: "", salt: "" };
    const changed = (operation: string): string =>
      encodeEdit({
        at: BASE_TIME,
        by: CHANGED_BY_POLICIES,
        comment: null,
        request: { agent_id: "a", tool: "t", operation, params: {}, context: {} },
        salt: "5a17",
      });
    const pending = { status: "pending_approval", decision: "require_approval", expires_at: BASE_TIME } as const;
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(0, { ...erased, ...pending, agent_id: "Agent-QX" }));
      await tx.insertAction(actionRow(1, { ...erased, ...pending, tool: "tool-qx\u0000", policy: "p", rule: "r" }));
      await tx.insertAction(actionRow(2, { ...erased, operation: "QX", policy: "p", rule: null }));
      await tx.insertAction(actionRow(3, { request: '{"a":"größe 300\u212a","b":"q%x"}' }));
      await tx.insertAction(actionRow(4, { effective: changed("qx") }));
      await tx.insertAction(actionRow(5, { id, submitted_by: "key-2" }));
    });
    const seqs = async (filter: Partial<ActionFilter>): Promise<number[]> =>
      (await storage.actions({ visibility: everything, limit: 99, ...filter })).map((row) => row.decision_seq);
    for (const [text, id_prefix, found] of [
      ["qx", "", [4, 2, 1, 0]],
      ["q%x", "", [3]],
      ["q\\x", "", [3]],
      ["e 300_", "", [3]],
      ["300k", "", []],
      ["gr__e", "", [3]],
      [")(.*", "", []],
      ["5a17", "", []],
      ["019a17d2", "019a17d2", [5]],
      ["019a17d2-0000-7", "019a17d2-0000-7", [5]],
      [id, id, [5]],
      ["019a17d3", "019a17d3", []],
      ["019a17d20", "019a17d20", []],
      ["019a17d2", "", []],
    ] as const) {
      const contains = { text, id_prefix };
      assert.deepEqual(await seqs({ contains }), found, text);
      assert.deepEqual(
        await seqs({ contains, from_seq: 1, before_seq: 4, limit: 2 }),
        found.filter((seq) => seq > 0 && seq < 4).slice(0, 2),
      );
      const waiting = await storage.pendingActions(everything, { expires_at: 0, decision_seq: 0 }, 9, contains);
      assert.deepEqual(
        waiting.map((row) => row.decision_seq),
        found.filter((seq) => seq < 2).reverse(),
      );
      assert.deepEqual(await seqs({ contains, visibility: { key_id: "key-9" } }), []);
    }
    const contains = { text: "qx", id_prefix: "" };
    assert.deepEqual(await seqs({ contains, status: "expired", as_of: BASE_TIME }), [1, 0]);
    assert.deepEqual(await seqs({ from_seq: 4 }), [5, 4]);
    assert.deepEqual(await seqs({ policy: "p" }), [2, 1]);
    assert.deepEqual(await seqs({ policy: "p", rule: "r", decision: "require_approval" }), [1]);
    assert.deepEqual(await seqs({ decision: "deny" }), []);
  });

  test("actions are found by comments of votes, and returned if only their entries or names can contain the text", async ({
    storage,
  }) => {
    const asked = { decision: "require_approval", quorum: 1, status: "approved" } as const;
    const edit = (by: string): string =>
      encodeEdit({
        at: BASE_TIME,
        by,
        comment: null,
        request: { agent_id: "a", tool: "t", operation: "o", params: { by: "policies" }, context: {} },
        salt: "00",
      });
    const rows: Partial<ActionRow>[] = [
      { ...asked, reason: "over QX" },
      { ...asked, policy: "qx", rule: null },
      { ...asked, policy: "p", rule: "the qx" },
      asked,
      { ...asked, status: "denied", rejection_until: BASE_TIME },
      { ...asked, effective: edit(CHANGED_BY_POLICIES) },
      // Other text can be in votes and entries of these.
      asked,
      { ...asked, status: "denied" },
      { ...asked, effective: edit("user:1") },
      { ...asked, plan_id: "p" },
      { ...asked, reason_code: "MORE_APPROVALS_NEEDED" },
      { ...asked, questions: '[{"answer":null}]' },
      // No approval was requested, so no one voted.
      { status: "denied" },
      { effective: edit("user:1") },
    ];
    const votes = [
      approvalRow("action-3", "user:1", { reason: "said Qx on the phone" }),
      approvalRow("action-4", "user:1", { reason: `${"x".repeat(3000)}`, approve: false }),
      approvalRow("action-5", "user:1", { reason: "qy" }),
      approvalRow("action-6", "key:1"),
      approvalRow("action-0", "user:2", { seq: 2 }),
    ];
    await storage.write(async (tx) => {
      for (const [n, row] of rows.entries()) await tx.insertAction(actionRow(n, row));
      for (const vote of votes) await tx.insertApproval(vote);
    });
    const found = async (text: string): Promise<number[]> =>
      (await storage.actions({ visibility: everything, limit: 99, contains: { text, id_prefix: "" } }))
        .map((row) => row.decision_seq)
        // Whether a long comment is compared is for the storage to decide.
        .filter((seq) => seq !== 4)
        .reverse();
    assert.deepEqual(await found("qx"), [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]);
    assert.deepEqual(await found("phone"), [3, 6, 7, 8, 9, 10, 11]);
    const both = await storage.approvalsOfActions(["action-0", "action-3", "action-3", "action-9"]);
    assert.deepEqual(
      both.sort((a, b) => b.seq - a.seq),
      [votes[4], votes[0]],
    );
    assert.deepEqual(await storage.approvalsOfActions([]), []);
  });

  filled("limit and offset select from the same list", async (list) => {
    const all = [...ROWS].reverse();
    assert.deepEqual(await list({ visibility: everything, limit: 5 }), all.slice(0, 5));
    assert.deepEqual(await list({ visibility: everything, limit: 5, offset: 5 }), all.slice(5, 10));
    assert.deepEqual(await list({ visibility: everything, limit: 5, offset: 46 }), all.slice(46));
    assert.deepEqual(await list({ visibility: everything, limit: 5, offset: 48 }), []);
    assert.deepEqual(await list({ visibility: everything, limit: 0 }), []);
  });

  filled(
    "every combination of three filters, and all of them, with visibility, cursor and offset return exactly the matching actions",
    async (list) => {
      const names = Object.keys(OPTIONS) as (keyof typeof OPTIONS)[];
      const visibilities: StoredVisibility[] = [everything, { agent_id: "agent-1" }, { key_id: "key-1" }];
      for (let chosen = 0; chosen < 2 ** names.length; chosen++) {
        const picked = names.filter((_, i) => (chosen >> i) % 2 === 1);
        // Combinations between these return nothing, and would take five times as long.
        if (picked.length > 3 && picked.length < names.length - 1) continue;
        const options = Object.fromEntries(picked.map((name) => [name, OPTIONS[name]]));
        for (const visibility of visibilities) {
          for (const page of [{ limit: 99 }, { limit: 2, offset: 1 }]) {
            const filter: ActionFilter = { visibility, ...options, ...page };
            assert.deepEqual(await list(filter), expected(filter), JSON.stringify(filter));
          }
        }
      }
    },
  );

  filled("a cursor returns the whole list, without gaps or repetitions", async (list) => {
    const walked: number[] = [];
    let before_seq: number | undefined;
    for (;;) {
      const page = await list({
        visibility: { key_id: "key-1" },
        limit: 3,
        ...(before_seq === undefined ? {} : { before_seq }),
      });
      if (page.length === 0) break;
      walked.push(...page.map((row) => row.decision_seq));
      before_seq = walked.at(-1) as number;
    }
    assert.deepEqual(
      walked,
      expected({ visibility: { key_id: "key-1" }, limit: 99 }).map((row) => row.decision_seq),
    );
  });

  test("lists within a transaction contain its own actions and changes", async ({ storage }) => {
    await storage.write(async (tx) => {
      await tx.insertAction(actionRow(1));
      await tx.insertAction(actionRow(2));
      await tx.updateAction("action-1", { status: "allowed" }, { status: "executing", updated_at: BASE_TIME });
      assert.deepEqual(
        (await tx.actions({ visibility: everything, status: "executing", limit: 9 })).map((row) => row.id),
        ["action-1"],
      );
      assert.deepEqual(
        (await tx.actions({ visibility: everything, limit: 9 })).map((row) => row.id),
        ["action-2", "action-1"],
      );
    });
  });
}
