/** A plugin of a third party that denies actions above all policies, from a state that it folds from its entries. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import {
  type BarSource,
  definePlugin,
  defineErrors,
  defineRoute,
  defineScopes,
  type Fold,
  type Plugin,
  Type,
} from "../../src/plugin.ts";
import { needs } from "../support/features.ts";
import { ALLOWED, startService, type Service } from "../support/service.ts";

const scopes = defineScopes("freeze", ["write"]);
const errors = defineErrors("freeze", { ACTIVE: [409, "The tool is frozen"] });

interface Freeze {
  tool: string;
  seq: number;
  at: number;
  thawed: boolean;
}

const freezes: Fold<readonly Freeze[]> = {
  name: "freezes",
  initial: [],
  on: {
    "freeze:change"(all, entry) {
      const { data, at, seq } = entry as unknown as { data: { tool: string; on: boolean }; at: string; seq: number };
      if (data.on) return [...all, { tool: data.tool, seq, at: Date.parse(at), thawed: false }];
      if (!all.some(({ tool, thawed }) => tool === data.tool && !thawed)) throw new RangeError("nothing is frozen");
      return all.map((freeze) => (freeze.tool === data.tool ? { ...freeze, thawed: true } : freeze));
    },
  },
};

const BY = { key_id: "freeze", principal: "key:freeze", agent_id: null, owner: null };

const bar: BarSource = {
  error: errors.ACTIVE,
  find: ({ state }, target) =>
    state(freezes)
      .filter(({ tool, thawed }) => tool === target.tool && !thawed)
      .map(({ tool }) => ({ code: errors.ACTIVE.code, id: tool, policy: null, reason: `the tool ${tool} is frozen` })),
  placedAfter({ state }, target, after) {
    const freeze = state(freezes).find(({ tool, seq }) => tool === target.tool && seq > after);
    return freeze === undefined ? null : { at: freeze.at, by: BY, reason: "frozen" };
  },
  coverageOf(entry) {
    if (entry.type !== "freeze:change") return null;
    const { tool, on } = (entry as unknown as { data: { tool: string; on: boolean } }).data;
    return (target) => on && target.tool === tool;
  },
};

const Body = Type.Object({ tool: Type.String(), on: Type.Boolean() }, { additionalProperties: false });

const plugin = definePlugin({
  name: "freeze",
  scopes,
  errors,
  entries: { "freeze:change": Body },
  folds: [freezes],
  bars: [bar],
  setup: (host) => ({
    routes: [
      defineRoute({
        method: "POST",
        path: "/v1/freeze",
        tag: "freeze",
        summary: "Freeze a tool, or end that",
        scope: scopes.write,
        body: Body,
        responses: { 200: { description: "The frozen tools.", schema: Type.Array(Type.String()) } },
        async handle({ body, credential }) {
          await host.transact(credential, async ({ record }) => record({ type: "freeze:change", data: body }));
          const frozen = (await host.state(freezes)).filter(({ thawed }) => !thawed).map(({ tool }) => tool);
          return { status: 200, json: frozen };
        },
      }),
    ],
  }),
});

describe("a bar of a third party's plugin", () => {
  let service: Service;
  before(async () => {
    service = await startService({ plugins: [{ plugin: plugin as unknown as Plugin, options: {}, origin: "freeze" }] });
  });
  after(() => service.close());

  const freeze = async (on: boolean): Promise<unknown> => {
    const { status, body } = await service.call("POST", "/v1/freeze", {
      key: service.admin,
      body: { tool: ALLOWED.tool, on },
    });
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const submit = async () => (await service.call("POST", "/v1/actions", { body: ALLOWED })).body;

  it(
    "denies submissions and starts until it ends, and the decision replays without the plugin's code",
    needs("replay"),
    async () => {
      const earlier = await submit();
      assert.equal(earlier.status, "allowed");
      assert.deepEqual(await freeze(true), [ALLOWED.tool]);
      const denied = await submit();
      assert.deepEqual([denied.status, denied.reason_code, denied.denied_by], ["denied", "FREEZE_ACTIVE", "stop"]);
      assert.equal(denied.reason, `the tool ${ALLOWED.tool} is frozen`);
      const start = await service.call("POST", `/v1/actions/${earlier.id}/start`, { body: { attempt: randomUUID() } });
      assert.deepEqual([start.status, start.body.code], [409, "FREEZE_ACTIVE"], JSON.stringify(start.body));
      const replay = await service.call("POST", "/v1/replay", {
        key: service.admin,
        body: { action_id: denied.id },
      });
      assert.equal(replay.body.equal, true, JSON.stringify(replay.body));
      assert.deepEqual(await freeze(false), []);
      assert.equal((await submit()).status, "allowed");
    },
  );

  it("an entry that contradicts the state is refused, and changes nothing", async () => {
    const { status } = await service.call("POST", "/v1/freeze", {
      key: service.admin,
      body: { tool: "other", on: false },
    });
    assert.equal(status >= 400, true);
    assert.equal((await submit()).status, "allowed");
  });
});
