import { flag, text, like, either, listOf, count, each, has, words, type Plain } from "./meaning.ts";

const PLACE = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,200}$/;
const repository = like(PLACE);
const agentBranch = like(/^(agent|bot)\/[a-z0-9-]+$/);

export const gitHosting: readonly Plain[] = [
  {
    tools: ["github", "gitlab", "bitbucket", "gitea", "git"],
    operations: words(
      "get_repo get_repository get_file get_file_contents get_branch get_commit get_diff get_issue get_pull_request get_pull_request_diff get_pull_request_files get_merge_request list_branches list_comments list_commits list_files list_issues list_labels list_merge_requests list_pull_requests list_releases list_reviews list_tags search_code search_issues compare_commits compare_branches",
    ),
    params: {
      ...each(
        words(
          "repo repository owner path ref branch sha base head number id state author label sort limit page per_page cursor",
        ),
        either(count, like(/^(?!.*\.\.)[A-Za-z0-9_@][A-Za-z0-9_.:/@#+-]*$/)),
      ),
      query: text(500),
    },
    samples: [
      { repo: "web", path: "README.md" },
      { query: "price", limit: 20 },
    ],
  },
  {
    tools: ["github", "gitlab", "git"],
    operations: ["push", "push_files", "create_file", "update_file", "create_commit"],
    params: {
      repo: repository,
      branch: agentBranch,
      path: like(/^(?!.*(^|\/)\.)[^\\\P{ASCII}\p{Cc}]+$/u),
      files: listOf(like(/^(?!.*(^|\/)\.)[^\\\P{ASCII}\p{Cc}]*$/u), 50),
      message: text(1e9),
      content: text(1e9),
      force: (value) => value === false,
    },
    also: (params) =>
      has(params, "branch") && (has(params, "path") || ((params["files"] ?? []) as unknown[]).length > 0),
    samples: [
      { repo: "web", branch: "agent/fix-42", files: ["src/a.ts"], message: "Fix", force: false },
      { repo: "web", branch: "agent/fix-42", path: "src/a.ts", message: "Fix", content: "x" },
    ],
  },
  {
    tools: ["github", "gitlab", "bitbucket", "gitea", "git"],
    operations: ["create_branch"],
    params: { repo: repository, from: repository, branch: agentBranch },
    also: (params) => has(params, "branch"),
    samples: [{ repo: "web", branch: "agent/fix-42", from: "main" }],
  },
  {
    tools: ["github", "gitlab", "bitbucket", "gitea", "git"],
    operations: words(
      "create_issue create_pull_request create_merge_request create_comment add_comment add_labels create_review_comment",
    ),
    params: {
      ...each(["title", "body"], text(5_000)),
      ...each(["repo", "head", "base", "path"], repository),
      ...each(["number", "line"], count),
      draft: flag,
      event: (value) => value === "COMMENT",
      labels: listOf(text(100), 20),
    },
    samples: [
      { repo: "web", title: "Fix", body: "Off by one.", head: "agent/fix-42", base: "main", draft: true },
      { repo: "web", number: 7, labels: ["bug"] },
    ],
  },
];
