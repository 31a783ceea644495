/** Events as the hosts send them before a shell command runs, and after it. */
import type { Host } from "../../../clients/hook/hosts/answers.ts";

type Payload = Record<string, unknown>;
const COMMAND = "ls -la src";
const claude = {
  session_id: "5a1c2f0e-0000-4000-8000-000000000001",
  transcript_path: "/home/ada/.claude/projects/x/5a1c.jsonl",
  cwd: "/work/app",
  permission_mode: "default",
  tool_name: "Bash",
  tool_input: { command: COMMAND, description: "List the sources" },
  tool_use_id: "toolu_01",
};
const codex = {
  session_id: "019a0000-0000-7000-8000-000000000001",
  turn_id: "019a0000-0000-7000-8000-000000000002",
  transcript_path: null,
  cwd: "/work/app",
  model: "gpt-5",
  permission_mode: "default",
  tool_name: "Bash",
  tool_input: { command: COMMAND },
  tool_use_id: "call_1",
};
const cursor = {
  conversation_id: "c-1",
  generation_id: "g-1",
  model: "x",
  cursor_version: "2.4.0",
  workspace_roots: ["/work/app"],
  user_email: "ada@example.com",
  tool_name: "Shell",
  tool_input: { command: COMMAND },
  tool_use_id: "t-1",
  cwd: "",
};
const gemini = {
  session_id: "s-1",
  transcript_path: "/x",
  cwd: "/work/app",
  timestamp: "2026-11-22T10:00:00Z",
  tool_name: "run_shell_command",
  tool_input: { command: COMMAND, description: "List" },
};
const kiro = { session_id: "k-1", cwd: "/work/app", tool_name: "execute_bash", tool_input: { command: COMMAND } };
const opencode = {
  opencode: 1,
  session_id: "o-1",
  cwd: "/work/app",
  tool_name: "bash",
  tool_input: { command: COMMAND },
  tool_use_id: "x",
};
const copilot = { timestamp: 1_700_000_000_000, cwd: "/work/app", sessionId: "p-1", toolName: "bash" };

export const BEFORE: Readonly<Record<Host, Payload>> = {
  "claude-code": { ...claude, hook_event_name: "PreToolUse" },
  codex: { ...codex, hook_event_name: "PreToolUse" },
  copilot: { ...copilot, toolArgs: JSON.stringify({ command: COMMAND, description: "List" }) },
  vscode: { ...claude, tool_name: "run_in_terminal", hook_event_name: "PreToolUse" },
  cursor: { ...cursor, hook_event_name: "preToolUse" },
  gemini: { ...gemini, hook_event_name: "BeforeTool" },
  kiro: { ...kiro, hook_event_name: "preToolUse" },
  opencode: { ...opencode, hook_event_name: "PreToolUse" },
};

export const AFTER: Readonly<Record<Host, Payload>> = {
  "claude-code": { ...claude, hook_event_name: "PostToolUse", tool_response: { stdout: "x", interrupted: false } },
  codex: { ...codex, hook_event_name: "PostToolUse", tool_response: "x" },
  copilot: { ...copilot, toolArgs: { command: COMMAND }, toolResult: { resultType: "success" } },
  vscode: { ...claude, tool_name: "run_in_terminal", hook_event_name: "PostToolUse", tool_response: "x" },
  cursor: { ...cursor, hook_event_name: "postToolUse", tool_output: "{}" },
  gemini: { ...gemini, hook_event_name: "AfterTool", tool_response: { llmContent: "x" } },
  kiro: { ...kiro, hook_event_name: "postToolUse", tool_response: { success: true } },
  opencode: { ...opencode, hook_event_name: "PostToolUse", tool_response: { success: true } },
};

/** Events with which hosts announce that they are about to ask their user about the command. Other hosts have none. */
export const PROMPT: Readonly<Partial<Record<Host, Payload>>> = {
  "claude-code": withoutCallId({ ...claude, hook_event_name: "PermissionRequest", permission_suggestions: [] }),
  codex: withoutCallId({
    ...codex,
    hook_event_name: "PermissionRequest",
    tool_input: { command: COMMAND, description: "Needed to list the sources" },
  }),
  copilot: {
    ...copilot,
    hookName: "permissionRequest",
    toolInput: { command: COMMAND, description: "List" },
    permissionSuggestions: [],
  },
};

function withoutCallId(payload: Payload): Payload {
  return Object.fromEntries(Object.entries(payload).filter(([name]) => name !== "tool_use_id"));
}

/** Whether an answer stops the call, according to the members that the host reads. */
export function stops(host: Host, { stdout, code }: { stdout: string; code: number | null }): boolean {
  if (host === "kiro") return code === 2;
  if (stdout === "") return false;
  const answer = JSON.parse(stdout) as Record<string, unknown>;
  switch (host) {
    case "cursor":
      return answer["permission"] === "deny" && code === 2;
    case "copilot":
      return answer["permissionDecision"] === "deny" && code === 0;
    case "gemini":
      return answer["decision"] === "deny" && code === 0;
    case "opencode":
      return answer["decision"] !== "allow";
    default: {
      const specific = answer["hookSpecificOutput"] as Record<string, unknown>;
      const reason = specific["permissionDecisionReason"];
      return (
        code === 0 &&
        specific["permissionDecision"] === "deny" &&
        typeof reason === "string" &&
        reason !== "" &&
        Object.keys(answer).length === 1
      );
    }
  }
}

/** Whether an answer lets the call run without the host's own question, according to the members that the host reads. */
export function allows(host: Host, { stdout, code }: { stdout: string; code: number | null }): boolean {
  if (code !== 0 || stdout === "" || !["claude-code", "vscode", "copilot"].includes(host)) return false;
  const answer = JSON.parse(stdout) as Record<string, unknown>;
  const { hookEventName, ...decision } = (
    host === "copilot" ? { ...answer, hookEventName: "PreToolUse" } : answer["hookSpecificOutput"]
  ) as Record<string, unknown>;
  const { permissionDecision, permissionDecisionReason, ...others } = decision;
  const isPlain = Object.keys(others).length === 0 && hookEventName === "PreToolUse";
  return isPlain && permissionDecision === "allow" && /act_1|[0-9a-f-]{36}/.test(String(permissionDecisionReason));
}

/** Whether an answer to an event in `PROMPT` lets the call run without the question. */
export function settles(host: Host, { stdout, code }: { stdout: string; code: number | null }): boolean {
  if (code !== 0 || stdout === "") return false;
  const answer = JSON.parse(stdout) as Record<string, unknown>;
  const text = String(host === "copilot" ? answer["message"] : answer["systemMessage"]);
  const { hookEventName, decision, ...others } = (answer["hookSpecificOutput"] ?? {}) as Record<string, unknown>;
  const isAllowed =
    host === "copilot"
      ? answer["behavior"] === "allow"
      : hookEventName === "PermissionRequest" &&
        Object.keys(others).length === 0 &&
        JSON.stringify(decision) === '{"behavior":"allow"}';
  return isAllowed && /act_1|[0-9a-f-]{36}/.test(text);
}

/** Whether an answer lets the call continue. */
export function passes(host: Host, { stdout, code }: { stdout: string; code: number | null }): boolean {
  if (allows(host, { stdout, code })) return true;
  if (host === "cursor") return code === 0 && stdout.trim() === '{"permission":"allow"}';
  if (host === "opencode") return code === 0 && stdout.trim() === '{"decision":"allow"}';
  return code === 0 && stdout === "";
}
