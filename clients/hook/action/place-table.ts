/**
 * Names of files that suggest secrets, and paths of files that a program runs later or whose instructions an agent
 * follows. Both tables only make a decision stricter: untracked files require approval whatever their names are.
 */
import { isInside } from "./followed-paths.ts";

/** Extensions of code and documents, which mention secrets rather than contain them. */
const SOURCE =
  "[.](?:[cm]?[jt]sx?|vue|svelte|pyi?|rb|go|rs|[ch]|cc|[ch]pp|cs|java|kts?|scala|swift|php|pl|lua|sh|sql|s?css|less|html?|mdx?|rst|proto|graphql)$";
/** Endings of backups. */
const BACKUP = "(?:[.~_-](?:bak|backup|old|orig|save|copy|[0-9]+))*~?$";

const SECRETS: readonly [pattern: string, except: string | null][] = [
  [
    "/[^/]*[.]env(rc)?($|[^a-z0-9/])",
    String.raw`\b(process|import[.]meta)[.]env([^a-z0-9/][^/]*)?$|/[^/.][^/]*[.]env([.]d)?${SOURCE}`,
  ],
  [
    "/[.](ssh|aws|azure|gnupg|kube|docker|config/(gcloud|gh|assent)|local/share/assent|password-store)($|[^a-z0-9_.-])",
    null,
  ],
  [
    "/([._]netrc|[.](pgpass|npmrc|pypirc|git-credentials|vault-token|dev[.]vars|htpasswd|s3cfg|boto|my[.]cnf|terraformrc))($|[^a-z0-9/])",
    null,
  ],
  ["/id_(rsa|dsa|ecdsa|ed25519)(_sk)?($|[^a-z0-9/])", `[.]pub$|${SOURCE}`],
  [`/[^/]*[.](pem|p8|p12|pfx|ppk|key|keystore|jks|kdbx|tfstate)${BACKUP}`, null],
  [`/[.]?(credentials|secrets?|first-keys)([.-][a-z0-9_-]+)?([.](json|ya?ml|toml|env|txt))?${BACKUP}`, SOURCE],
  [`/(client_secret|[^/]*service[-_]?account)[^/]*[.]json${BACKUP}`, null],
  ["/(([.]codex|opencode)/auth|[.]gemini/oauth_creds)[.]json$", null],
  ["^/(etc/(shadow|sudoers)|proc/.*/(environ|mem)|run/secrets)", null],
];
const SECRET_NAMES = SECRETS.map(([pattern, except]) => ({
  pattern: new RegExp(pattern, "i"),
  except: except === null ? null : new RegExp(except, "i"),
}));
const TEMPLATE = /[.](example|sample|template|dist)$|\/(example|sample|template)[.]env$/i;

export function suggestsSecrets(path: string): boolean {
  return (
    !TEMPLATE.test(path) &&
    SECRET_NAMES.some(({ pattern, except }) => pattern.test(path) && except?.test(path) !== true)
  );
}

/** Words in names of files that may contain secrets. Of a file that does not exist yet, only the name is known. */
const POSSIBLE_SECRETS =
  /secret|passw|credential|token|private|api[-_]?key|vault|kubeconfig|cookie|session|wallet|dump|backup|[.](tfvars|sqlite3?|db|crt|cer|asc|gpg|age|sops|enc|ovpn|log|bak)$|\/[.]git\/|[.]mcp[.]json$|local[.](json|ya?ml|toml)$|prod[^/]*[.](json|ya?ml|toml|ini|conf|txt)$/i;
const SOURCE_NAME = new RegExp(SOURCE, "i");

export function maySuggestSecrets(path: string): boolean {
  return suggestsSecrets(path) || (POSSIBLE_SECRETS.test(path) && !SOURCE_NAME.test(path));
}

/** Returns true if a pattern, such as `*.{ts,tsx}`, matches only names of source code. */
export function isSourcePattern(pattern: string): boolean {
  const [, start = "", endings = ""] = /^(.*)[{]([^{}]*)[}]$/.exec(pattern) ?? [];
  return endings === ""
    ? SOURCE_NAME.test(pattern)
    : endings.split(",").every((each) => SOURCE_NAME.test(start + each));
}

/**
 * Names of files that a program runs or an agent reads, by the page that documents it. `*` matches any characters
 * except "/". A name that ends with "/" is a folder, and one that begins with "/" is in the top folder of the
 * workspace. Names with capital letters are case-sensitive.
 */
