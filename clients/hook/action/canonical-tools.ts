/** Maps each host's tool names to canonical names. docs/hooks.md contains the same table. */

/** The kind of a tool, which determines how its arguments are parsed. */
export type ToolKind = "run" | "input" | "read" | "search" | "write" | "patch" | "delete" | "fetch" | "find" | "agent";

/** For each kind of host tool, the tool and operation that policies match. */
export const CANONICAL_TOOL_BY_KIND: Readonly<
  Record<Exclude<ToolKind, "agent">, readonly [tool: string, operation: string]>
> = {
  run: ["shell", "run"],
  input: ["shell", "input"],
  read: ["files", "read"],
  search: ["files", "search"],
  write: ["files", "write"],
  patch: ["files", "write"],
  delete: ["files", "delete"],
  fetch: ["web", "fetch"],
  find: ["web", "search"],
};

/** Tool names of all hosts, in lowercase. No tool name belongs to two kinds. */
const HOST_TOOL_NAMES: Readonly<Record<ToolKind, string>> = {
  run: "bash shell powershell run_in_terminal run_shell_command execute_bash execute_cmd local_shell exec_command run_command terminal",
  // Input for a running command.
  input: "write_stdin write_bash write_powershell send_to_terminal",
  read: "read view read_file readfile fs_read read_many_files notebookread notebook_read view_image",
  search:
    "glob grep ls list list_dir list_directory file_search grep_search search_file_content semantic_search codebase_search rg",
  write: [
    "write edit multiedit notebookedit create str_replace str_replace_editor replace write_file create_file",
    "insert_edit_into_file replace_string_in_file multi_replace_string_in_file edit_notebook_file fs_write",
    "edit_file search_replace create_directory strreplace editnotebook",
  ].join(" "),
  patch: "apply_patch patch applypatch",
  delete: "delete delete_file",
  fetch: "webfetch web_fetch fetch_webpage fetch",
  find: "websearch web_search google_web_search",
  // Tools whose effects stay within the agent, such as lists, questions and subagents. Calls of subagents are decided
  // separately.
  agent: [
    "task agent todowrite todoread exitplanmode enterplanmode askuserquestion skill slashcommand toolsearch bashoutput killshell",
    "killbash taskoutput taskstop taskcreate taskget taskupdate tasklist update_plan request_user_input update_todo",
    "report_intent read_bash stop_bash manage_todo_list write_todos get_terminal_output ask_user question todo_list",
    "read_powershell stop_powershell runsubagent todo thinking",
  ].join(" "),
};

const KINDS: ReadonlyMap<string, ToolKind> = new Map(
  Object.entries(HOST_TOOL_NAMES).flatMap(([kind, names]) =>
    names.split(" ").map((name) => [name, kind as ToolKind] as const),
  ),
);

export function toolKind(tool: string): ToolKind | undefined {
  return KINDS.get(tool.toLowerCase());
}

/** Returns true if a tool searches for file names by a pattern, which may begin in any folder. */
export function searchesFileNames(tool: string): boolean {
  return ["glob", "file_search", "list", "ls", "list_dir", "list_directory"].includes(tool.toLowerCase());
}

/**
 * Parses MCP tool names: `mcp__server__tool` (most hosts), `mcp_server_tool` (Gemini and VS Code), and `@server/tool`
 * (Kiro).
 */
export function parseMcpToolName(tool: string): { server: string; name: string } | null {
  const match = /^mcp__(.+?)__(.+)$/s.exec(tool) ?? /^@([^/]+)\/(.+)$/s.exec(tool) ?? /^mcp_([^_]+)_(.+)$/s.exec(tool);
  return match === null ? null : { server: match[1] as string, name: match[2] as string };
}
