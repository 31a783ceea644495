/** The log level that a client wishes, and servers that come while the others are told of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogLevel } from "../../src/mcp/upstreams/log-level.ts";
import type { Reply } from "../../src/mcp/transport/rpc-message.ts";
import type { Upstream } from "../../src/mcp/upstreams/upstream.ts";
import { until } from "../support/wait.ts";

/** A server that keeps what it was told, and answers when it is let. */
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

test("a server that is greeted while others are told gets the new level", async () => {
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

test("a level that every server refuses is told to no later one, and the one before it is", async () => {
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
