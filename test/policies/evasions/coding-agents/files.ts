/**
 * Files and the web.
 * @needs hook
 */
import type { Evasion } from "../index.ts";
import { file, WORKSPACE } from "./asking.ts";

/**
 * Files that run later, configure what runs, or instruct an agent: on another machine, in an editor, or at the next
 * install.
 */
const LASTING = [
  // Instructions of agents.
  "AGENTS.md CLAUDE.md CLAUDE.local.md docs/agents.md GEMINI.md .cursorrules .windsurfrules .clinerules .aider.conf.yml SKILL.md",
  ".junie/guidelines.md .roo/rules/x.md .continue/config.yaml .agents/x.md rules/style.mdc .goosehints",
  // CI and deployment.
  ".github/workflows/x.yml .gitlab-ci.yml .circleci/config.yml .travis.yml azure-pipelines.yml bitbucket-pipelines.yml",
  ".drone.yml .woodpecker.yml .buildkite/pipeline.yml Jenkinsfile appveyor.yml cloudbuild.yaml buildspec.yml .ci/run",
  "netlify.toml vercel.json fly.toml wrangler.toml Procfile render.yaml Dockerfile api/Dockerfile.prod Containerfile",
  "docker-compose.yml compose.prod.yaml Vagrantfile skaffold.yaml Tiltfile",
  // Hooks of git and of editors.
  "lefthook.yml .lefthook.toml lefthook-local.yml .pre-commit-config.yaml .husky/pre-commit .overcommit.yml .lintstagedrc",
  ".lintstagedrc.json .githooks/post-index-change .gitmodules .gitattributes sub/.gitconfig CODEOWNERS",
  ".vscode/tasks.json .idea/runConfigurations/x.xml .devcontainer/devcontainer.json .zed/tasks.json app.code-workspace .exrc",
  // Builds and their dependencies.
  "package.json Makefile GNUmakefile rules.mk justfile Taskfile.yml Rakefile Gemfile Cargo.toml crates/a/Cargo.toml build.rs",
  "go.mod go.work pyproject.toml setup.py setup.cfg tox.ini noxfile.py conftest.py requirements.txt requirements-dev.txt Pipfile",
  "composer.json build.gradle build.gradle.kts settings.gradle gradle.properties gradlew gradle/wrapper/x.jar pom.xml mvnw",
  ".mvn/extensions.xml build.sbt mix.exs Package.swift CMakeLists.txt meson.build BUILD BUILD.bazel WORKSPACE .bazelrc",
  "flake.nix shell.nix deno.json deno.jsonc bunfig.toml pnpm-workspace.yaml .pnpmfile.cjs .yarnrc.yml .yarn/releases/yarn.cjs",
  "vite.config.ts jest.config.js eslint.config.mjs .eslintrc.json .eslintrc.cjs .babelrc .mocharc.yml .swcrc gulpfile.js Gruntfile.cts turbo.json nx.json lerna.json Brewfile Earthfile .rspec Directory.Build.props app.csproj",
  // Lockfiles and installed code.
  "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb Cargo.lock go.sum poetry.lock uv.lock",
  "Gemfile.lock composer.lock flake.lock deno.lock gradle.lockfile node_modules/.bin/jest node_modules/x/index.js .pnp.cjs",
  ".direnv/bin/x .venv/bin/python venv/lib/x.py lib/site-packages/x.pth sitecustomize.py",
  // Files that select which programs run, and which files a search skips.
  "rust-toolchain.toml .cargo/config.toml .tool-versions mise.toml sub/.mise.local.toml .nvmrc .node-version .python-version",
  ".ruby-version global.json .bare/config sub/HEAD sub/commondir .ignore sub/.rgignore sub/.gitIgnore deploy/app.service",
]
  .join(" ")
  .split(" ");

