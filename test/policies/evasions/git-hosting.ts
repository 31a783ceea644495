import type { Evasion, Outcome } from "./index.ts";

const push = (outcome: Outcome, params: Record<string, unknown>, operation = "push_files"): Evasion => [outcome, "github", operation, { repo: "web",
  branch: "agent/fix-42", files: ["src/a.ts"], message: "Fix", ...params }];
const comment = (outcome: Outcome, body: unknown, more: Record<string, unknown> = {}): Evasion => [outcome, "github", "create_comment", { repo: "web",
  number: 7, body, ...more }];

export const gitHosting: readonly Evasion[] = [
  // Force, in its spellings.
  ...[{ force: true }, { force: "true" }, { force: "false" }, { force: 1 }, { force: null }, { Force: true }, { force_with_lease: true },
    { "force ": true }, { mirror: true }, { prune: true }, { no_verify: true }, { bypass_rules: true }, { skip_checks: true }, { args: [] },
    { flags: "-f" }, { options: {} }, { refspec: "x" }, { refspecs: ["+x"] }, { extra_args: "x" }, { config: {} }].map((more) => push("deny", more)),
  // Shared branches, in theirs.
  ...["main", "Main", "MASTER", "refs/heads/main", "refs/heads/agent/fix-42", "heads/main", "origin/main", "HEAD", "@", "@{u}", "HEAD:main",
    "agent/fix-42:main", ":main", "+agent/fix-42", " main", "main ", "main\n", "agent/../main", "agent/x..y", "m\u0430in", "main\u200b", "--all",
    "-f", "*", "agent/*", "main^", "main~1", "release/2", "prod", "production", "hotfix-1", "gh-pages", "develop", "", null, ["main"],
    {}].map((branch) => push("deny", { branch })),
  push("deny", { branch: undefined }),
  push("deny", { branch: undefined, ref: "agent/fix-42" }),
  ...["agent", "agent/", "agents/x", "Agent/x", "agent/x/y", "ada/x", "agent/X", "agent/-x"].map((branch) => push("require_approval", { branch })),
  ...["push", "create_file", "update_file"].map((operation) => push("deny", { branch: "main" }, operation)),
  ...["push_all", "commit", "update_branch", "push_files\n", "create_commit_on_branch"].map((operation) => push("require_approval", {}, operation)),
  push("deny", { remote: "https://evil.test/x.git" }),
  push("require_approval", { remote: "evil" }),
  push("require_approval", { url: "x" }),
  push("require_approval", { author: "ada" }),
  // Files that run.
  ...[".github/workflows/x.yml", "./.github/workflows/x.yml", "/.github/workflows/x.yml", "a/../.github/workflows/x.yml", ".GITHUB/workflows/x.yml",
    ".github//workflows/x.yml", "a\\..\\.github\\x.yml", ".gitlab-ci.yml", ".gitmodules", ".husky/pre-commit", ".npmrc", "CODEOWNERS",
    "docs/CodeOwners", "Jenkinsfile", "Dockerfile", "api/Makefile", "package.json", "web/package-lock.json", "setup.py", "build.rs", "a\u200b.ts",
    "\u0430.ts"].map((file) => push("require_approval", { files: ["src/a.ts", file] })),
  ...[[], [null], [{ path: ".github/x" }], ["src/a.ts", ["x"]], "src/a.ts", { a: 1 }, null].map((files) => push("require_approval", { files })),
  push("two", { path: ".github/workflows/x.yml" }),
  push("two", { files: undefined, path: "ci/Jenkinsfile" }, "update_file"),
  push("require_approval", { files: undefined, path: "" }),
  push("deny", { content: "AKIAIOSFODNN7EXAMPLE" }),
  // Review, protection, deleting, and the same under other names.
  ...["approve_pull_request", "approve_merge_request", "dismiss_review", "update_branch_protection", "delete_ruleset", "update_repo_settings",
    "change_visibility", "transfer_repo", "archive_repo", "update_default_branch", "update_required_checks", "delete_branch", "delete_repo",
    "remove_repo", "reset_branch", "rewrite_history", "create_deploy_key", "set_secret", "update_actions_variable", "create_runner", "list_webhooks", "get_actions_variable", "list_runners",
    "get_and_merge"].map((operation): Evasion => ["deny", "github", operation, { repo: "web", number: 7 }]),
  ...["APPROVE", "approve", "REQUEST_CHANGES", "", null, ["APPROVE"]].map((event): Evasion => ["deny", "github", "submit_review", { number: 7,
    event }]),
  ["deny", "github", "create_review", { number: 7, state: "APPROVED" }],
  ["require_approval", "github", "create_review", { number: 7, event: "COMMENT" }],
  ...["merge_pull_request", "enable_auto_merge", "add_to_merge_queue", "revert_commit", "create_tag", "publish_package", "create_deployment",
    "rerun_workflow", "dispatch_event", "fork_repo", "create_gist", "create_repository", "add_team_member", "invite_user",
    "create_snippet"].map((operation): Evasion => ["require_approval", "github", operation, { repo: "web", number: 7 }]),
  ["deny", "github", "merge_pull_request", { number: 7, bypass_protection: true }],
  ["require_approval", "github", "create_branch", { branch: "agent/x", protected: false }],
  ["deny", "github", "create_branch", { branch: "agent/x y" }],
  ["deny", "github", "create_pull_request", { title: "x", head: "evil:main", base: "main" }],
  // Texts that robots obey, and texts that hold keys.
  ...["/merge", "Fine.\n/approve", "  /deploy prod", "> /lgtm", "bors r+", "@dependabot merge", "@mergifyio queue", "@renovate-bot rebase",
    "@all look", "[skip ci]", ["x"], null, "x".repeat(5_001)].map((body) => comment("require_approval", body)),
  comment("allow", "x".repeat(5_000)),
  comment("require_approval", "x", { labels: ["automerge"] }),
  comment("require_approval", "x", { labels: "x" }),
  comment("require_approval", "x", { pinned: true }),
  ["require_approval", "github", "add_labels", { number: 7, labels: ["Ready-To-Merge"] }],
  ["allow", "github", "add_labels", { number: 7, labels: ["bug"] }],
  ...["-----BEGIN PRIVATE KEY-----", "glpat-x", "x github_pat_x"].map((body) => comment("deny", body)),
];
