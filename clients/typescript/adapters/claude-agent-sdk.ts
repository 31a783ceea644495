/** Claude Agent SDK: hooks that request a decision before each tool call and report its result. */
import { assertReportable, errorText } from "../govern.ts";
import type { ActionRecord } from "../index.ts";
import { checkFramework } from "./framework.ts";
import { createGate, ToolNotRunError, type GateOptions } from "./gate.ts";

checkFramework("@anthropic-ai/claude-agent-sdk");

/** The members of the SDK's hook inputs that the adapter reads. */
interface HookInput {
  hook_event_name: string;
  session_id?: string;
  tool_name?: string;
  tool_input?: unknown;
  tool_use_id?: string;
  tool_response?: unknown;
  error?: string;
}

/**
 * Seconds that a call waits for approval. The decision must arrive well before the SDK's own timeout, because after
 * that timeout the SDK runs the call unless `onFailure` is "block".
 */
const APPROVAL_TIMEOUT = 30;
const TIMEOUT_SECONDS = 300;

/**
 * Returns hooks that govern every tool call of an agent. Use as `query({ options: { hooks: assentHooks({ … }) } })`.
 * Denies calls that must not run, with a reason for the model, and leaves other calls to the host's own rules. Sets
 * `onFailure: "block"`, so Claude Code versions without this option refuse to start. No other hook may change a tool's
 * input, because the tool would then run with an input that was not decided.
 * @example
 * query({ prompt, options: { hooks: assentHooks({ tool: "claude" }) } });
 */
export function assentHooks(options: GateOptions) {
  const gate = createGate(options);
  const started = new Map<string, ActionRecord>();

  async function before(input: HookInput, id: string | undefined, { signal }: { signal: AbortSignal }) {
    const call = input.tool_use_id ?? id ?? "";
    const answer = { hookEventName: "PreToolUse" as const };
    try {
      if (input.tool_name === undefined || input.tool_input === undefined || input.tool_input === null)
        throw new TypeError("Not run: the hook's input does not contain the tool's name and arguments.");
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
      const permissionDecisionReason = error instanceof ToolNotRunError ? error.message : errorText(error);
      return { hookSpecificOutput: { ...answer, permissionDecision: "deny" as const, permissionDecisionReason } };
    }
  }

  /** Returns the usage to report. Without a usage, each limit counts its `reserve`. */
  function usageOf({ tool_response: output, tool_name: name = "" }: HookInput): { usage?: Record<string, number> } {
    try {
      return options.usage === undefined ? {} : { usage: assertReportable(options.usage(output, name)) };
    } catch {
      return {};
    }
  }

  async function after(input: HookInput, id: string | undefined) {
    const call = input.tool_use_id ?? id ?? "";
    const action = started.get(call);
    started.delete(call);
    const failed = input.hook_event_name === "PostToolUseFailure";
    if (action !== undefined)
      await gate.assent
        .result(
          action.id,
          failed ? { success: false, error: errorText(input.error ?? "failed") } : { success: true, ...usageOf(input) },
        )
        .catch(() => {});
    return {};
  }

  const last = [{ hooks: [after], timeout: TIMEOUT_SECONDS }];
  return {
    PreToolUse: [{ hooks: [before], timeout: TIMEOUT_SECONDS, onFailure: "block" as const }],
    PostToolUse: last,
    PostToolUseFailure: last,
  };
}
