/** Files and the web. */
import type { Evasion } from "../index.ts";
import { file, WORKSPACE } from "./asking.ts";

export const files: readonly Evasion[] = [
  file("deny", "write", "/work/app2/x"),
  file("deny", "write", "/work/app"),
  file("deny", "write", "/work/app/../x"),
  file("deny", "write", ["/work/app/x", "/etc/passwd"]),
  file("deny", "write", "/work/app/.git/hooks/pre-commit"),
  file("deny", "write", "/work/app/.claude/settings.json"),
  file("deny", "write", "/work/app/.CLAUDE/settings.local.json"),
  file("deny", "write", "/work/app/.mcp.json"),
  file("deny", "write", "/work/app/.git"),
  file("deny", "write", "/work/app/sub/.GIT"),
  file("require_approval", "write", "/work/app/sub/HEAD"),
  file("require_approval", "write", "/work/app/sub/commondir"),
  file("require_approval", "write", "/work/app/package.json"),
  // What git and version managers take programs from, also for "--version".
  ...[".gitconfig", ".githooks/post-index-change", ".bare/config", ".yarnrc.yml", ".yarn/releases/yarn.cjs"].map(
    (path) => file("require_approval", "write", `/work/app/${path}`),
  ),
  ...["rust-toolchain.toml", ".cargo/config.toml", ".tool-versions", "mise.toml", "sub/.mise.local.toml"].map((path) =>
    file("require_approval", "write", `/work/app/${path}`),
  ),
  file("require_approval", "write", "/work/app/.ignore"),
  file("require_approval", "write", "/work/app/sub/.rgignore"),
  file("require_approval", "write", "/work/app/sub/.gitIgnore"),
  file("require_approval", "search", WORKSPACE, { options: { glob: ".env*" } }),
  file("require_approval", "search", WORKSPACE, { options: { include: "*" } }),
  file("require_approval", "search", WORKSPACE, { options: { type: "sh" } }),
  file("require_approval", "search", WORKSPACE, { options: { type: ["ts"] } }),
  file("require_approval", "search", WORKSPACE, { options: { no_ignore: true } }),
  file("require_approval", "search", WORKSPACE, { options: { glob: "[.]env" } }),
  file("require_approval", "search", WORKSPACE, { options: { glob: "*.{ts,env}" } }),
  file("require_approval", "search", WORKSPACE, { options: { glob: ["*"] } }),
  file("require_approval", "read", "/work/app/**/*", { options: { include: ["**/*"] } }),
  file("deny", "read", ["/work/app/.env", "/work/app/env/local"]),
  file("deny", "read", "/work/app/.env"),
  file("deny", "read", "/work/app/certs/server.key"),
  file("deny", "search", "/home/ada/.ssh"),
  file("deny", "write", "x"),
  file("deny", "rename", "/work/app/x"),
  file("deny", "write", "/x", { workspace: "/" }),
  file("require_approval", "read", "/etc/hosts"),
  file("require_approval", "delete", "/work/app/x"),
  file("require_approval", "write", "/work/app/x", { deletes: ["/work/app/x"] }),
  file("require_approval", "write", "/work/app/.github/workflows/x.yml"),
  // The web.
  ["deny", "web", "fetch", { urls: ["http://localhost:8080/"], hosts: ["localhost"] }],
  ["deny", "web", "fetch", { urls: ["http://[::1]/"], hosts: ["[::1]"] }],
  ["deny", "web", "fetch", { urls: ["https://x.test/"] }],
  ["require_approval", "web", "search", { query: "x" }],
];
