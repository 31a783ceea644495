/** The log level of a client, and servers that connect while it is being sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogLevel } from "../../../clients/mcp/upstreams/log-level.ts";
import type { Reply } from "../../../clients/mcp/transport/rpc-message.ts";
import type { Upstream } from "../../../clients/mcp/upstreams/upstream.ts";
import { until } from "../../support/wait.ts";

/** A server that records the level, and responds when the test says. */
function server(answer: () => Promise<Reply> | Reply): { upstream: Upstream; levels: unknown[] } {
  const levels: unknown[] = [];
  const upstream = {
    era: "legacy",
    capabilities: { logging: {} },
    config: { name: "one" },
    request(_method: string, params: { level: unknown }) {
      levels.push(params.level);
      return Promise.resolve(answer());
    },
  };
  return { upstream: upstream as unknown as Upstream, levels };
}
const takes = (): Reply => ({ result: {} });
const refuses = (): Reply => ({ error: { code: -32602, message: "no such level" } });

test("a server that connects meanwhile gets the new level", async () => {
  const level = createLogLevel(() => {});
  let answerNow: (reply: Reply) => void = () => {};
  const slow = server(() => new Promise((resolve) => (answerNow = resolve)));
  const set = level.set({ level: "debug" }, [slow.upstream]);
  await until("the slow one is told", () => slow.levels.length === 1);
  const late = server(takes);
  level.applyTo(late.upstream);
  assert.deepEqual(late.levels, ["debug"]);
  answerNow(takes());
  assert.deepEqual(await set, { result: {} });
});

test("a level that every server rejects is not sent to later servers; the previous one is", async () => {
  const level = createLogLevel(() => {});
  const refusal = await level.set({ level: "loud" }, [server(refuses).upstream]);
  assert.ok("error" in refusal);
  const first = server(takes);
  level.applyTo(first.upstream);
  assert.deepEqual(first.levels, []);
  await level.set({ level: "debug" }, [first.upstream]);
  await level.set({ level: "loud" }, [server(refuses).upstream]);
  const second = server(takes);
  level.applyTo(second.upstream);
  assert.deepEqual(second.levels, ["debug"]);
});
