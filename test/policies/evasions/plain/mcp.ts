import { number, flag, text, like, listOf, count, has, words, type Plain } from "./meaning.ts";

export const mcp: readonly Plain[] = [
  {
    tools: ["mcp.filesystem"],
    operations: words(
      "read_file read_text_file list_directory list_directory_with_sizes get_file_info list_allowed_directories",
    ),
    params: {
      path: like(/^(?:\/[A-Za-z0-9_@+ -][A-Za-z0-9_@+. -]*)+\/?$/),
      head: count,
      tail: count,
      sortBy: like(/^(?:name|size)$/),
    },
    samples: [{ path: "/home/me/notes/a b.md" }, { path: "/home/me/", head: 5 }],
  },
  {
    tools: ["mcp.git"],
    operations: words("git_status git_diff_unstaged git_diff_staged git_log"),
    params: {
      repo_path: like(/^(?:\/[A-Za-z0-9_@+ -][A-Za-z0-9_@+. -]*)+\/?$/),
      context_lines: count,
      max_count: count,
    },
    samples: [{ repo_path: "/home/me/app" }],
  },
  {
    tools: ["mcp.fetch"],
    operations: ["fetch"],
    params: {
      url: like(/^https:\/\/docs\.example\.com(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*\/?$/),
      max_length: count,
      start_index: count,
      raw: flag,
    },
    also: (params) => has(params, "url"),
    samples: [{ url: "https://docs.example.com/a/b.html" }],
  },
  {
    tools: ["mcp.memory"],
    operations: words("read_graph search_nodes open_nodes"),
    params: { query: text(500), names: listOf(text(200), 50) },
    samples: [{}, { query: "Ada" }, { names: ["Ada"] }],
  },
  {
    tools: ["mcp.everything"],
    operations: ["echo", "get-sum"],
    params: { message: text(1_000), a: number, b: number },
    samples: [{ message: "hello" }, { a: 1, b: 0.5 }],
  },
];