const RUN_LATER_NAMES: readonly [source: string, names: string][] = [
  // Hidden files and folders are settings: .github, .husky, .vscode, .npmrc, .envrc, .gitattributes, .pre-commit-config.yaml
  ["https://github.com/cosmiconfig/cosmiconfig#searchplaces", ".* .*/"],
  // In the top folder, so are files in the formats of settings.
  ["https://www.schemastore.org/", "/*.json /*.json5 /*.jsonc /*.properties /*.xml /*.xml.dist"],
  // Formats that only settings and infrastructure have, in any folder.
  [
    "https://developer.hashicorp.com/terraform/language/files",
    "*.yaml *.yml *.toml *.ini *.cfg *.conf *.hcl *.tf *.tfvars *.tofu *.bicep *.nomad *.rego *.cue *.dhall *.jsonnet *.j2 *.tpl",
  ],
  [
    "https://www.pulumi.com/docs/iac/concepts/projects/",
    "infra/ infrastructure/ terraform/ pulumi/ cdk/ ansible/ charts/ helm/ k8s/ kubernetes/ deploy/ deployment/ ops/ bin/",
  ],
  [
    "https://git-scm.com/docs/githooks",
    "githooks/ git-hooks/ pre-commit pre-merge-commit pre-push pre-rebase pre-receive pre-auto-gc pre-applypatch post-commit " +
      "post-merge post-checkout post-rewrite post-receive post-update post-index-change post-applypatch commit-msg prepare-commit-msg",
  ],
  ["https://git-scm.com/docs/gitrepository-layout", "head commondir"],
  ["https://lefthook.dev/configuration/", "lefthook.* lefthook-local.*"],
  ["https://code.visualstudio.com/docs/editing/workspaces/workspaces", "*.code-workspace"],
  ["https://www.sublimetext.com/docs/build_systems.html", "*.sublime-project *.sublime-build"],
  [
    "https://agents.md",
    "agents.md agents.*.md claude.md claude.*.md gemini.md skill.md conventions.md warp.md crush.md qwen.md",
  ],
  [
    "https://code.visualstudio.com/docs/copilot/customization",
    "*.mdc *.instructions.md *.prompt.md *.chatmode.md *.agent.md",
  ],
  ["https://opencode.ai/docs/config/", "mcp.json opencode.json opencode.jsonc"],
  ["https://docs.github.com/actions/sharing-automations/creating-actions", "action.yml action.yaml codeowners"],
  ["https://learn.microsoft.com/azure/devops/pipelines/", "azure-pipelines*.yml azure-pipelines*.yaml"],
  ["https://support.atlassian.com/bitbucket-cloud/docs/configure-bitbucket-pipelinesyml/", "bitbucket-pipelines*.yml"],
  [
    "https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html",
    "buildspec*.yml samconfig.* cdk.json serverless.*",
  ],
  [
    "https://cloud.google.com/build/docs/build-config-file-schema",
    "cloudbuild*.yaml cloudbuild*.yml cloudbuild*.json skaffold.yaml",
  ],
  ["https://www.appveyor.com/docs/appveyor-yml/", "appveyor.yml codemagic.yaml render.yaml mkdocs.yml"],
  ["https://docs.docker.com/reference/compose-file/", "docker-compose*.y*ml compose*.y*ml docker-bake.*"],
  ["https://docs.docker.com/build/concepts/dockerfile/", "dockerfile* *.dockerfile containerfile*"],
  // Shell scripts, which recipes, containers and CI start: an agent's own call is judged by the text of the script.
  ["https://docs.docker.com/reference/dockerfile/#entrypoint", "*.sh *.bash *.zsh *.ksh *.fish *.ps1 *.bat *.cmd"],
  ["https://vercel.com/docs/project-configuration", "vercel.json firebase.json now.json app.json renovate.json*"],
  // Makefile, Jenkinsfile, Procfile, Rakefile, Gemfile, Brewfile, Podfile, Vagrantfile, Tiltfile, Snakefile and others.
  [
    "https://www.gnu.org/software/make/manual/html_node/Makefile-Names.html",
    "*file procfile.* makefile.* gnumakefile.* *.mk *.mak",
  ],
  [
    "https://gulpjs.com/docs/en/getting-started/javascript-and-gulpfiles",
    "gulpfile.* gruntfile.* jakefile.* knexfile.* plopfile.*",
  ],
  ["https://just.systems/man/en/", "justfile.* *.just taskfile.* vagrantfile.* jenkinsfile.*"],
  ["https://magefile.org/magefiles/", "magefile.go magefiles/"],
  ["https://docs.npmjs.com/cli/using-npm/scripts", "package.json package.json5 package.yaml lerna.json"],
  ["https://pnpm.io/pnpmfile", "pnpmfile.* pnpm-workspace.yaml"],
  ["https://nx.dev/docs/reference/project-configuration", "project.json nx.json turbo.json angular.json"],
  [
    "https://vite.dev/config/",
    "*.config.*s *.config.*sx *.conf.*s *setup.* *teardown.* *.preset.* *.workspace.*s ember-cli-build.js webpack.mix.js",
  ],
  ["https://getcomposer.org/doc/articles/scripts.md", "composer.json rector.php phpunit.xml* artisan"],
  ["https://docs.pytest.org/en/stable/reference/fixtures.html", "conftest.py pytest.ini conf.py *.conf.py"],
  ["https://docs.python.org/3/library/site.html", "sitecustomize.py usercustomize.py *.pth venv/ site-packages/"],
  [
    "https://docs.djangoproject.com/en/stable/howto/deployment/wsgi/",
    "wsgi.py asgi.py celeryconfig.py *_config.py alembic/env.py migrations/env.py",
  ],
  ["https://rspec.info/documentation/", "*_helper.rb"],
  ["https://www.prisma.io/docs/orm/prisma-migrate/workflows/seeding", "seed.* seeds.* *.seed.* seeds/ seeders/"],
  [
    "https://pip.pypa.io/en/stable/reference/requirements-file-format/",
    "requirements/ constraints*.txt environment.y*ml",
  ],
  [
    "https://setuptools.pypa.io/en/latest/userguide/quickstart.html",
    "setup.py setup.cfg pyproject.toml requirements*.txt requirements*.in",
  ],
  [
    "https://tox.wiki/en/latest/config.html",
    "tox.ini noxfile.py fabfile.py locustfile.py /tasks.py /dodo.py manage.py alembic.ini",
  ],
  ["https://docs.ansible.com/ansible/latest/reference_appendices/config.html", "ansible.cfg"],
  ["https://scons.org/doc/production/HTML/scons-user.html", "sconstruct sconscript wscript conanfile.*"],
  [
    "https://doc.rust-lang.org/cargo/reference/build-scripts.html",
    "cargo.toml build.rs rust-toolchain rust-toolchain.toml",
  ],
  ["https://go.dev/ref/mod", "go.mod go.sum go.work"],
  [
    "https://bun.sh/docs/runtime/bunfig",
    "bunfig.toml netlify.toml fly.toml wrangler.toml mise.toml nixpacks.toml foundry.toml",
  ],
  [
    "https://docs.gradle.org/current/userguide/gradle_wrapper.html",
    "*.gradle *.gradle.kts gradle.properties gradlew gradlew.bat gradle/wrapper/",
  ],
  ["https://maven.apache.org/guides/introduction/introduction-to-the-pom.html", "pom.xml mvnw mvnw.cmd build.xml"],
  ["https://www.scala-sbt.org/1.x/docs/Organizing-Build.html", "*.sbt project/*.scala build.sc"],
  [
    "https://learn.microsoft.com/visualstudio/msbuild/msbuild",
    "*.*proj *.props *.targets *.sln global.json nuget.config",
  ],
  ["https://bazel.build/concepts/build-files", "*.bazel *.bzl BUILD WORKSPACE MODULE BUCK"],
  [
    "https://cmake.org/cmake/help/latest/manual/cmake-language.7.html",
    "cmakelists.txt *.cmake cmakecache.txt cmakefiles/ *.make makefile2 *.ninja meson.build meson-private/ meson_options.txt configure configure.ac autogen.sh",
  ],
  [
    "https://guides.rubygems.org/specification-reference/",
    "*.gemspec *.podspec *.rake config.ru extconf.rb vendor/bundle/",
  ],
  ["https://hexdocs.pm/mix/Mix.Project.html", "mix.exs rebar.config rebar.config.script"],
  [
    "https://docs.swift.org/package-manager/PackageDescription/PackageDescription.html",
    "package.swift *.pbxproj *.xcscheme",
  ],
  [
    "https://cabal.readthedocs.io/en/stable/cabal-package-description-file.html",
    "*.cabal setup.hs stack.yaml dune *.opam *.nimble *.rockspec",
  ],
  ["https://clojure.org/reference/deps_edn", "deps.edn bb.edn project.clj build.clj build.zig pubspec.yaml"],
  ["https://nix.dev/concepts/flakes", "*.nix *.gyp makefile.pl build.pl"],
  [
    "https://docs.npmjs.com/cli/configuring-npm/package-lock-json",
    "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml *.lock *.lockb *.lockfile",
  ],
  ["https://nodejs.org/api/modules.html#loading-from-node_modules-folders", "node_modules/"],
  [
    "https://www.freedesktop.org/software/systemd/man/latest/systemd.unit.html",
    "*.service *.timer *.socket *.path *.desktop *.plist",
  ],
  [
    "https://man7.org/linux/man-pages/man8/cron.8.html",
    "crontab *.cron cron.d/ cron.daily/ cron.hourly/ cron.weekly/ authorized_keys",
  ],
];

const RUN_LATER = RUN_LATER_NAMES.flatMap(([, names]) => names.split(" ")).map((name) => {
  const source = name
    .replace(/^\/|\/$/g, "")
    .replace(/[.+]/g, "[$&]")
    .replaceAll("*", "[^/]*");
  const start = name.startsWith("/") ? "^/" : "/";
  return new RegExp(start + source + (name.endsWith("/") ? "(?:/|$)" : "$"), /[A-Z]/.test(name) ? "" : "i");
});

/** Returns true if a program runs the file after the call, or an agent follows it. */
export function runsLater(path: string, workspace: string | null): boolean {
  // Folders above the workspace may be hidden.
  const inside = workspace !== null && isInside(path, workspace) ? path.slice(workspace.length) : path;
  // "./..." is a pattern of Go for all packages below a folder, and not a hidden file.
  const name = inside.replace(/\/\.\.\.$/, "");
  // Empty files that keep a folder in git.
  return !/\/[.](git)?keep$/.test(name) && RUN_LATER.some((pattern) => pattern.test(name));
}
