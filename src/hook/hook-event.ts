/** One call of a hook, whichever host made it. */
import type { Host } from "./hosts/answers.ts";
import type { JsonObject } from "./payload.ts";

export interface HookEvent {
  host: Host;
  /** `session` is the begin of one; what is `ignored` asks nothing and is let through. */
  kind: "before" | "after" | "session" | "ignored";
  session: string | null;
  /** The host's id of this tool call. */
  callId: string | null;
  /** As the host calls it. */
  tool: string;
  /** Of a call that has not run yet; empty of anything else. */
  input: JsonObject;
  cwd: string;
  /** The folder that the agent works in, where the host tells. */
  workspace: string | null;
  /** For `after`: false where the host says that it failed. */
  success: boolean;
  /** Whether the host says how it went. */
  outcomeReported: boolean;
}

/** What the hook's process was started with. */
export interface HookEnvironment {
  cwd: string;
  home: string | null;
  /** Folder of the project as the host's variables name it. */
  project: string | null;
  /** The file that the host's program runs from, where that matters and can be told. */
  codexProgram: string | null;
}
