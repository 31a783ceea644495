/** Cases for keys, agents and policies. */
import assert from "./assert.ts";
import { agentRow, keyRow, policyRow, BASE_TIME, policyVersionRow, type DefineCase, isStorageError } from "./rows.ts";

export function directoryCases(test: DefineCase): void {
  test("a key is returned as it was stored, by id and by hash", async ({ storage, reopen }) => {
    const rows = [
      keyRow(1),
      keyRow(2, {
        scopes: [],
        agent_id: "agent-1",
        owner: "user:dana",
        created_by: "key-1",
        expires_at: BASE_TIME + 9,
        revoked_at: BASE_TIME + 3,
      }),
      keyRow(3, { scopes: ['"', "\u0000", "é"] }),
    ];
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertKey(row);
    });
    const reopened = await reopen();
    for (const row of rows) {
      assert.deepEqual(await reopened.key(row.id), row);
      assert.deepEqual(await reopened.keyByHash(row.hash), row);
    }
    assert.equal(await reopened.key("key-4"), null);
    assert.equal(await reopened.keyByHash(keyRow(4).hash), null);
    assert.equal(await reopened.keyByHash(keyRow(1).hash.toUpperCase()), null);
  });

  test("keys are listed newest first, including revoked keys", async ({ storage }) => {
    await storage.write(async (tx) => {
      await tx.insertKey(keyRow(1, { created_at: BASE_TIME + 5 }));
      await tx.insertKey(keyRow(2, { created_at: BASE_TIME + 9, revoked_at: BASE_TIME + 10 }));
      await tx.insertKey(keyRow(3, { created_at: BASE_TIME + 1 }));
    });
    assert.deepEqual(
      (await storage.keys()).map((row) => row.id),
      ["key-2", "key-1", "key-3"],
    );
  });

  test("an id or a hash belongs to only one key", async ({ storage }) => {
    await storage.write((tx) => tx.insertKey(keyRow(1)));
    await assert.rejects(
      storage.write((tx) => tx.insertKey(keyRow(2, { id: "key-1" }))),
      isStorageError,
    );
    await assert.rejects(
      storage.write((tx) => tx.insertKey(keyRow(2, { hash: keyRow(1).hash }))),
      isStorageError,
    );
    assert.deepEqual(await storage.keys(), [keyRow(1)]);
  });

  test("a key can be revoked only once, and stays revoked", async ({ storage, reopen }) => {
    await storage.write(async (tx) => {
      await tx.insertKey(keyRow(1));
      await tx.insertKey(keyRow(2));
    });
    assert.equal(await storage.write((tx) => tx.revokeKey("key-1", BASE_TIME + 5)), true);
    assert.equal(await storage.write((tx) => tx.revokeKey("key-1", BASE_TIME + 6)), false);
    assert.equal(await storage.write((tx) => tx.revokeKey("key-3", BASE_TIME + 6)), false);
    const reopened = await reopen();
    assert.deepEqual(await reopened.key("key-1"), keyRow(1, { revoked_at: BASE_TIME + 5 }));
    assert.deepEqual(await reopened.keyByHash(keyRow(1).hash), keyRow(1, { revoked_at: BASE_TIME + 5 }));
    assert.deepEqual(await reopened.key("key-2"), keyRow(2));
  });

  test("a key's last use only moves forward", async ({ storage, reopen }) => {
    await storage.write(async (tx) => {
      await tx.insertKey(keyRow(1));
      await tx.insertKey(keyRow(2, { last_used_at: BASE_TIME }));
    });
    for (const [at, kept] of [
      [BASE_TIME + 5, BASE_TIME + 5],
      [BASE_TIME + 4, BASE_TIME + 5],
      [BASE_TIME + 6, BASE_TIME + 6],
    ] as const) {
      await storage.write((tx) => tx.touchKey("key-1", at));
      assert.equal((await storage.key("key-1"))?.last_used_at, kept);
    }
    await storage.write((tx) => tx.touchKey("key-9", BASE_TIME));
    const reopened = await reopen();
    assert.deepEqual(await reopened.keys(), [
      keyRow(2, { last_used_at: BASE_TIME }),
      keyRow(1, { last_used_at: BASE_TIME + 6 }),
    ]);
  });

  test("an agent is returned as it was stored, and its id and its position in lists are unique", async ({
    storage,
    reopen,
  }) => {
    const rows = [
      agentRow(1),
      agentRow(2, {
        description: "é\u0000\u0001",
        allowed_tools: [],
        metadata: '{"team":"x"}',
        suspended_at: BASE_TIME + 9,
        suspended_reason: "lost",
        created_by: "key-1",
        version: 7,
      }),
      agentRow(3, { allowed_tools: ["stripe", '"', "crm.*"] }),
    ];
    await storage.write(async (tx) => {
      for (const row of rows) await tx.insertAgent(row);
    });
    await assert.rejects(
      storage.write((tx) => tx.insertAgent(agentRow(1, { registered_seq: 9 }))),
      isStorageError,
    );
    await assert.rejects(
      storage.write((tx) => tx.insertAgent(agentRow(4, { registered_seq: 2 }))),
      isStorageError,
    );
    const reopened = await reopen();
    for (const row of rows) assert.deepEqual(await reopened.agent(row.id), row);
    assert.equal(await reopened.agent("agent-4"), null);
    assert.equal(await reopened.agent("Agent-1"), null);
  });

  test("agents are listed newest first, by filter and cursor", async ({ storage }) => {
    await storage.write(async (tx) => {
      for (const n of [3, 1, 5, 2, 4])
        await tx.insertAgent(agentRow(n, n % 2 === 0 ? { suspended_at: BASE_TIME } : {}));
    });
    const ids = async (filter: Parameters<typeof storage.agents>[0]): Promise<string[]> =>
      (await storage.agents(filter)).map((row) => row.id.slice(6));
    assert.deepEqual(await ids({ limit: 9 }), ["5", "4", "3", "2", "1"]);
    assert.deepEqual(await ids({ limit: 2 }), ["5", "4"]);
    assert.deepEqual(await ids({ limit: 2, before_seq: 4 }), ["3", "2"]);
    assert.deepEqual(await ids({ limit: 2, offset: 3 }), ["2", "1"]);
    assert.deepEqual(await ids({ limit: 9, suspended: true }), ["4", "2"]);
    assert.deepEqual(await ids({ limit: 9, suspended: false, before_seq: 5 }), ["3", "1"]);
  });

  test("an agent's change is a compare-and-set on its version", async ({ storage, reopen }) => {
    await storage.write(async (tx) => {
      await tx.insertAgent(agentRow(1));
      await tx.insertAgent(agentRow(2));
    });
    let now = agentRow(1);
    const steps = [
      { name: "renamed", updated_at: BASE_TIME + 10 },
      { allowed_tools: ["a"], description: "d", updated_at: BASE_TIME + 11 },
      { suspended_at: BASE_TIME + 12, suspended_reason: "why", metadata: '{"a":1}', updated_at: BASE_TIME + 12 },
      {
        suspended_at: null,
        suspended_reason: null,
        allowed_tools: null,
        description: null,
        updated_at: BASE_TIME + 13,
      },
    ];
    for (const change of steps) {
      const after = { ...now, ...change, version: now.version + 1 };
      for (const version of [now.version, now.version + 2])
        assert.equal(await storage.write((tx) => tx.updateAgent({ ...after, version })), false);
      const unchangeable = { registered_seq: 99, created_by: "key-9", created_at: BASE_TIME + 9 };
      assert.equal(await storage.write((tx) => tx.updateAgent({ ...after, ...unchangeable })), true);
      now = after;
      assert.deepEqual(await storage.agent("agent-1"), now);
    }
    assert.equal(await storage.write((tx) => tx.updateAgent(agentRow(9, { version: 2 }))), false);
    const reopened = await reopen();
    assert.deepEqual(await reopened.agents({ limit: 9 }), [agentRow(2), now]);
  });

  test("a policy is found by name, and its name is unique", async ({ storage, reopen }) => {
    const managed = policyRow(2, { managed_by: "policy-files", latest_version: 4, active_version: 3 });
    await storage.write(async (tx) => {
      await tx.insertPolicy(managed);
      await tx.insertPolicy(policyRow(1));
    });
    await assert.rejects(
      storage.write((tx) => tx.insertPolicy(policyRow(3, { name: "policy 1" }))),
      isStorageError,
    );
    await assert.rejects(
      storage.write((tx) => tx.insertPolicy(policyRow(1, { name: "policy 3" }))),
      isStorageError,
    );
    const reopened = await reopen();
    assert.deepEqual(await reopened.policyByName("policy 1"), policyRow(1));
    assert.deepEqual(await reopened.policyByName("policy 2"), managed);
    assert.deepEqual(await reopened.policy("policy-2"), managed);
    assert.equal(await reopened.policy("policy 2"), null);
    assert.equal(await reopened.policyByName("Policy 1"), null);
    assert.deepEqual(await reopened.policies(), [policyRow(1), managed]);
  });

  test("a change of a policy replaces everything but its name and the time of its creation", async ({ storage }) => {
    await storage.write(async (tx) => {
      await tx.insertPolicy(policyRow(1));
      await tx.insertPolicy(policyRow(2));
    });
    const steps = [
      { active_version: 1, updated_at: BASE_TIME + 10 },
      { latest_version: 2, updated_at: BASE_TIME + 11 },
      { managed_by: "policy-git", updated_at: BASE_TIME + 12 },
      { updated_at: BASE_TIME + 13 },
      { deleted_at: BASE_TIME + 13, updated_at: BASE_TIME + 13 },
      { deleted_at: null, updated_at: BASE_TIME + 13 },
      { active_version: null, managed_by: null, latest_version: 3, updated_at: BASE_TIME + 14 },
    ];
    let now = policyRow(1);
    for (const change of steps) {
      now = { ...now, ...change };
      assert.equal(await storage.write((tx) => tx.updatePolicy({ ...now, name: "another", created_at: 1 })), true);
      assert.deepEqual(await storage.policies(), [now, policyRow(2)]);
    }
    assert.equal(await storage.write((tx) => tx.updatePolicy(policyRow(3))), false);
  });

  test("a policy version never changes", async ({ storage, reopen }) => {
    await storage.write(async (tx) => {
      await tx.insertPolicy(policyRow(1));
      await tx.insertPolicyVersion(policyVersionRow("policy-1", 1));
      await tx.insertPolicyVersion(
        policyVersionRow("policy-1", 2, { created_by: "key-1", definition: "x".repeat(200_000) }),
      );
    });
    await assert.rejects(
      storage.write((tx) => tx.insertPolicyVersion(policyVersionRow("policy-1", 1, { definition: "{}" }))),
      isStorageError,
    );
    await assert.rejects(
      storage.write((tx) => tx.insertPolicyVersion(policyVersionRow("policy-9", 1))),
      isStorageError,
    );
    const reopened = await reopen();
    assert.deepEqual(await reopened.policyVersion("policy-1", 1), policyVersionRow("policy-1", 1));
    assert.deepEqual(
      await reopened.policyVersion("policy-1", 2),
      policyVersionRow("policy-1", 2, { created_by: "key-1", definition: "x".repeat(200_000) }),
    );
    assert.equal(await reopened.policyVersion("policy-1", 3), null);
    assert.deepEqual(
      (await reopened.policyVersions("policy-1")).map((row) => [row.version, row.definition.length]),
      [
        [2, 200_000],
        [1, policyVersionRow("policy-1", 1).definition.length],
      ],
    );
    assert.deepEqual(await reopened.policyVersions("policy-9"), []);
    assert.equal(await reopened.policyVersion("policy-9", 1), null);
  });
}