/** Secrets that a file tool never reads. */
const SECRETS = [
  ".env prod.env prod.env.local config/app.env~ .env.production .envrc .dev.vars .dev.vars.staging terraform.tfstate",
  "terraform.tfstate.backup terraform.tfstate.1700000000.backup id_rsa id_rsa.bak deploy/id_ed25519.old id_ecdsa~ server.key",
  "server.pem.bak cert.p12 key.p8 key.ppk vault.kdbx .npmrc .npmrc.bak .netrc _netrc .htpasswd .s3cfg .git-credentials",
  "first-keys data/first-keys secrets.yml secrets.prod.yaml credentials.json client_secret_1.json service-account.json google-service_account-x.json",
]
  .join(" ")
  .split(" ");

export const files: readonly Evasion[] = [
  ...LASTING.map((path) => file("one", "write", `/work/app/${path}`)),
  ...SECRETS.flatMap((path) => [
    file("deny", "read", `/work/app/${path}`),
    file("deny", "search", `/work/app/${path}`),
    file("deny", "write", `/work/app/${path}`),
  ]),
  // What git does not track, and a call without this list.
  file("require_approval", "read", "/work/app/x", { untracked: ["/work/app/x"] }),
  file("require_approval", "search", WORKSPACE, { untracked: ["/work/app/notes/"] }),
  ...["secrets", "untracked", "later"].map((member) => file("deny", "read", "/work/app/x", { [member]: undefined })),
  // Patterns that an agent uses all day.
  ...["*.ts", "**/*.{ts,tsx}", "src/**/*.py", "*.md"].map((glob) =>
    file("allow", "search", WORKSPACE, { options: { pattern: "KEY", glob } }),
  ),
  file("allow", "search", WORKSPACE, { options: { pattern: "KEY", "-n": true, output_mode: "content", type: "ts" } }),
  file("allow", "search", WORKSPACE, { options: { pattern: "KEY", no_ignore: false, respect_git_ignore: true } }),
  ...[
    "AGENTS.md package.json Cargo.lock .github/workflows/x.yml .vscode/tasks.json .env.example example.env src/env.ts",
    "src/app.env.ts app/[id]/page.tsx src/credentials.ts src/secrets/index.ts id_rsa.pub .npmrc.example .claude/commands/x.md",
    ".git-blame-ignore-revs .gitignore node_modules/x/index.js",
  ]
    .join(" ")
    .split(" ")
    .map((path) => file("allow", "read", `/work/app/${path}`)),
  ...["src/main.ts", "docs/agent.md", "README.md", "src/lock.ts", "data/packages.json5", "src/build.ts"].map((path) =>
    file("allow", "write", `/work/app/${path}`),
  ),
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
  file("deny", "read", ["/work/app/.env", "/work/app/env/local"]),
  file("deny", "read", "/work/app/.env"),
  file("deny", "read", "/work/app/certs/server.key"),
  file("deny", "search", "/home/ada/.ssh"),
  // The store that "assent hook setup" creates, which contains the service's secrets.
  file("deny", "read", "/home/ada/.local/share/assent/data/assent.db"),
  file("deny", "search", "/home/ada/.local/share/assent"),
  file("deny", "write", "x"),
  file("deny", "rename", "/work/app/x"),
  file("deny", "write", "/x", { workspace: "/" }),
  file("require_approval", "read", "/etc/hosts"),
  file("require_approval", "delete", "/work/app/x"),
  file("require_approval", "write", "/work/app/x", { deletes: ["/work/app/x"] }),
  // The web.
  ["deny", "web", "fetch", { urls: ["http://localhost:8080/"], hosts: ["localhost"] }],
  ["deny", "web", "fetch", { urls: ["http://[::1]/"], hosts: ["[::1]"] }],
  ["deny", "web", "fetch", { urls: ["https://x.test/"] }],
  ["allow", "web", "search", { query: "x" }],
  ["require_approval", "web", "search", { query: "x", domain: "evil.example" }],
  ["require_approval", "web", "search", { query: "x".repeat(201) }],
  ["require_approval", "web", "fetch", { urls: ["https://nodejs.org/"], hosts: ["nodejs.org", "evil.example"] }],
  ["require_approval", "web", "fetch", { urls: ["https://nodejs.org/"], hosts: ["nodejs.org"], headers: {} }],
];
