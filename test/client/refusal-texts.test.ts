/**
 * Each outcome has its own text, equal in the TypeScript and the Python client. The hook, the MCP proxy and the
 * gateways add text around it.
 * @needs hook, mcp
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";
import { explainRefusal, ServiceUnavailable, type ActionRecord } from "../../clients/typescript/index.ts";
import { describeRefusal, submitAndStart } from "../../plugins/actions/gateway/gate.ts";
import { refusalText, serviceFailureText } from "../../clients/hook/refusal-texts.ts";
import { callRefusal, serviceErrorRefusal } from "../../clients/mcp/decisions/refusal-result.ts";
import { ROOT } from "../support/runtimes.ts";

const REJECTION = { approver: "user:alice", reason: "use npm run ship", holds_until: "2026-01-02T00:00:00.000Z" };
const DENIED = { status: "denied", reason: "refunds end at 1,000", reason_code: "POLICY_RULE" };

interface Case {
  action: object;
  error?: { code: string; message: string };
  outcome: string;
  why: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "denied by policy": {
    action: { ...DENIED, denied_by: "policy" },
    outcome: "denied",
    why: "denied by policy: refunds end at 1,000",
  },
  "denied because no policy decides": {
    action: { ...DENIED, denied_by: "policy", reason_code: "NO_MATCH", reason: "no rule matches" },
    outcome: "denied",
    why: "denied by policy (NO_MATCH): no rule matches",
  },
  "rejected by a person": {
    action: { ...DENIED, denied_by: "person", rejection: REJECTION },
    outcome: "rejected",
    why: "rejected by the user alice: use npm run ship",
  },
  "rejected by a person whose name is known": {
    action: { ...DENIED, denied_by: "person", rejection: REJECTION, names: { [REJECTION.approver]: "Alice\n\u202eB" } },
    outcome: "rejected",
    why: "rejected by Alice B: use npm run ship",
  },
  "rejected by a key whose name is known": {
    action: {
      ...DENIED,
      denied_by: "person",
      rejection: { approver: "key:1", reason: null, holds_until: null },
      names: { "key:1": "laptop" },
    },
    outcome: "rejected",
    why: "rejected by the key laptop",
  },
  "rejected without a reason": {
    action: { ...DENIED, denied_by: "person", rejection: { approver: "key:1", reason: null, holds_until: null } },
    outcome: "rejected",
    why: "rejected by the key 1",
  },
  "denied by a machine reviewer": {
    action: { ...DENIED, denied_by: "reviewer", rejection: { ...REJECTION, approver: "reviewer:triage" } },
    outcome: "rejected",
    why: "rejected by the reviewer triage: use npm run ship",
  },
  "rejected earlier": {
    action: { ...DENIED, denied_by: "earlier_rejection", rejection: REJECTION },
    outcome: "rejected",
    why: "already rejected by the user alice: use npm run ship",
  },
  stopped: {
    action: { ...DENIED, denied_by: "stop", reason: "incident 12" },
    outcome: "stopped",
    why: "stopped: incident 12",
  },
  "stopped before its start": {
    action: { status: "approved" },
    error: { code: "STOPPED", message: "incident 12" },
    outcome: "stopped",
    why: "stopped: incident 12",
  },
  "timed out": {
    action: { status: "expired", approved_until: null },
    outcome: "expired",
    why: "not decided on in time",
  },
  "approved and not started": {
    action: { status: "expired", approved_until: "2026-01-01T00:00:00.000Z" },
    outcome: "expired",
    why: "approved, and not started in time",
  },
  cancelled: { action: { status: "cancelled" }, outcome: "cancelled", why: "cancelled" },
  "run by another call": {
    action: { status: "executing" },
    outcome: "taken",
    why: "already taken by another call: it is executing",
  },
  "not started": {
    action: { status: "allowed" },
    error: { code: "CONFLICT", message: "try later" },
    outcome: "refused",
    why: "not started by the service (CONFLICT): try later",
  },
};
const recordOf = ({ action }: Case) => ({ id: "act_1", ...action }) as unknown as ActionRecord;

describe("the texts of refusals", () => {
  for (const [name, one] of Object.entries(CASES))
    it(`say of an action that was ${name} what happened and what the agent can do`, () => {
      const { outcome, why, next } = explainRefusal(recordOf(one), one.error);
      assert.deepEqual([outcome, why], [one.outcome, one.why]);
      assert.notEqual(next, "");
      if (one.error !== undefined) return;
      assert.equal(refusalText(recordOf(one)), `Not run: ${why} (act_1). ${next}`);
      const { text, facts } = callRefusal(recordOf(one));
      assert.ok(text.includes(`It was ${why} (action act_1). ${next}`), text);
      assert.equal(facts.status, outcome);
    });

  for (const [name, one] of Object.entries(CASES))
    it(`are the same from a gateway, for an action that was ${name}`, async () => {
      const { error = { code: "ACTION_NOT_STARTABLE", message: "it was started" } } = one;
      const outcome = await submitAndStart(
        {
          request: new Request("http://assent.test/"),
          callApi(_method, path) {
            const json = path.endsWith("/start") ? { code: error.code, detail: error.message } : recordOf(one);
            const status = path.endsWith("/start") ? 409 : 200;
            return Promise.resolve({
              status,
              headers: new Headers(),
              json: path === "/v1/me" ? { key: { agent_id: null } } : json,
            });
          },
        },
        { agent_id: "a", tool: "t", operation: "o", params: {} },
      );
      assert.ok(outcome.kind === "no");
      const { why, next } = explainRefusal(recordOf(one), one.error);
      assert.equal(describeRefusal(outcome).message, `Not run: ${why} [action act_1]. ${next}`);
    });

  it("tell an agent something different for each outcome", () => {
    const nexts = new Map(
      Object.values(CASES).map((one) => [one.outcome, explainRefusal(recordOf(one), one.error).next]),
    );
    assert.equal(new Set(nexts.values()).size, nexts.size);
  });

  it("say that the service was unreachable, which is not a refusal", () => {
    const error = new ServiceUnavailable("no answer from http://127.0.0.1:1", { status: 0, code: "UNREACHABLE" });
    assert.match(serviceFailureText(error), /^Not run: the service gave no decision .*try again later/);
    const { text, facts } = serviceErrorRefusal(error, null);
    assert.match(text, /gave no decision .*It is not refused/);
    assert.equal(facts.status, "unavailable");
  });

  it("are the same in Python", (t) => {
    const program = `import json, sys
from assent.errors import AssentError
from assent.refusal import refusal_of
class Failed(AssentError):
    def __init__(self, code, message):
        Exception.__init__(self, message)
        self.code = code
cases = json.load(sys.stdin)
print(json.dumps([list(refusal_of(c["action"], Failed(**c["error"]) if "error" in c else None)) for c in cases]))`;
    const cases = Object.values(CASES);
    const { error, status, stdout, stderr } = spawnSync("python3", ["-B", "-c", program], {
      input: JSON.stringify(cases),
      env: { ...process.env, PYTHONPATH: join(ROOT, "clients/python") },
      encoding: "utf8",
    });
    if (error !== undefined) return t.skip("python3 is not installed");
    assert.equal(status, 0, stderr);
    assert.deepEqual(
      JSON.parse(stdout),
      cases.map((one) => {
        const { outcome, why, next } = explainRefusal(recordOf(one), one.error);
        return [outcome, why, next];
      }),
    );
  });
});
