/**
 * How each host is answered. The starter loads this and nothing of the decision, so that a deny in the right words is at
 * hand before anything can fail.
 */
import { firstText } from "../payload.ts";

export const HOSTS = ["claude-code", "codex", "copilot", "vscode", "cursor", "gemini", "kiro", "opencode"] as const;
export type Host = (typeof HOSTS)[number];

export interface HookAnswer {
  stdout: string;
  stderr: string;
  code: number;
}

export interface Dialect {
  /** Seconds until the answer at the latest: well under the time limit that the host has or that `install` writes. */
  deadline: number;
  deny(reason: string): HookAnswer;
  /** Most hosts take silence for "go on", and keep rules of their own. */
  allow(): HookAnswer;
}

const SILENCE: HookAnswer = { stdout: "", stderr: "", code: 0 };
const jsonAnswer = (value: unknown, code = 0, stderr = ""): HookAnswer => ({
  stdout: `${JSON.stringify(value)}\n`,
  stderr,
  code,
});
const answerSilently = (): HookAnswer => SILENCE;

/** Claude Code, Codex and VS Code. Codex takes no member beside these and no empty reason. */
const preToolUse = (reason: string): HookAnswer =>
  jsonAnswer({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: reason,
    },
  });

export const DIALECTS: Readonly<Record<Host, Dialect>> = {
  "claude-code": { deadline: 540, deny: preToolUse, allow: answerSilently },
  codex: { deadline: 10, deny: preToolUse, allow: answerSilently },
  // Waiting longer holds up the hooks behind this one, and at its own limit the host goes on.
  copilot: {
    deadline: 10,
    deny: (reason) => jsonAnswer({ permissionDecision: "deny", permissionDecisionReason: reason }),
    allow: answerSilently,
  },
  vscode: { deadline: 10, deny: preToolUse, allow: answerSilently },
  cursor: {
    deadline: 100,
    deny: (reason) => jsonAnswer({ permission: "deny", user_message: reason, agent_message: reason }, 2, `${reason}\n`),
    // With failClosed an empty answer is a failure.
    allow: () => jsonAnswer({ permission: "allow" }),
  },
  gemini: { deadline: 50, deny: (reason) => jsonAnswer({ decision: "deny", reason }), allow: answerSilently },
  kiro: { deadline: 20, deny: (reason) => ({ stdout: "", stderr: `${reason}\n`, code: 2 }), allow: answerSilently },
  // Its plugin, which `assent hook install` writes, goes on only when it reads "allow".
  opencode: {
    deadline: 540,
    deny: (reason) => jsonAnswer({ decision: "deny", reason }, 2, `${reason}\n`),
    allow: () => jsonAnswer({ decision: "allow" }),
  },
};

/** Whose payload this is: hosts read each other's files, and then call with another host's flag. */
export function detectHost(payload: Readonly<Record<string, unknown>>, flag: Host): Host {
  const has = (name: string): boolean => Object.hasOwn(payload, name);
  if (has("cursor_version") || has("workspace_roots") || (has("conversation_id") && has("generation_id")))
    return "cursor";
  if (has("toolName") || has("toolArgs")) return "copilot";
  const event = payload["hook_event_name"];
  if (event === "BeforeTool" || event === "AfterTool") return "gemini";
  if (has("turn_id")) return "codex";
  if (has("opencode")) return "opencode";
  // Copilot, VS Code and Claude Code may send the same members; they take the same deny but for its envelope.
  return flag;
}

export function isHost(name: string | undefined): name is Host {
  return (HOSTS as readonly string[]).includes(name ?? "");
}

/** As the host names it, in lower case. Copilot names none. */
export function eventName(payload: Readonly<Record<string, unknown>>): string | undefined {
  return firstText(payload, "hook_event_name", "hookEventName", "hookName", "event")?.toLowerCase();
}

/** Events before a tool runs, and whatever is not known to be another: these need an answer, and a deny when there is none. */
export function needsDecision(payload: Readonly<Record<string, unknown>>): boolean {
  const event = eventName(payload);
  if (event === undefined) return !(Object.hasOwn(payload, "toolName") && Object.hasOwn(payload, "toolResult"));
  return !/^(post|after|session|stop|subagent|userprompt|notification|agentspawn)/.test(event);
}

/** Null for everything but a whole answer. */
export function readAnswer(text: string): HookAnswer | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const { stdout, stderr, code } = (value ?? {}) as Record<string, unknown>;
  const isValid = typeof stdout === "string" && typeof stderr === "string" && (code === 0 || code === 2);
  return isValid ? { stdout, stderr, code } : null;
}
