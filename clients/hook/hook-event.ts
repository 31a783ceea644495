/** One event of a hook, in the same form for all hosts. */
import type { EventKind, Host } from "./hosts/answers.ts";
import type { JsonObject } from "./payload.ts";

export interface HookEvent {
  host: Host;
  kind: EventKind;
  session: string | null;
  /** Id that the host assigned to the tool call. */
  callId: string | null;
  /** Name of the tool in the host. */
  tool: string;
  /** Arguments of a call that has not run yet; empty for other events. */
  input: JsonObject;
  cwd: string;
  /** Workspace of the agent, if the host reports it. */
  workspace: string | null;
  /** False if an event of the kind `after` reports a failure. */
  success: boolean;
  /** Whether the host is in plan mode, in which its user wants no call to run yet. Default: false. */
  isPlanning?: boolean;
  /** The sub-agent that makes the call; absent if it is the host's main agent, or if the host does not say. */
  subAgent?: { id: string; type: string };
  /** Why the host itself refused the call. Only for events of the kind `refused`. */
  refusal?: string;
  /** Usage of the call, such as tokens, as the host reports it. Only for events of the kind `after`. */
  usage?: Record<string, number>;
  /** Whether the host reports the outcome of the call. */
  outcomeReported: boolean;
}

/** Facts about the hook's process. */
export interface HookEnvironment {
  cwd: string;
  home: string | null;
  /** Project folder, from the host's environment variables. */
  project: string | null;
  /** Executable of the Codex that started the hook; null for other hosts, or if unknown. */
  codexProgram: string | null;
  /**
   * Returns the files that agents created in a workspace, and whose contents they therefore know. Absent if unknown.
   */
  ownFiles?(workspace: string): Promise<ReadonlySet<string>>;
}
