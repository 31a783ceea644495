/**
 * The hosts' answer formats. The launcher loads this file but no code that decides, so that a denial in the right
 * format is ready before anything can fail.
 */
import type { ReplacedOutput } from "../inspect-output.ts";
import { firstNonEmptyString, isObject } from "../payload.ts";

export const HOSTS = ["claude-code", "codex", "copilot", "vscode", "cursor", "gemini", "kiro", "opencode"] as const;
export type Host = (typeof HOSTS)[number];

export interface HookAnswer {
  stdout: string;
  stderr: string;
  code: number;
}

interface Dialect {
  /**
   * Time limit for the answer in seconds: well below the host's own time limit, or the time limit that `install` sets.
   */
  deadline: number;
  deny(reason: string): HookAnswer;
  /** Leaves the call to the host's own rules. */
  pass(): HookAnswer;
  /** Allows a call before it runs. Absent if the host has no such answer, or ignores it. */
  allow?(reason: string): HookAnswer;
  /** Allows a call for which the host is about to ask its user. Absent if the host has no such event. */
  allowPrompt?(reason: string): HookAnswer;
  /**
   * Replaces the output of a call that has run, for the model. Absent if the host has no such answer. The hook then does
   * not send outputs to the service.
   */
  replaceOutput?(replaced: ReplacedOutput): HookAnswer;
  /**
   * Whether `allowPrompt` overrides the host's rules that deny a call. The hook then uses it only for calls that a
   * person approved or a grant covers.
   */
  promptOverridesRules?: true;
}

const NO_ANSWER: HookAnswer = { stdout: "", stderr: "", code: 0 };
const jsonAnswer = (value: unknown, code = 0, stderr = ""): HookAnswer => ({
  stdout: `${JSON.stringify(value)}\n`,
  stderr,
  code,
});
const stayQuiet = (): HookAnswer => NO_ANSWER;

/** Format of Claude Code, Codex and VS Code. Codex rejects other members and an empty reason. */
const preToolUse =
  (decision: "allow" | "deny") =>
  (reason: string): HookAnswer =>
    jsonAnswer({
      hookSpecificOutput: {
        hookEventName: "PreToolUse",
        permissionDecision: decision,
        permissionDecisionReason: reason,
      },
    });

/** Format of Claude Code and Codex. Both display `systemMessage` to the user; the decision itself has no reason. */
const permissionRequest = (reason: string): HookAnswer =>
  jsonAnswer({
    systemMessage: reason,
    hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "allow" } },
  });

export const HOST_DIALECTS: Readonly<Record<Host, Dialect>> = {
  "claude-code": {
    deadline: 540,
    deny: preToolUse("deny"),
    pass: stayQuiet,
    allow: preToolUse("allow"),
    allowPrompt: permissionRequest,
    replaceOutput: ({ output, reason }) =>
      jsonAnswer({
        ...(reason === null ? {} : { decision: "block", reason }),
        hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput: output },
      }),
  },
  // Before a call, Codex rejects "allow", considers the hook failed and runs the call.
  codex: { deadline: 10, deny: preToolUse("deny"), pass: stayQuiet, allowPrompt: permissionRequest },
  // A longer wait would delay the following hooks, and the host runs the call when its own time limit expires.
  copilot: {
    deadline: 10,
    deny: (reason) => jsonAnswer({ permissionDecision: "deny", permissionDecisionReason: reason }),
    pass: stayQuiet,
    allow: (reason) => jsonAnswer({ permissionDecision: "allow", permissionDecisionReason: reason }),
    allowPrompt: (message) => jsonAnswer({ behavior: "allow", message }),
    promptOverridesRules: true,
  },
  vscode: { deadline: 10, deny: preToolUse("deny"), pass: stayQuiet, allow: preToolUse("allow") },
  cursor: {
    deadline: 100,
    deny: (reason) => jsonAnswer({ permission: "deny", user_message: reason, agent_message: reason }, 2, `${reason}\n`),
    // With failClosed, Cursor treats an empty answer as a failure. It still asks its own question after "allow".
    pass: () => jsonAnswer({ permission: "allow" }),
  },
  gemini: {
    deadline: 50,
    deny: (reason) => jsonAnswer({ decision: "deny", reason }),
    pass: stayQuiet,
    // After a call, the agent gets the reason of a denial in place of the output.
    replaceOutput: ({ output, reason }) => jsonAnswer({ decision: "deny", reason: reason ?? geminiText(output) }),
  },
  kiro: { deadline: 20, deny: (reason) => ({ stdout: "", stderr: `${reason}\n`, code: 2 }), pass: stayQuiet },
  // The plugin that `assent hook install` writes continues only after "allow". OpenCode then applies its own rules.
  opencode: {
    deadline: 540,
    deny: (reason) => jsonAnswer({ decision: "deny", reason }, 2, `${reason}\n`),
    pass: () => jsonAnswer({ decision: "allow" }),
  },
};

