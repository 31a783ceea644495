/** Pinned facts on two processes and one Postgres, whose fact sources can give different answers. @needs edits */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { postgresStorage } from "../../../plugins/storage-postgres/index.ts";
import { definePlugin, type FactSource } from "../../../src/plugin.ts";
import { newKey } from "../../support/keys.ts";
import { type PostgresServer, startPostgres, withoutPostgres } from "../../support/postgres.ts";
import { makeKey, plainVotes, startService, type Answer, type Service } from "../../support/service.ts";

const POLICY = `policy: invoices
facts:
  supplier:
    source: erp
    with: { id: params.invoice }
    schema: { type: object, properties: { account: { type: string } }, required: [account] }
  account:
    source: erp
    with: { id: facts.supplier.account }
    schema: { type: object, properties: { balance: { type: number } }, required: [balance] }
rules:
  - name: pay
    tool: pay
    effect: require_approval
    approval: { pins: [facts.account.balance], editable: { params.invoice: { max_length: 20 } } }
`;

interface Records {
  [id: string]: object;
}

describe("pinned facts on two processes", { skip: withoutPostgres }, () => {
  let server: PostgresServer;
  const services: Service[] = [];
  /** What the source of each process answers. */
  const records: [Records, Records] = [{}, {}];
  const keys: Record<string, string> = {};
  let agent: string;
  /** Runs before each answer of the second process. */
  let onRead: (() => Promise<unknown>) | null = null;

  before(async () => {
    server = await startPostgres();
    const url = await server.database();
    const log = newKey();
    for (const i of [0, 1] as const) {
      const erp: FactSource = {
        name: "erp",
        inputs: ["id"],
        // On a busy machine, an answer can take longer than by default.
        timeoutMs: 10_000,
        async read({ id }) {
          const answer = structuredClone(records[i][String(id)]);
          if (i === 1) await onRead?.();
          if (answer === undefined) throw new Error("down");
          return answer as never;
        },
      };
      services.push(
        await startService({
          policy: POLICY,
          storage: () => postgresStorage({ url, poolSize: 3 }),
          plugins: [
            {
              plugin: definePlugin({ name: "erp", setup: () => ({ factSources: [erp] }) }),
              options: {},
              origin: "erp",
            },
          ],
          change(config) {
            plainVotes(config);
            config.secret = "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU";
            config.ledger.key = log;
            config.ledger.origin = "pins.test/log";
          },
        }),
      );
    }
    const [one] = services as [Service, Service];
    agent = services.find((each) => each.agent !== "")?.agent as string;
    const maker = services.find((each) => each.admin !== "")?.admin as string;
    for (const name of ["bob", "carol"])
      keys[name] = (await makeKey(one, { name, owner: name, preset: "approver" }, maker)).key;
  });
  after(async () => {
    for (const service of services) await service.close();
    await server.stop();
  });

  const reset = (): void => {
    for (const each of records)
      Object.assign(each, {
        "i-1": { account: "a-1" },
        "i-2": { account: "a-2" },
        "i-3": { account: "a-3" },
        "a-1": { balance: 100 },
        "a-2": { balance: 900 },
        "a-3": { balance: 100 },
      });
    onRead = null;
  };
  const call = (i: 0 | 1, id: string, path: string, body: object, key = agent): Promise<Answer> =>
    (services[i] as Service).call("POST", `/v1/actions/${id}/${path}`, { key, body });
  const read = async (i: 0 | 1, id: string, name = "bob"): Promise<Answer["body"]> =>
    (await (services[i] as Service).call("GET", `/v1/actions/${id}`, { key: keys[name] as string })).body;
  const submit = async (invoice = "i-1"): Promise<string> => {
    const body = { agent_id: "a", tool: "pay", operation: "run", params: { invoice, n: Math.random() } };
    return (await (services[0] as Service).call("POST", "/v1/actions", { key: agent, body })).body.id;
  };
  const vote = async (i: 0 | 1, id: string, name = "bob"): Promise<Answer> =>
    call(i, id, "approval", { approve: true, token: (await read(i, id, name)).approval_token }, keys[name]);
  const balanceOf = (record: Answer["body"]): unknown => record.pins?.[0]?.value;

  it("the start reads the source of its own process, and returns the action if that answers another value", async () => {
    reset();
    const id = await submit();
    assert.equal((await vote(0, id)).body.status, "approved");
    records[1]["a-1"] = { balance: 120 };
    const refused = await call(1, id, "start", {});
    assert.deepEqual([refused.status, refused.body.code], [409, "MORE_APPROVALS_NEEDED"], JSON.stringify(refused.body));
    assert.equal((await call(0, id, "start", {})).body.code, "ACTION_NOT_STARTABLE", "the vote was about 100");
    // An approver whose process sees 100 cannot approve the 120 that the record says.
    const stale = await vote(0, id);
    assert.equal(stale.body.code, "FACTS_CHANGED", JSON.stringify(stale.body));
  });

  it("a change of the fact that the input of a pinned fact reads returns the action, too", async () => {
    reset();
    const id = await submit();
    await vote(0, id);
    for (const each of records) each["i-1"] = { account: "a-2" };
    assert.equal((await call(1, id, "start", {})).body.code, "MORE_APPROVALS_NEEDED");
    assert.equal(balanceOf(await read(1, id)), 900);
  });

  it("a source that is down in one process does not start the action there, and the approval stays", async () => {
    reset();
    // The failure is remembered for two seconds, so no other test reads this account.
    const id = await submit("i-3");
    await vote(0, id);
    delete records[1]["a-3"];
    assert.equal((await call(1, id, "start", {})).body.code, "FACTS_UNAVAILABLE");
    assert.equal((await call(0, id, "start", {})).status, 200);
  });

  it("starts in parallel with a change: the action runs at most once, and never after it returned to approvers", async () => {
    for (let round = 0; round < 5; round++) {
      reset();
      const id = await submit();
      await vote(0, id);
      onRead = () => Promise.resolve((records[0]["a-1"] = { balance: 100 + round }));
      records[1]["a-1"] = { balance: 77 };
      const answers = await Promise.all([0, 1, 0, 1].map((i) => call(i as 0 | 1, id, "start", {})));
      const started = answers.filter(({ status }) => status === 200);
      const { body } = await (services[0] as Service).call("GET", `/v1/actions/${id}/events`, {
        key: services.find((each) => each.admin !== "")?.admin as string,
      });
      const kinds = body.events.map(({ entry }: Answer["body"]) => entry.type);
      assert.ok(started.length <= 1, JSON.stringify(answers.map(({ body: each }) => each.code ?? each.status)));
      assert.equal(kinds.filter((kind: string) => kind === "execution").length, started.length);
      const returned = kinds.indexOf("redecision");
      assert.ok(returned === -1 || !kinds.slice(returned).includes("execution"), kinds.join());
    }
  });

  it("an edit of the pinned input shows the value of the new input, and voids votes and tokens of the earlier one", async () => {
    reset();
    const id = await submit();
    const earlier = (await read(0, id, "carol")).approval_token;
    const { approval_token: token } = await read(1, id);
    const edited = await call(1, id, "edit", { token, changes: { "params.invoice": "i-2" } }, keys["bob"]);
    assert.equal(edited.status, 200, JSON.stringify(edited.body));
    assert.equal(balanceOf(await read(0, id, "carol")), 900);
    const stale = await call(0, id, "approval", { approve: true, token: earlier }, keys["carol"]);
    assert.equal(stale.status >= 400 && stale.status < 500, true, JSON.stringify(stale.body));
    assert.equal((await vote(0, id, "carol")).body.status, "approved");
    const { request_hash } = await read(1, id, "carol");
    records[1]["a-2"] = { balance: 1 };
    assert.equal((await call(1, id, "start", { request_hash })).body.code, "MORE_APPROVALS_NEEDED");
  });
});
