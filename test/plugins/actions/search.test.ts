/** The search of actions: by what people said and who they are, by rule, and never by what the searcher cannot see. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { needs } from "../../support/features.ts";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import { join } from "node:path";
import { memoryStorage } from "../../../src/testing/index.ts";
import { hasFeature } from "../../support/features.ts";
import { makeKey, person, plainVotes, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: payouts
rules:
  - { name: two people, operation: two, effect: require_approval, approval: { quorum: 2, editable: [params.amount] } }
  - { name: over the limit, effect: require_approval, reason: needs a controller, approval: { rejection_holds: 1h } }
`;

for (const [name, storage] of [
  ["a log", () => memoryStorage()],
  ["SQLite", (folder: string) => sqliteStorage({ path: join(folder, "assent.db") })],
] as const)
  describe(`a search in ${name}`, () => {
    let service: Service;
    const keys: Record<string, string> = {};
    before(async () => {
      service = await startService({
        policy: POLICY,
        storage,
        change(config) {
          plainVotes(config);
          config.groups = {
            support: { members: [person("Linus")], agents: ["support-*"] },
            everyone: { members: [person("Ada Lovelace"), person("Bob")] },
          };
        },
      });
      for (const owner of ["Ada Lovelace", "Bob", "Linus"])
        keys[owner] = (await makeKey(service, { name: owner, owner: person(owner), preset: "approver" })).key;
      keys["desk"] = (await makeKey(service, { name: "night desk", preset: "approver" })).key;
    });
    after(() => service.close());

    const call = async (path: string, body: object, key: string): Promise<Answer["body"]> => {
      const answer = await service.call("POST", path, { key, body });
      assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
    const submit = async (order: string, over: object = {}): Promise<string> =>
      (
        await call(
          "/v1/actions",
          { agent_id: "support-bot", tool: "bank", operation: "pay", params: { order, amount: 10 }, ...over },
          service.agent,
        )
      ).id;
    const token = async (id: string, key: string): Promise<string> =>
      (await service.call("GET", `/v1/actions/${id}`, { key })).body.approval_token;
    const vote = async (id: string, approve: boolean, reason: string, key: string): Promise<void> =>
      void (await call(`/v1/actions/${id}/approval`, { token: await token(id, key), approve, reason }, key));
    /** Returns the found actions, oldest first. Also checks the list of pending actions. */
    async function search(q: string, key = service.admin): Promise<string[]> {
      const read = async (list: string): Promise<any[]> =>
        (await service.call("GET", `/v1/${list}?limit=100&q=${encodeURIComponent(q)}`, { key })).body.actions;
      const found = await read("actions");
      const pending = found.filter(({ status }) => status === "pending_approval").map(({ id }) => id);
      assert.deepEqual((await read("approvals")).map(({ id }) => id).sort(), pending.sort(), `pending: ${q}`);
      return found.map(({ id }) => id).reverse();
    }

    test(
      "finds who voted, the comments, the rule, and all of these beside the order number",
      needs("edits", "questions"),
      async () => {
        const approved = await submit("order-4711");
        const rejected = await submit("order-4712");
        const lifted = await submit("order-4713");
        const waiting = await submit("order-4714", { operation: "two" });
        const untouched = await submit("order-4715");
        await vote(approved, true, 'checked with "Zoë" by phone', keys["Ada Lovelace"]!);
        await vote(rejected, false, "wrong beneficiary", keys["desk"]!);
        await vote(lifted, false, "looks odd", keys["Bob"]!);
        await call(`/v1/actions/${lifted}/lift-rejection`, { reason: "the customer confirmed" }, keys["Ada Lovelace"]!);
        await vote(waiting, true, "first look is fine", keys["Bob"]!);
        await call(`/v1/actions/${waiting}/questions`, { question: "Which iban?" }, keys["Ada Lovelace"]!);
        await call(`/v1/actions/${waiting}/answers`, { answer: "The Dutch one" }, service.agent);
        for (const [q, ...found] of [
          ["lovelace", approved, lifted, waiting],
          ["ada 4711", approved],
          ["Ada phone", approved],
          ["BOB", lifted, waiting],
          ["night desk", rejected],
          ['"zoë"', approved],
          ["beneficiary", rejected],
          ["customer confirmed", lifted],
          ["odd", lifted],
          ["iban", waiting],
          ["dutch", waiting],
          ["payouts over", approved, rejected, lifted, untouched],
          ["two people", waiting],
          ["controller 4715", untouched],
          ["ada 4712"],
          ["linus"],
          ["null"],
        ] as const)
          assert.deepEqual(await search(q), found, q);
        // An edit voids the vote, which the ledger still contains.
        const body = {
          token: await token(waiting, keys["desk"]!),
          changes: { "params.amount": 9 },
          reason: "typing error",
        };
        await call(`/v1/actions/${waiting}/edit`, body, keys["desk"]!);
        assert.deepEqual(await search("first look"), [waiting]);
        assert.deepEqual(await search("bob 4714"), [waiting]);
        assert.deepEqual(await search("typing desk"), [waiting]);
      },
    );

    test("compares comments as they were written, with quotes, backslashes, wildcards and line breaks", async () => {
      const id = await submit("order-71");
      await vote(id, false, 'said "no\nupe" to C:\\pay_100%, ẞ…', keys["Bob"]!);
      for (const q of ['said "no', 'upe"', "c:\\pay", "pay_100%", "_100%,", "ẞ…", "upe order-71"])
        assert.deepEqual(await search(q), [id], q);
      // As JSON, the line break would be a backslash with an n.
      for (const q of ["nupe", "\\nupe", '\\"no', "payx100", '"no","', "%%", "x".repeat(200)])
        assert.deepEqual(await search(q), [], q);
    });

    test("finds nothing by what the searcher cannot see, and nothing that was erased", needs("questions"), async () => {
      const hidden = await submit("order-81", { agent_id: "billing-bot" });
      const seen = await submit("order-82");
      for (const id of [hidden, seen]) {
        await call(`/v1/actions/${id}/questions`, { question: "velvet?" }, keys["Bob"]!);
        await vote(id, false, "plum", keys["Bob"]!);
      }
      for (const q of ["plum", "bob plum", "velvet", "order-8"]) {
        assert.deepEqual(await search(q), [hidden, seen], q);
        assert.deepEqual(await search(q, keys["Linus"]!), [seen], q);
      }
      const own = (await makeKey(service, { name: "billing", preset: "agent", agent_id: "billing-bot" })).key;
      const read = await service.call("GET", "/v1/actions?q=plum", { key: own });
      assert.deepEqual(
        read.body.actions.map(({ id }: { id: string }) => id),
        [hidden],
      );
      const salt = (await service.storage.action(hidden))!.questions!.match(/"salt":"([0-9a-f]{20})/)![1]!;
      assert.deepEqual(await search(salt), []);
      if (!hasFeature("retention")) return;
      await call(`/v1/actions/${hidden}/erase`, { reason: "asked" }, service.admin);
      for (const q of ["velvet", "order-8"]) assert.deepEqual(await search(q), [seen], q);
      assert.deepEqual(await search("plum"), [hidden, seen], "the comments of votes are kept, and displayed");
    });
  });