function geminiText(output: unknown): string {
  const content = isObject(output) ? (output["llmContent"] ?? output) : output;
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** Returns true if the hook's output lets the host run a call, with or without the host's own rules. */
export function letsCallRun(
  host: Host,
  { stdout, code }: Pick<HookAnswer, "stdout"> & { code: number | null },
): boolean {
  if (code !== 0) return false;
  const { pass, allow } = HOST_DIALECTS[host];
  if (stdout === pass().stdout) return true;
  if (allow === undefined) return false;
  try {
    const { hookSpecificOutput: specific, permissionDecision } = JSON.parse(stdout) as Record<string, unknown>;
    const decision = (specific as Record<string, unknown> | undefined)?.["permissionDecision"] ?? permissionDecision;
    return decision === "allow";
  } catch {
    return false;
  }
}

/** Detects the host of a payload. Some hosts read each other's settings, and then pass the `--host` of another host. */
export function detectHost(payload: Readonly<Record<string, unknown>>, flag: Host): Host {
  const has = (name: string): boolean => Object.hasOwn(payload, name);
  if (has("cursor_version") || has("workspace_roots") || (has("conversation_id") && has("generation_id")))
    return "cursor";
  if (has("toolName") || has("toolArgs")) return "copilot";
  const event = payload["hook_event_name"];
  if (event === "BeforeTool" || event === "AfterTool") return "gemini";
  if (has("turn_id")) return "codex";
  if (has("opencode")) return "opencode";
  // Payloads of Copilot, VS Code and Claude Code can be identical, so use the flag. Their denials differ only in the
  // envelope.
  return flag;
}

export function isHost(name: string | undefined): name is Host {
  return (HOSTS as readonly string[]).includes(name ?? "");
}

/** Returns the event name in lowercase; undefined if the payload has no event name, as in Copilot. */
export function eventName(payload: Readonly<Record<string, unknown>>): string | undefined {
  return firstNonEmptyString(payload, "hook_event_name", "hookEventName", "hookName", "event")?.toLowerCase();
}

/**
 * What an event is about. `prompt`: the host is about to ask its user about a call that passed the event `before`;
 * `refused`: the host did not run such a call; `session`: a session starts; `ignored`: none of these.
 */
export type EventKind = "before" | "prompt" | "refused" | "after" | "session" | "ignored";

/** The events of all hosts, in lowercase. */
const EVENT_KINDS: ReadonlyMap<string, EventKind> = new Map(
  Object.entries({
    before: "pretooluse beforetool beforeshellexecution beforemcpexecution beforereadfile",
    prompt: "permissionrequest",
    refused: "permissiondenied",
    after: "posttooluse posttoolusefailure aftertool aftershellexecution aftermcpexecution",
    session: "sessionstart agentspawn",
    ignored: [
      "sessionend stop stopfailure subagentstart subagentstop userpromptsubmit userpromptsubmitted notification precompact",
      "postcompact posttoolbatch afterfileedit afteragent afteragentresponse afteragentthought agentstop erroroccurred",
    ].join(" "),
  }).flatMap(([kind, names]) => names.split(" ").map((name) => [name, kind as EventKind] as const)),
);

/** Returns what a payload's event is about; undefined if the event is unknown. */
export function eventKind(payload: Readonly<Record<string, unknown>>): EventKind | undefined {
  const event = eventName(payload);
  if (event !== undefined) return EVENT_KINDS.get(event);
  // Copilot sends no event name before and after a call. Only a call that has already run has a result.
  if (!Object.hasOwn(payload, "toolName")) return undefined;
  if (Object.hasOwn(payload, "permissionSuggestions")) return "prompt";
  return Object.hasOwn(payload, "toolResult") ? "after" : "before";
}

/** Returns true if an event needs a decision. True for events that precede a tool call, and for unknown events. */
export function needsDecision(payload: Readonly<Record<string, unknown>>): boolean {
  const kind = eventKind(payload);
  return kind === undefined || kind === "before";
}

/** Parses an answer. Returns null if it is incomplete. */
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
