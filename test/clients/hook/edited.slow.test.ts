/**
 * Clients that cannot run the parameters that an approver changed: the call does not run, and the agent learns which were approved.
 * @needs edits
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";
import { createGate } from "../../../clients/typescript/adapters/gate.ts";
import { createAssent } from "../../../clients/typescript/index.ts";
import { runProgram } from "../../support/cli.ts";
import { runHook, startHookService, type HookService } from "../../support/hook.ts";
import { findProgram } from "../../support/proxy.ts";
import { ROOT } from "../../support/runtimes.ts";
import { makeKey } from "../../support/service.ts";
import { eventually } from "../../support/wait.ts";

const POLICY = `
policy: test
rules:
  - { name: all, effect: require_approval, approval: { editable: [params.command] } }
`;

describe("a request that an approver changed", () => {
  let hook: HookService;
  let editor: string;
  let approver: string;
  before(async () => {
    hook = await startHookService(POLICY);
    editor = (await makeKey(hook.service, { name: "ann", preset: "approver", owner: "ann" })).key;
    approver = (await makeKey(hook.service, { name: "ben", preset: "approver", owner: "ben" })).key;
  });
  after(() => hook.close());

  const read = async (id: string, key: string): Promise<Record<string, any>> =>
    (await hook.service.call("GET", `/v1/actions/${id}`, { key })).body as Record<string, any>;
  /** One approver changes the next pending command, and another one approves it. */
  async function changeAndApproveNext(command: string): Promise<string> {
    const id = await eventually(
      async () => {
        const { body } = await hook.service.call("GET", "/v1/approvals", { key: editor });
        return (body.actions as { id: string }[])[0]?.id;
      },
      () => "no action is pending",
    );
    for (const [key, path, body] of [
      [editor, "edit", { changes: { "params.command": command } }],
      [approver, "approval", { approve: true }],
    ] as const) {
      const { approval_token: token } = await read(id, key);
      const answer = await hook.service.call("POST", `/v1/actions/${id}/${path}`, { key, body: { token, ...body } });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
    return id;
  }
  /** The action is approved with the changed command, and nothing has started it. */
  async function assertNotStarted(id: string, command: string): Promise<void> {
    const { status, params, proposed } = await read(id, approver);
    assert.deepEqual([status, params.command], ["approved", command]);
    assert.notEqual(proposed, null);
  }

  for (const host of ["claude-code", "codex", "gemini"] as const)
    test(`the hook of ${host} denies the call, and names the approved command`, async () => {
      const [given, approved] = [`rm -rf build-${host}`, `rm -rf cache-${host}`];
      const event = {
        session_id: `session-${host}`,
        cwd: "/work/app",
        hook_event_name: host === "gemini" ? "BeforeTool" : "PreToolUse",
        tool_name: host === "gemini" ? "run_shell_command" : "Bash",
        tool_input: { command: given },
        tool_use_id: `use-${host}`,
      };
      const running = runHook(host, JSON.stringify(event), hook.env);
      const id = await changeAndApproveNext(approved);
      const { code, out, err } = await running;
      const told = `${out}${err}`;
      assert.match(told, /approved with other parameters/, told);
      assert.ok(told.includes(approved), told);
      assert.ok(code === 2 || /"(permissionDecision|decision)":\s*"(deny|block)"/.test(out), told);
      await assertNotStarted(id, approved);
    });

  test("an adapter runs the changed arguments if it can, and otherwise nothing", async () => {
    const client = createAssent({ url: hook.url, apiKey: hook.key.value });
    const gate = createGate({ assent: client, tool: "shell", agent: "coder" });
    for (const appliesEdits of [true, false]) {
      const [given, approved] = [`rm given-${appliesEdits}`, `rm approved-${appliesEdits}`];
      const call = { name: "run", args: { command: given }, approvalTimeout: 60 };
      const started = gate.start(call, appliesEdits).then(
        ({ params }) => params as { command: string },
        (error: Error) => error,
      );
      const id = await changeAndApproveNext(approved);
      const result = await started;
      if (appliesEdits) assert.deepEqual(result, { command: approved });
      else {
        assert.ok(result instanceof Error && result.message.includes(approved), inspect(result));
        await assertNotStarted(id, approved);
      }
    }
  });

  const python = ["/usr/bin/python3", findProgram("python3")].find((path) => path !== null);
  test("the Python client runs nothing, and says which arguments were approved", { skip: !python }, async () => {
    const script = `
from assent import Assent, Denied, govern

@govern(Assent(), tool="shell", operation="run", agent_id="coder", wait=60)
def run(command):
    print("RAN", command)

try:
    run(command="rm given")
except Denied as denied:
    print(denied.outcome, denied)
`;
    const env = { ASSENT_URL: hook.url, ASSENT_API_KEY: hook.key.value, PYTHONPATH: `${ROOT}clients/python` };
    const running = runProgram(python as string, ["-B", "-c", script], { env, input: "" });
    const id = await changeAndApproveNext("rm approved");
    const { out, err } = await running;
    assert.match(out, /^edited .*approved with other parameters.*rm approved/, out + err);
    assert.ok(!out.includes("RAN"), out);
    await assertNotStarted(id, "rm approved");
  });
});
