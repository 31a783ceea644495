/** Claude Agent SDK: hooks that ask before a tool is used, and report afterwards. */
import { errorText } from "../client/govern.ts";
import type { ActionRecord } from "../client/index.ts";
import { checkFramework } from "./framework.ts";
import { createGate, NotRun, type GateOptions } from "./gate.ts";

checkFramework("@anthropic-ai/claude-agent-sdk");

/** Of the SDK's hook inputs, what is read. */
interface HookInput {
  hook_event_name: string;
  session_id?: string;
  tool_name?: string;
  tool_input?: unknown;
  tool_use_id?: string;
  error?: string;
}

/** Seconds. The SDK's own timeout lets the call go on unless `onFailure` is "block": the answer comes well before it. */
const APPROVAL_TIMEOUT = 30;
const TIMEOUT = 300;

/**
 * `query({ options: { hooks: assentHooks({ … }) } })`. Denies with a reason for the model whatever may not run, and says
 * nothing else: the host's own rules stay. `onFailure: "block"` is set, so that a Claude Code that does not know it refuses
 * to start. Let no other hook change the input of a tool: it would run with what nobody was asked about.
 */
export function assentHooks(options: GateOptions) {
  const gate = createGate(options);
  const started = new Map<string, ActionRecord>();

  async function before(input: HookInput, id: string | undefined, { signal }: { signal: AbortSignal }) {
    const call = input.tool_use_id ?? id ?? "";
    const answer = { hookEventName: "PreToolUse" as const };
    try {
      if (input.tool_name === undefined || input.tool_input === undefined || input.tool_input === null)
        throw new TypeError("Not run: the hook was not told which tool is called, or with what.");
      const meta = { framework: "claude-agent-sdk", tool_call_id: call, session: input.session_id ?? "" };
      const { action } = await gate.start({
        name: input.tool_name,
        args: input.tool_input,
        meta,
        signal,
        approvalTimeout: APPROVAL_TIMEOUT,
      });
      started.set(call, action);
      return {};
    } catch (error) {
      const permissionDecisionReason = error instanceof NotRun ? error.message : errorText(error);
      return { hookSpecificOutput: { ...answer, permissionDecision: "deny" as const, permissionDecisionReason } };
    }
  }

  async function after(input: HookInput, id: string | undefined) {
    const call = input.tool_use_id ?? id ?? "";
    const action = started.get(call);
    started.delete(call);
    const failed = input.hook_event_name === "PostToolUseFailure";
    if (action !== undefined)
      await gate.assent
        .result(action.id, failed ? { success: false, error: errorText(input.error ?? "failed") } : { success: true })
        .catch(() => {});
    return {};
  }

  const last = [{ hooks: [after], timeout: TIMEOUT }];
  return {
    PreToolUse: [{ hooks: [before], timeout: TIMEOUT, onFailure: "block" as const }],
    PostToolUse: last,
    PostToolUseFailure: last,
  };
}
