/** One MCP server behind the proxy. */

export interface ServerConfig {
  /** As it stands in tool names that have a prefix, and in `assent mcp accept`. */
  name: string;
  /** `tool` of its actions. */
  tool: string;
  /** Which protocol it is spoken to in; `auto` is the one that the client speaks, or else the other. */
  era: "auto" | "2025-11-25" | "2026-07-28";
  /** Tools that clients are not shown and cannot call, as patterns with `*`. */
  hide: string[];
  /** Methods that pass without a decision. */
  open: GovernedMethod[];
  /** Keys of a call's `_meta` that the server gets, as patterns with `*`: they are decided with the call. */
  meta: string[];
  /** `first`: what is seen first is accepted. `accepted`: nothing is until someone accepts it. */
  definitions: "first" | "accepted";
  target: ProcessTarget | HttpTarget;
}

export interface ProcessTarget {
  command: string;
  args: string[];
  /** Beside the proxy's own environment, which is passed on without what begins with ASSENT_. */
  env: Record<string, string>;
  cwd?: string | undefined;
}

export interface HttpTarget {
  url: string;
  headers: Record<string, string>;
}

/** What can be decided besides `tools/call`, which always is. */
export const GOVERNED_METHODS = [
  "resources/read",
  "prompts/get",
  "sampling/createMessage",
  "elicitation/create",
] as const;
export type GovernedMethod = (typeof GOVERNED_METHODS)[number];
