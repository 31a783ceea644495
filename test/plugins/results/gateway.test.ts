/**
 * A gateway passes a response to the agent without an inspection or a result, so labels hold from the start on.
 * @needs forward-auth
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import forwardAuth from "../../../plugins/forward-auth/index.ts";
import { startService } from "../../support/service.ts";

const POLICY = `policy: web
rules:
  - { name: after, tool: http, operation: head, when: '"outside" in session.labels', effect: deny }
  - { name: others, effect: allow }
results: [{ name: outside, tool: http, operation: get, effect: allow, labels: [outside] }]
`;

test("the request after the one that a gateway passed reads the label", async () => {
  const service = await startService({
    policy: POLICY,
    plugins: [{ plugin: forwardAuth, options: { enabled: true }, origin: "forward-auth" }],
  });
  try {
    const pass = async (method: string): Promise<number> => {
      const headers = { "x-forwarded-method": method, "x-forwarded-host": "a.example", "x-forwarded-uri": "/page" };
      const { status } = await service.call("GET", "/forward-auth", {
        key: null,
        headers: { "assent-key": service.agent, host: "a.example", ...headers },
      });
      return status;
    };
    assert.deepEqual([await pass("HEAD"), await pass("GET"), await pass("HEAD")], [200, 200, 403]);
  } finally {
    await service.close();
  }
});
