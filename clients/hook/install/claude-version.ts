/** The version of the installed Claude Code, on which its settings and its treatment of hooks depend. */
import { runProgram } from "../../../src/programs/run-program.ts";

type Version = readonly [major: number, minor: number, patch: number];

/** First versions of Claude Code with a behaviour that the hook relies on. */
export const CLAUDE_SINCE = {
  /** Knows the events PermissionRequest (2.0.45) and PermissionDenied. */
  promptEvents: [2, 1, 89],
  /**
   * Version from which a hook's allow overrides neither deny rules (fixed in 2.1.77) nor the tool restrictions of
   * background agents.
   */
  boundedAllow: [2, 1, 222],
  /** Knows the option `onFailure` of a hook. */
  onFailure: [2, 1, 295],
} as const satisfies Record<string, Version>;

/** Returns the version of the Claude Code on the `PATH`; null if it is unknown. */
export async function readClaudeVersion(env: Readonly<Record<string, string | undefined>>): Promise<Version | null> {
  try {
    const { stdout } = await runProgram("claude", ["--version"], { env, timeoutMs: 10_000, maxOutput: 10_000 });
    const [, ...numbers] = /^(\d+)\.(\d+)\.(\d+)/.exec(stdout.toString("utf8")) ?? [];
    const [major, minor, patch] = numbers.map(Number);
    return major === undefined || minor === undefined || patch === undefined ? null : [major, minor, patch];
  } catch {
    return null;
  }
}

export function isAtLeast(version: Version, minimum: Version): boolean {
  const at = version.findIndex((number, i) => number !== minimum[i]);
  return at < 0 || (version[at] as number) > (minimum[at] as number);
}
