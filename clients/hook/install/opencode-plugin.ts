/** Source of the OpenCode plugin that `assent hook install` writes. */

/** Returns the command line in a plugin that Assent wrote; null for other files. */
export function pluginCommand(text: string): string | null {
  const [, command] = /^const COMMAND = (".*");\r?$/m.exec(text) ?? [];
  if (command === undefined || !text.includes("assent hook install")) return null;
  try {
    return JSON.parse(command) as string;
  } catch {
    return null;
  }
}

/**
 * Returns the plugin's source. OpenCode runs plugins in its own process, and an exception in a plugin prevents the
 * call.
 */
export function pluginSource(command: string, seconds: number): string {
  return `// Written by "assent hook install": asks assent-hook about each call. Whatever fails, the call does not run.
import { spawn } from "node:child_process";

const COMMAND = ${JSON.stringify(command)};

function ask(payload) {
  return new Promise((resolve) => {
    // The shell's children belong to its process group, which is killed as a whole.
    const child = spawn(\`\${COMMAND} --host opencode\`, { shell: true, detached: true, stdio: ["pipe", "pipe", "ignore"] });
    const deny = (reason) => resolve({ decision: "deny", reason });
    const timer = setTimeout(() => {
      deny("assent-hook did not answer in time");
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        child.kill("SIGKILL");
      }
    }, ${seconds * 1000});
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.on("error", () => deny("assent-hook does not run"));
    child.on("close", () => {
      clearTimeout(timer);
      try {
        resolve(JSON.parse(text));
      } catch {
        deny("assent-hook did not answer");
      }
    });
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(payload));
  });
}

export const Assent = async ({ directory }) => {
  const payload = (event, input, args) => ({
    opencode: 1,
    hook_event_name: event,
    session_id: input.sessionID,
    tool_use_id: input.callID,
    cwd: directory,
    tool_name: input.tool,
    tool_input: args,
  });
  return {
    "tool.execute.before": async (input, output) => {
      const answer = await ask(payload("PreToolUse", input, output.args));
      if (answer?.decision !== "allow") throw new Error(answer?.reason ?? "not run: assent-hook did not allow it");
    },
    "tool.execute.after": async (input, output) => {
      // Only commands tell how they ended.
      const exit = output?.metadata?.exit;
      const ended = typeof exit === "number" ? { tool_response: { success: exit === 0 } } : {};
      await ask({ ...payload("PostToolUse", input, {}), ...ended });
    },
  };
};
`;
}
