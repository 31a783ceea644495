/** A call whose client disconnects, at each moment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createAssent } from "../../../clients/typescript/index.ts";
import type { Caller } from "../../../clients/mcp/clients/caller.ts";
import { CallGate } from "../../../clients/mcp/decisions/decide-call.ts";

for (const [when, status] of [
  ["while its call is submitted", null],
  ["while it waits", "pending_approval"],
  ["when its call may begin", "allowed"],
] as const)
  test(`a client that disconnects ${when} is reported, and its call is not started`, async () => {
    const gone = new AbortController();
    const paths: string[] = [];
    const logged: string[] = [];
    const hangs = (signal: AbortSignal | null | undefined): Promise<Response> => {
      setTimeout(() => gone.abort(new Error("gone")), 10);
      return new Promise((_, fail) => signal?.addEventListener("abort", () => fail(new Error("aborted"))));
    };
    const gate = new CallGate({
      assent: createAssent({
        url: "http://127.0.0.1:1",
        apiKey: "k",
        retries: 0,
        fetch: async (url, init) => {
          paths.push(`${init?.method ?? "GET"} ${new URL(url as string).pathname}`);
          if (status === null || init?.method === "GET") return hangs(init?.signal);
          const asked = JSON.parse(init?.body as string) as object;
          return Response.json({ ...asked, id: "act_1", status, reason: "because", reason_code: "X", permit: null });
        },
      }),
      agentId: () => Promise.resolve("bot"),
      maxWait: () => 60,
      approvalPage: null,
      log: (line) => void logged.push(line),
    });
    const caller: Caller = {
      signal: gone.signal,
      info: {},
      capabilities: {},
      wantsProgress: false,
      whenAttached: async () => gone.abort(new Error("gone")),
      sendProgress() {},
      notify() {},
      askClient: () => Promise.reject(new Error("nobody is asked")),
    };
    const wish = { tool: "mcp.notes", operation: "write", params: {}, context: {}, meta: {} };
    const verdict = await gate.decide(wish, caller).catch(() => null);
    assert.notEqual(verdict?.mayRun, true);
    assert.match(logged.join("\n"), /disconnected; the call does not run/);
    assert.ok(!paths.some((each) => each.endsWith("/start")), paths.join(", "));
  });
