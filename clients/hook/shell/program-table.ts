import { SHOWN_VARIABLES } from "./command-tables.ts";

/** Settings of git that contain no credentials. */
const GIT_SETTINGS =
  "(user|core|init|branch|pull|push|fetch|merge|rebase|diff|color|commit|tag|log|status|rerere|advice|column|stash|worktree|safe|feature)" +
  "[.][\\w./-]+";
/**
 * Options of programs that neither start a program of the caller's choice nor act outside the workspace. An option that is not listed
 * writes to a file, loads code, sends data, or is too rare: the command then requires approval.
 *
 * Each line is `names use: tokens`. The use is `reads` (displays what it names), `checks` (builds, tests or formats the project, and runs
 * its code) or `local` (changes what git can undo). Tokens:
 *
 * - `-ab`: letters without a value; `-ab=`: letters with a value, attached or in the next word; `-a[=]`: with a value only if attached
 * - `--name`, `--name=`, `--name[=]`: the same for long options; `~name`: with one dash or two
 * - after `=`: `~` for a value that is text, `>` for a file that the program writes, `^` for the folder of a build, `/x/` for what the value must match (`~/x/` for text)
 * - `*`: any option; `/x/`: any option that matches
 * - `operands/x/`: what each operand must match, after the first if there is `first/x/`; `max1`, `min1`: their number; `needs/x/`: what some option
 *   must match
 * - `bundle/x/`: the letters of options in the first word, which needs no dash: `tar tf`
 * - `--`: what follows are the options after `--`
 */
export const PROGRAM_TABLE = String.raw`
# Variables whose values are no secrets
printenv reads: -0 --null min1 operands/${[...SHOWN_VARIABLES].join("|")}/
# https://www.gnu.org/software/coreutils/manual/coreutils.html
sort reads: -bdfgiMhnRrVcCmsuz0123456789 -kSt= --key= --field-separator= --buffer-size= --parallel= --batch-size= --sort= --check[=] --reverse --numeric-sort --general-numeric-sort --human-numeric-sort --version-sort --month-sort --random-sort --dictionary-order --ignore-case --ignore-leading-blanks --ignore-nonprinting --unique --stable --merge --zero-terminated --debug
uniq reads: -cdDiuz -fsw= --count --repeated --all-repeated[=] --group[=] --unique --ignore-case --skip-fields= --skip-chars= --check-chars= --zero-terminated max1
date reads: -uRjn -d=~ -r= -I[=] -v= --date=~ --reference= --utc --universal --iso-8601[=] --rfc-3339= --rfc-email operands/[+].*/
base64, base32 reads: -dDi -w= --decode --ignore-garbage --wrap= max1
shuf reads: -er -n= -i= -z --head-count= --input-range= --echo --repeat
hostname reads: -fisdIA max0
tsort, factor, groups, logname, tty, who, w, lscpu, lsblk, locale, getconf, uuidgen, b2sum, sha224sum, sha384sum, shasum, md5, zcat, pidof, pstree, vmstat, cal, clear, yes, look, c++filt, size, zipinfo, sw_vers reads: *
nm reads: -aABCDfglnoprsSuvW -t= --demangle[=] --defined-only --undefined-only --extern-only --dynamic --print-size --size-sort --numeric-sort --format=
jobs reads: -lnprs
shopt reads: -su operands/globstar|nullglob|dotglob/
mktemp reads: -dqut -p= --directory --suffix= --tmpdir[=]
rmdir local: -pv --parents --verbose --ignore-fail-on-non-empty
cp local: -fpvnuiTrR --force --preserve[=] --verbose --no-clobber --update[=] --recursive
mv local: -fvnuiT --force --verbose --no-clobber --update[=]
chmod local: -vcf min2 first/0?(644|755|600|700|640|664|750)|[ua]?[+][rx]+|[ugoa]*-x/
# Other operands name processes that this line did not start.
kill reads: -lL operands/%[\d+-]*/
disown, fg, bg reads: -ahr operands/%[\d+-]*/
# https://man7.org/linux/man-pages/man1/ps.1.html: "e" and "-E" display the environment.
ps reads: -AadefFHjlLMNTVwwyZcm -opuUCtgGs=/(?!.*env).*/ --sort= --ppid= --pid= --format=/(?!.*env).*/ --forest --no-headers --headers --cols= --width= operands/[acfhjlmrTuvwxnSX]*o?|\d[\d,]*|(?!.*env)[a-z%]+(,[a-z%]+)+/
top reads: -bcHiS1 -ndpuow=
# https://man7.org/linux/man-pages/man8/lsof.8.html and ss.8.html
lsof reads: -abtnPlRUNVHKMXwC -cdpu= -i[=] -s[=] -F[=] -g[=]
ss reads: -hVHOQnralBoempTisZzb460tudwxSM -fA= --tcp --udp --unix --listening --numeric --processes --all --no-header --summary --ipv4 --ipv6 --extended --info --memory --options --family= --query= --resolve
netstat reads: -atunlpesrigvWNox46
sysctl reads: -nabeNX operands/[\w.-]+/
# https://man7.org/linux/man-pages/man1/file.1.html
file reads: -bchiLkNnprvz0dE -Fe= --brief --mime --mime-type --mime-encoding --dereference --no-dereference --no-pad --print0 --extension --separator=
xxd reads: /-(p|ps|plain|a|b|C|e|E|i|u|r|d|[clgs]\d+)/ max1
hexdump reads: -bcCdovx -nse=
strings reads: -afwo -ntes= --bytes= --radix= --all --encoding= /-\d+/
# https://sourceware.org/binutils/docs/binutils/
objdump reads: -adDfhHprRsStTxwCzlg -jMmb= --disassemble[=] --demangle[=] --no-show-raw-insn --section= --source --syms --headers
readelf reads: -ahlSgtesndurVADIWL -xpR=
bc reads: -lqsw --mathlib --quiet --standard --warn
iconv reads: -cls -ft= --from-code= --to-code= --list
gzip, gunzip reads: -ltv --list --test needs/-[lv]*[lt][lv]*|--(list|test)/
# https://infozip.sourceforge.net/UnZip.html
unzip reads: -lvtZ1qp needs/-[lvtZ1qp]*[lvtZp][lvtZ1qp]*/
# https://www.gnu.org/software/tar/manual/html_node/Short-Option-Clustering.html, https://docs.oracle.com/en/java/javase/21/docs/specs/man/jar.html
# "host:file" is a file of another machine, and "@file" contains options.
tar reads: bundle/[zjJv]*t[zjJvf]*/ needs/-[zjJv]*t[zjJvf]*/ operands/[^:]*/
jar reads: bundle/t[vf]+/ needs/-t[vf]+/ operands/[^@].*/
patch reads: -pi= -RNs --dry-run --verbose needs/--dry-run/
# https://gnome.pages.gitlab.gnome.org/libxml2/xmllint.html
xmllint reads: --noout --format --xpath=~ --pretty= --html --recover --nonet --c14n --nowarning --noblanks --version
openssl version reads: *
openssl dgst reads: /-(sha\d+|md5|hex|r|c)/
openssl rand reads: /-(hex|base64)/ operands/\d+/
# https://sqlite.org/cli.html: SQL that only reads, or the names of tables
sqlite3 reads: /--?(header|noheader|column|csv|json|line|list|table|box|markdown|readonly|batch|bail|safe)/ ~separator= ~nullvalue= min2 first/.*/ operands/(?!.*\b(readfile|writefile|edit|eval|load_extension|fts3_tokenizer|fsdir|zipfile|attach|detach|insert|update|delete|drop|create|replace|alter|vacuum|pragma|reindex|begin|savepoint)\b)\s*(select|explain|values|with)\b.*|\s*pragma\s+(table_x?info|index_list|index_info|foreign_key_list|user_version)(\([\w\s'\"]*\))?;?\s*|[.](tables|schema|indexes|databases)(\s+[\w%]+)?/
# Linters: https://www.shellcheck.net/wiki/, https://yamllint.readthedocs.io, https://github.com/hadolint/hadolint, https://github.com/rhysd/actionlint
shellcheck reads: -V -C[=] -efisSoW= --norc --severity= --format= --shell= --exclude= --include= --enable= --color[=]
yamllint reads: -svq -d=~ -fc= --format= --strict --no-warnings --list-files
hadolint reads: -V -ftc= --format= --failure-threshold= --ignore= --no-color --no-fail --verbose --config= --trusted-registry= --error= --warning= --info= --style=
actionlint reads: ~color ~no-color ~oneline ~verbose ~debug ~format=~ ~ignore=~ ~version ~config-file=
tokei reads: -fC -ets= --files --sort= --types= --exclude= --hidden
cloc reads: --quiet --by-file --by-file-by-lang --json --csv --yaml --md --vcs=/git|auto/ --include-lang= --exclude-lang= --include-ext= --exclude-ext= --exclude-dir= --match-f=~ --not-match-f=~ --not-match-d=~
markdownlint checks: -fqj -i= --fix --quiet --json --ignore= --disable
terraform fmt, tofu fmt checks: ~check ~diff ~recursive ~list= ~write= ~no-color
terraform validate, tofu validate checks: ~json ~no-color max0
terraform version, tofu version, helm version, kubectl config current-context, kubectl config get-contexts reads: *
kubectl version reads: --client[=] -o= --output= needs/--client(=true)?/
helm show, helm show chart, helm show values, helm show readme, helm show all, helm dependency list reads: operands/[.]{1,2}(\/[\w.-]+)*\/?|(charts?|helm|deploy)\/[\w.\/-]+/ min1
helm lint reads: -f= --strict --quiet --set= --values= --with-subcharts --kube-version=
helm template reads: -fsn= --set= --values= --show-only= --namespace= --name-template= --kube-version= --api-versions= --include-crds --skip-tests --debug --no-hooks operands/[\w-]+|[.]{1,2}(\/[\w.-]+)*\/?|(charts?|helm|deploy)\/[\w.\/-]+/
# https://git-scm.com/docs: no option that starts an editor's or a strategy's program, skips hooks, forces, or discards changes
git add local: -vnuANp --verbose --dry-run --update --all --no-all --intent-to-add --refresh --ignore-errors --ignore-missing --renormalize --patch --chmod=
git commit local: -aqvsopiz -mCcF= -u[=] --amend --no-edit --edit --signoff --no-signoff --allow-empty --allow-empty-message --all --message=~ --file= --fixup= --squash= --reset-author --reuse-message= --dry-run --short --long --porcelain --branch --status --no-status --only --include --quiet --verbose --trailer=~ --no-gpg-sign --cleanup= --untracked-files[=] --patch
git mv local: -vnk --verbose --dry-run
git rm local: -rqn --quiet --dry-run --ignore-unmatch
git rm --cached local: -qn --quiet --dry-run --ignore-unmatch
git symbolic-ref reads: -q --quiet --short --no-recurse min1 max1
# https://git-scm.com/docs/git-config#_variables: the sections that contain no credentials
git config reads: -z --get --get-all --global --local --system --worktree --show-origin --show-scope --null --name-only --path --bool --int --type=/[a-z-]+/ needs/--get(-all)?/ min1 max1 operands/${GIT_SETTINGS}/
git config get reads: -z --all --global --local --system --worktree --show-origin --show-scope --null --show-names --type=/[a-z-]+/ min1 max1 operands/${GIT_SETTINGS}/
git branch reads: -arvliq --list --all --remotes --show-current --verbose --sort= --format=~ --contains[=] --no-contains[=] --merged[=] --no-merged[=] --points-at= --column[=] --no-column --color[=] --no-color --abbrev= --no-abbrev --ignore-case --omit-empty operands/[\w*][\w.*\/~^@-]*/ max2
git tag reads: -lia -n[=] -m=~ --list --annotate --message=~ --sort= --format=~ --contains[=] --no-contains[=] --merged[=] --no-merged[=] --points-at= --column[=] --color[=] --ignore-case operands/[\w*][\w.*\/~^@-]*/
git merge local: -qv -m=~ -s=/ort|recursive|resolve|octopus|ours|subtree/ -X=/[a-z-]+/ --strategy=/ort|recursive|resolve|octopus|ours|subtree/ --strategy-option=/[a-z-]+/ --no-ff --ff --ff-only --no-edit --squash --no-commit --commit --abort --continue --quit --message=~ --stat --no-stat --log[=] --autostash --no-autostash --quiet operands/\w[\w.\/~^@{}-]*/
git rebase local: -iqvrf -X=/[a-z-]+/ --interactive --autosquash --no-autosquash --autostash --no-autostash --onto= --abort --continue --skip --quit --keep-base --quiet --stat --no-stat --root --update-refs --rebase-merges[=] --fork-point --no-fork-point --reapply-cherry-picks --committer-date-is-author-date --reset-author-date --empty= --keep-empty --force-rebase --no-ff --signoff operands/\w[\w.\/~^@{}-]*/
git cherry-pick local: -xnes -m= -X=/[a-z-]+/ --no-commit --edit --mainline= --signoff --ff --allow-empty --abort --continue --skip --quit --strategy-option=/[a-z-]+/ operands/\w[\w.\/~^@{}-]*/
git revert local: -nes -m= --no-edit --edit --no-commit --mainline= --signoff --abort --continue --skip --quit operands/\w[\w.\/~^@{}-]*/
git reset local: -qN --soft --mixed --quiet --intent-to-add
git restore local: -Sq -s= --staged --quiet --source= needs/--staged|-S/
git switch local: -tdq -c= --create= --track[=] --no-track --detach --quiet --guess --no-guess operands/-|\w[\w.\/~^@{}-]*/
git stash local: -kq -m=~ --keep-index --quiet max0
git stash push local: -kqS -m=~ --keep-index --no-keep-index --staged --quiet --message=~
git stash apply, git stash pop local: -q --index --quiet
git stash list reads: -n= --oneline --format=~ --date= --stat
git bisect start, git bisect good, git bisect bad, git bisect new, git bisect old, git bisect skip, git bisect reset, git bisect log, git bisect view, git bisect terms local: --first-parent --term-old= --term-new= --term-good= --term-bad=
git apply reads: -Rv3 -pC= --check --stat --numstat --summary --reverse --3way --recount --unidiff-zero --whitespace= --directory= --include= --exclude= --ignore-whitespace --ignore-space-change needs/--(check|stat|numstat|summary)/
git fetch local: -aptqv -j= --all --prune --tags --no-tags --prune-tags --quiet --verbose --depth= --deepen= --unshallow --dry-run --jobs= --progress --no-recurse-submodules first/origin|upstream/ operands/[\w][\w.\/-]*/
git pull local: -pqvr --ff-only --rebase[=]/true|false|merges/ --no-rebase --autostash --no-autostash --no-edit --tags --prune --quiet --ff --no-ff first/origin|upstream/ operands/[\w][\w.\/-]*/
git ls-remote reads: -htq --heads --branches --tags --refs --quiet --sort= --symref --exit-code operands/origin|[\w.*\/-]+/
git remote get-url, git remote show, git remote prune local: --all --push -n operands/[\w-]+/
git worktree list, git worktree prune local: -vnz --porcelain --verbose --dry-run max0
git fsck reads: --full --no-dangling --unreachable --no-progress --connectivity-only max0
# https://cli.github.com/manual: reads of this repository ("-R" and addresses name others)
gh pr view, gh pr list, gh pr checks, gh pr diff, gh pr status, gh issue view, gh issue list, gh issue status, gh run view, gh run list, gh run watch, gh release view, gh release list, gh workflow view, gh workflow list, gh label list, gh cache list reads: -cv -q=~/(?!.*[eE][nN][vV]).*/ -t=~ -LslaABHSjbuem= --json= --jq=~/(?!.*[eE][nN][vV]).*/ --template=~ --limit= --state= --label= --assignee= --author= --base= --head= --search=~ --milestone= --mention= --app= --draft --comments --checks --required --watch --fail-fast --interval= --name-only --patch --color= --log --log-failed --verbose --exit-status --job= --attempt= --workflow= --branch= --user= --event= --status= --commit= --created= --conflict-status --compact --yaml --ref= --exclude-drafts --order= --sort= --all operands/#?[\w][\w.\/-]*/
gh api reads: -q=~/(?!.*[eE][nN][vV]).*/ --jq=~/(?!.*[eE][nN][vV]).*/ --paginate --slurp --cache= operands/\/?repos\/\{owner\}\/\{repo\}\/(pulls|issues|commits|compare|branches|tags|releases|labels|milestones|check-runs|actions\/runs|actions\/workflows|contributors)([\/?][\w\/?&=.,:%-]*)?/ min1 max1
gh auth status reads: max0
# Short queries, which only GitHub sees, as those of a web search
gh search issues, gh search prs, gh search repos, gh search commits, gh search code reads: -LR= --repo=/[\w.-]{1,40}\/[\w.-]{1,60}/ --owner=/[\w-]{1,40}/ --limit= --state=/open|closed/ --label=/[\w\s:.-]{1,40}/ --language=/\w+/ --sort=/[a-z-]+/ --order=/asc|desc/ --json=/[\w,]+/ --match=/[a-z,]+/ --author=/[\w@-]{1,40}/ --merged --archived --draft min1 max3 operands/.{1,60}/
gh repo view reads: -b= -q=~/(?!.*[eE][nN][vV]).*/ -t=~ --json= --jq=~/(?!.*[eE][nN][vV]).*/ --template=~ --branch= max0
# https://docs.docker.com/reference/cli/docker: a format can display only the state, because the configuration contains the environment
docker ps, docker container ls reads: -aqlsn --all --quiet --no-trunc --latest --size --last= -f= --filter= --format=/(?!.*(Env|Config|Labels)).*/ --digests --no-stream --verbose max0
docker images, docker port, docker stats, docker volume ls, docker network ls, docker image ls, docker system df, docker version, docker diff, docker compose ls reads: -aqlsn --all --quiet --no-trunc --latest --size --last= -f= --filter= --format=/(?!.*(Env|Config|Labels)).*/ --digests --no-stream --verbose
docker inspect, docker container inspect, docker image inspect reads: -s --size --type= -f=/[^{}]*({{\s*(json\s+)?[.](State|Name|Id|Created|NetworkSettings|RestartCount|Image|RepoTags|RepoDigests|Size|Architecture|Os|Platform)\b[\w.]*\s*}}[^{}]*)+/ --format=/[^{}]*({{\s*(json\s+)?[.](State|Name|Id|Created|NetworkSettings|RestartCount|Image|RepoTags|RepoDigests|Size|Architecture|Os|Platform)\b[\w.]*\s*}}[^{}]*)+/ needs/(--format|-f)(=.*)?/
docker compose ps, docker compose logs, docker compose top, docker compose images, docker compose port, docker compose version reads: -aqft -n= --all --quiet --follow --timestamps --no-color --no-log-prefix --tail= --since= --until= --services --status= --filter= --format= --no-trunc --orphans
docker compose config reads: --services --profiles --volumes --networks --quiet -q max0 needs/--(services|profiles|volumes|networks|quiet)|-q/
# https://docs.npmjs.com/cli/commands and https://pnpm.io/cli: names of packages, which registries publish
npm ls, npm list, npm ll, npm outdated, npm fund, npm explain, npm why, npm root, npm prefix, npm query, pnpm list, pnpm ls, pnpm why, pnpm outdated, yarn list, yarn why, yarn outdated, yarn info, bun pm ls reads: -alpgrPD -F= --all --depth= --json --long --parseable --prod --production --dev --omit= --include= --global --link --package-lock-only --recursive --filter= --pattern= --format= --no-optional
npm audit, pnpm audit, yarn audit, yarn npm audit reads: --json --omit= --include= --audit-level= --production --prod --dev --package-lock-only --groups= --level= --recursive operands/signatures/
npm view, npm info, npm show, pnpm view, pnpm info reads: --json operands/(@[\w-]{1,40}\/)?[\w.-]{1,60}(@[\w.^~<>=*-]{1,20})?|[\w.\[\]-]{1,40}/
npm pkg get reads: --json operands/[\w.\[\]-]+/
npm config get reads: operands/registry|prefix|cache|node-version|user-agent|engine-strict|save-exact|loglevel|fund|audit/ min1
# https://pip.pypa.io/en/stable/cli/, https://docs.astral.sh/uv/reference/cli/, https://python-poetry.org/docs/cli/
pip list, pip3 list, pip show, pip3 show, pip freeze, pip3 freeze, pip check, pip3 check, uv pip list, uv pip show, uv pip freeze, uv pip tree, uv pip check reads: -oulefv --outdated --uptodate --format= --not-required --user --local --all --files --verbose --exclude= --editable --exclude-editable --depth= --invert
pip index versions, pip3 index versions reads: operands/[\w.-]{1,60}/
uv tree, uv python list, uv python find, uv cache dir, uv tool list reads: --depth= --package= --invert --no-dev --frozen --locked --universal --all-groups --only-installed
poetry show, poetry check, poetry env info, bundle list, bundle info, bundle outdated, composer show, composer outdated, composer licenses, gem list reads: -tlaoTDpv --tree --latest --outdated --only= --with= --without= --top-level --direct --path --all --format= --no-dev --name-only --local
dpkg, dpkg-query reads: /-[lLsS]/ needs/-[lLsS]/
rustup show, rustup toolchain list, rustup target list, rustup component list reads: -v --verbose --installed
rustc reads: -vV --version --verbose --explain= --print=/[a-z-]+/ max0
java, javac reads: /--?version/ max0
# https://www.typescriptlang.org/docs/handbook/compiler-options.html
tsc, vue-tsc checks: -bwvh -p= --noEmit --project= --build --watch --pretty --skipLibCheck --incremental --listFiles --listFilesOnly --listEmittedFiles --showConfig --traceResolution --diagnostics --extendedDiagnostics --explainFiles --noErrorTruncation --strict --target= --module= --moduleResolution= --jsx= --lib= --types= --esModuleInterop --allowJs --checkJs --allowImportingTsExtensions --noUnusedLocals --noUnusedParameters --noImplicitAny --noImplicitReturns --strictNullChecks --exactOptionalPropertyTypes --noUncheckedIndexedAccess --isolatedModules --resolveJsonModule --declaration --emitDeclarationOnly --force --dry --verbose --noCheck --version --help --all operands/[^@].*/
# https://eslint.org/docs/latest/use/command-line-interface
eslint checks: -hv -f=/stylish|json|compact|unix|html|junit|checkstyle|tap|visualstudio|json-with-metadata/ -o=> --ext= --fix --fix-dry-run --fix-type= --quiet --max-warnings= --format=/stylish|json|compact|unix|html|junit|checkstyle|tap|visualstudio|json-with-metadata/ --output-file=> --cache --no-cache --cache-strategy= --color --no-color --ignore-pattern= --no-ignore --no-error-on-unmatched-pattern --no-warn-ignored --pass-on-no-patterns --report-unused-disable-directives --report-unused-disable-directives-severity= --rule=~ --global= --env= --no-inline-config --print-config= --debug --stats --exit-on-fatal-error --env-info --concurrency= --version
# https://prettier.io/docs/cli
prettier checks: -cwlu --check --write --list-different --no-color --color --log-level= --ignore-unknown --no-error-on-unmatched-pattern --ignore-path= --tab-width= --print-width= --single-quote --no-semi --trailing-comma= --prose-wrap= --parser=/[a-z-]+/ --end-of-line= --use-tabs --cache --no-cache --cache-strategy= --stdin-filepath= --file-info= --find-config-path= --support-info --with-node-modules --no-config --no-editorconfig --arrow-parens= --quote-props= --no-bracket-spacing --version
# https://oxc.rs/docs/guide/usage/formatter/cli
oxfmt checks: --check --list-different --threads=
# https://vitest.dev/guide/cli
vitest, vitest run, vitest related, vitest list checks: -uwh -t=~ --testNamePattern=~ --test-name-pattern=~ --run --watch[=] --update --coverage[=] --no-coverage /--coverage[.](enabled|all|provider|reporter|include|exclude|skipFull|thresholds[.]\w+)(=[^\/]*)?/ --reporter=/default|verbose|dot|json|tap|tap-flat|junit|hanging-process|github-actions|basic|list|tree/ --outputFile=> --bail[=] --retry= --silent[=] --hideSkippedTests --no-color --color --pool=/forks|threads|vmThreads|vmForks/ --isolate --no-isolate --fileParallelism --no-file-parallelism --maxWorkers= --minWorkers= --testTimeout= --hookTimeout= --sequence.shuffle[=] --sequence.seed= --passWithNoTests --changed[=] --shard= --project=~ --dir= --exclude= --environment=/node|jsdom|happy-dom/ --logHeapUsage --allowOnly --typecheck[=] --typecheck.only --globals --disableConsoleIntercept --json --filesOnly --printConsoleTrace --expandSnapshotDiff --slowTestThreshold=
# https://jestjs.io/docs/cli
jest checks: -uiboeh -t=~ -w= --testNamePattern=~ --testPathPattern= --testPathPatterns= --runInBand --onlyChanged --onlyFailures --findRelatedTests --coverage[=] --no-coverage --collectCoverageFrom= --coverageReporters=/[a-z-]+/ --coverageDirectory=> --coverageProvider=/v8|babel/ --verbose[=] --silent[=] --ci --bail[=] --watch --watchAll[=] --no-cache --passWithNoTests --listTests --json --outputFile=> --maxWorkers= --testTimeout= --updateSnapshot --detectOpenHandles --forceExit --logHeapUsage --expand --errorOnDeprecated --changedSince= --lastCommit --shard= --randomize --seed= --showSeed --selectProjects= --ignoreProjects= --testPathIgnorePatterns= --color --colors --no-color --showConfig --reporters=/default|summary|github-actions/ --testEnvironment=/node|jsdom/ --env=/node|jsdom/ --noStackTrace
# https://playwright.dev/docs/test-cli
playwright test checks: -xu -gj=~ --project= --grep=~ --grep-invert=~ --workers= --reporter=/list|line|dot|json|junit|html|github|null/ --retries= --list --max-failures= --timeout= --repeat-each= --shard= --update-snapshots[=] --last-failed --forbid-only --quiet --trace= --fully-parallel --pass-with-no-tests --only-changed[=] --no-deps --ignore-snapshots
# https://docs.pytest.org/en/stable/reference/reference.html#command-line-flags, with pytest-cov, pytest-xdist, pytest-timeout, pytest-django
pytest checks: -vqsxlhV -km=~ -p=/no:[\w.-]+/ -rn= -W=/[a-z]+(:[^:.]*)*/ --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise --stepwise-skip --co --collect-only --tb= --maxfail= --durations= --durations-min= --no-header --no-summary --no-cov --exitfirst --verbose --quiet --verbosity= --cov[=] --cov-report=/(term|term-missing|html|xml|json|lcov)(:skip-covered)?/ --cov-branch --cov-fail-under= --cov-append --junitxml=> --junit-xml=> --deselect= --ignore= --ignore-glob= --import-mode= --strict-markers --strict-config --strict --disable-warnings --disable-pytest-warnings --showlocals --show-capture= --capture= --color= --code-highlight= --full-trace --runxfail --setup-show --setup-plan --fixtures --fixtures-per-test --markers --cache-show[=] --cache-clear --numprocesses= --dist= --timeout= --randomly-seed= --reruns= --snapshot-update --no-migrations --nomigrations --reuse-db --create-db --asyncio-mode= --count= --benchmark-only --benchmark-skip --benchmark-disable --hypothesis-show-statistics --hypothesis-seed= --version operands/[^@].*/
# https://docs.astral.sh/ruff/configuration/: its settings contain no code
ruff check, ruff format checks: -qvsnew -o=> --fix --no-fix --fix-only --diff --check --select= --ignore= --extend-select= --extend-ignore= --per-file-ignores= --output-format= --output-file=> --statistics --quiet --no-cache --preview --unsafe-fixes --show-fixes --exit-zero --exit-non-zero-on-fix --show-files --show-settings --force-exclude --exclude= --extend-exclude= --target-version= --line-length= --watch --isolated --stdin-filename= --color= operands/[^@].*/
ruff rule, ruff version, ruff linter reads: --all --output-format=
# https://mypy.readthedocs.io/en/stable/command_line.html and https://github.com/microsoft/pyright/blob/main/docs/command-line.md
mypy checks: -vh -pm= --package= --module= --exclude= --python-version= --platform= --follow-imports= --strict --pretty --namespace-packages --explicit-package-bases --error-summary --no-error-summary --no-incremental --no-color-output --sqlite-cache --version /--(no-)?(warn|disallow|check|allow|implicit|strict|show|hide|ignore|local|enable|disable|extra)-[a-z-]+(=[\w-]+)?/ operands/[^@].*/
pyright, basedpyright checks: -w --outputjson --stats --verbose --warnings --level= --pythonversion= --pythonplatform= --watch --skipunannotated --threads[=] --dependencies --version
# https://black.readthedocs.io, https://pycqa.github.io/isort, https://flake8.pycqa.org, https://pylint.readthedocs.io
black checks: -qvSC -ltW= --check --diff --quiet --verbose --line-length= --target-version= --fast --safe --color --no-color --exclude= --include= --extend-exclude= --force-exclude= --skip-string-normalization --preview --workers= --version
isort checks: -cqvd -lm= --check --check-only --diff --profile= --line-length= --atomic --skip= --filter-files --show-files --df --float-to-top --quiet --version
flake8 checks: -qv -j= --select= --ignore= --extend-ignore= --extend-select= --max-line-length= --max-complexity= --statistics --count --show-source --exclude= --extend-exclude= --per-file-ignores= --format=/default|pylint|quiet-\w+/ --color= --jobs= --exit-zero --benchmark --version
pylint checks: -E -desrj= -f=/text|parseable|colorized|json|json2|msvs|github/ --disable= --enable= --errors-only --output-format=/text|parseable|colorized|json|json2|msvs|github/ --reports= --score= --jobs= --fail-under= --fail-on= --max-line-length= --ignore= --ignore-patterns= --ignore-paths= --recursive= --exit-zero --py-version= --msg-template=~ --good-names= --list-msgs --help-msg= --version
coverage report, coverage html, coverage xml, coverage json, coverage lcov, coverage combine checks: -miq --show-missing --skip-covered --no-skip-covered --skip-empty --precision= --sort= --include= --omit= --fail-under= --ignore-errors --format= --quiet --keep
# https://pkg.go.dev/cmd/go: "-exec", "-toolexec", "-ldflags" and "-overlay" choose programs or files
go build, go test, go vet, go list checks: ~a ~n ~p= ~race ~msan ~asan ~cover ~covermode= ~coverpkg= ~v ~work ~x ~buildmode= ~json[=] ~mod=/mod|readonly|vendor/ ~modcacherw ~tags= ~trimpath ~buildvcs= ~gcflags=/(all=)?-[NlSm](\s-[NlSm])*/ ~o=> ~bench= ~benchmem ~benchtime= ~count= ~cpu= ~failfast ~fullpath ~fuzz= ~fuzztime= ~list= ~memprofilerate= ~parallel= ~run= ~short ~shuffle= ~skip= ~timeout= ~vet= ~coverprofile=> ~cpuprofile=> ~memprofile=> ~blockprofile=> ~mutexprofile=> ~trace=> ~outputdir=> ~f=~ ~m ~u ~e ~deps ~test ~find ~retracted ~compiled ~export operands/[^@]*/
go doc reads: ~all ~c ~cmd ~short ~src ~u
go env reads: ~json ~changed operands/GO(PATH|ROOT|OS|ARCH|MOD|WORK|VERSION|BIN|CACHE|MODCACHE|FLAGS|TOOLCHAIN|TMPDIR|EXE|HOSTOS|HOSTARCH|SUMDB|DEBUG|EXPERIMENT)|CGO_ENABLED|CC|CXX/ min1
go version reads: ~m ~v
go fmt checks: ~n ~x ~mod=
go mod tidy, go mod graph, go mod why, go mod verify checks: ~v ~x ~e ~diff ~go= ~compat= ~m ~vendor operands/[\w.\/-]+/
go mod download checks: ~x ~json max0
go tool cover reads: ~func= ~o=> needs/--?func.*/
go tool nm reads: ~n ~size ~sort= ~type
go clean local: ~testcache needs/--?testcache/ max0
gofmt, gofumpt, goimports checks: ~l ~w ~d ~s ~e ~v ~r=~ ~local= ~extra ~lang=
golangci-lint run checks: -vEDpj= --timeout= --fix --fast --fast-only --new --new-from-rev= --new-from-merge-base= --tests[=] --verbose --enable= --disable= --enable-only= --default= --disable-all --enable-all --presets= --build-tags= --concurrency= --max-issues-per-linter= --max-same-issues= --out-format=/[a-z-]+/ --color= --show-stats[=] --exclude-dirs= --issues-exit-code= --allow-parallel-runners --modules-download-mode= --no-config -v
staticcheck checks: ~checks= ~explain= ~f=/text|json|stylish|sarif|null/ ~tests ~tags= ~go= ~fail= ~show-ignored
# https://doc.rust-lang.org/cargo/commands and https://doc.rust-lang.org/rustc/tests: "--config" and "-Z" set anything
cargo build, cargo check, cargo test, cargo bench, cargo clippy, cargo doc, cargo fix checks: -qvr -pFj= --package= --workspace --all --exclude= --lib --bins --bin= --examples --example= --tests --test= --benches --bench= --all-targets --all-features --no-default-features --features= --release --profile= --jobs= --keep-going --target= --message-format= --no-run --no-fail-fast --doc --no-deps --document-private-items --manifest-path= --ignore-rust-version --fix --allow-dirty --allow-staged --quiet --verbose --locked --offline --frozen --color= -- -q -DWAF=/[\w:-]+/ --nocapture --no-capture --test-threads= --ignored --include-ignored --exact --skip= --list --show-output --quiet --format= --color= --report-time --shuffle
cargo nextest run, cargo nextest list checks: -qvr -pFjE=~ --package= --workspace --all --exclude= --lib --bin= --test= --all-targets --all-features --features= --release --no-fail-fast --retries= --test-threads= --status-level= --run-ignored= --profile= --nocapture --no-capture --failure-output= --success-output= --locked --offline --filter-expr=~
cargo fmt checks: -qvl -p= --all --check --package= --manifest-path= --message-format= -- --check -l --edition=
rustfmt checks: -qvl --check --edition= --emit=/stdout|files/
cargo tree, cargo metadata, cargo pkgid, cargo locate-project, cargo version reads: -qvd -ipeFf= --invert= --edges= --duplicates --depth= --prefix= --no-dedupe --charset= --format=~ --target= --package= --workspace --exclude= --all-features --features= --no-default-features --prune= --locked --offline --frozen --manifest-path= --format-version= --no-deps --filter-platform= --message-format= --color=
# https://maven.apache.org/ref/current/maven-embedder/cli.html and https://docs.gradle.org/current/userguide/command_line_interface.html
mvn checks: -qBoUXeN -T= ~f=/([\w.-]+\/)*pom[.]xml/ ~pl= ~rf= ~am ~amd ~ntp ~fae ~ff ~fn -P=/[\w,!-]+/ /-D(skipTests|skipITs|test|it[.]test|failIfNoTests|maven[.]test[.]skip|style[.]color|checkstyle[.]skip|surefire[.]\w+|groups|excludedGroups)(=[^\/]*)?/ --quiet --batch-mode --offline --file=/([\w.-]+\/)*pom[.]xml/ --projects= --also-make --also-make-dependents --fail-at-end --fail-fast --no-transfer-progress --threads= operands/clean|validate|compile|test-compile|test|package|verify|integration-test|dependency:(tree|analyze|list)|checkstyle:check|spotless:(check|apply)|spotbugs:check|enforcer:enforce|versions:display-dependency-updates|help:effective-pom/
gradle checks: -qisS -xp= --project-dir= --tests=~ --exclude-task= --console= --info --stacktrace --quiet --no-daemon --offline --continue --rerun-tasks --parallel --no-parallel --build-cache --no-build-cache --configuration= --dependency= --warning-mode= --all --no-configuration-cache --configuration-cache operands/:?([\w-]+:)*(clean|test|build|check|assemble|classes|testClasses|jar|bootJar|javadoc|lint\w*|compile\w*(Java|Kotlin)|test(Debug|Release)UnitTest|assemble(Debug|Release)|integrationTest|spotlessCheck|spotlessApply|ktlintCheck|ktlintFormat|detekt|checkstyle(Main|Test)|dependencies|dependencyInsight|tasks|projects|help|javaToolchains)/
# https://learn.microsoft.com/dotnet/core/tools and others
dotnet build, dotnet test, dotnet format, dotnet list checks: -cvf=/[\w.-]+/ --configuration= --no-restore --no-build --filter=~ --verbosity= --nologo --framework= --verify-no-changes --include-transitive --outdated --collect=~ operands/[^@].*/
rspec checks: -b -e=~ -t= -f=/progress|documentation|json|failures|[pdhjf]/ --example=~ --format=/progress|documentation|json|failures|[pdhjf]/ --only-failures --next-failure --fail-fast[=] --seed= --order= --tag= --backtrace --dry-run --profile[=] --no-color --color
rubocop checks: -aALDP --only= --except= --format=/[a-z]+/ --parallel --display-cop-names --autocorrect --autocorrect-all --fail-level= --no-color
phpunit checks: -v --filter=~ --group= --exclude-group= --testsuite= --testdox --stop-on-failure --stop-on-error --no-coverage --colors[=] --list-tests --display-deprecations --display-warnings
phpstan analyse checks: -lq= --level= --no-progress --error-format=/\w+/ --memory-limit= --debug
biome check, biome lint, biome format, biome ci checks: --write --fix --unsafe --staged --changed --since= --files-ignore-unknown= --max-diagnostics= --diagnostic-level= --error-on-warnings --reporter=/\w+/ --colors= --skip= --only= --no-errors-on-unmatched --verbose
deno fmt, deno lint checks: -q --check --ext= --ignore= --no-semicolons --single-quote --use-tabs --line-width= --indent-width= --prose-wrap= --fix --rules --json --compact --quiet
# Bundlers run the project's configuration. Options that name other configuration, code or a folder to empty are not listed.
# https://vite.dev/guide/cli, https://webpack.js.org/api/cli, https://rollupjs.org/command-line-interface, https://esbuild.github.io/api, https://tsup.egoist.dev
vite build, vite optimize checks: -wh -d[=] -mlf= --mode= --logLevel= --filter= --base=~ --target=/[\w.,]+/ --sourcemap[=]/true|false|inline|hidden/ --minify[=]/true|false|terser|esbuild/ --assetsInlineLimit= --manifest --ssrManifest --ssr --watch --clearScreen --no-clearScreen --debug[=] --profile --app --force --help
vite, vite dev, vite serve, vite preview checks: -h -d[=] -mlf= --mode= --logLevel= --filter= --base=~ --port= --strictPort --cors --force --clearScreen --no-clearScreen --debug[=] --profile --help --version
webpack, webpack build checks: -w --watch --mode=/development|production|none/ --node-env=/\w+/ --progress[=] --stats[=]/[\w-]+/ --devtool=/[\w-]+/ --no-devtool --target=/[\w.]+/ --bail --profile --fail-on-warnings --color --no-color --version max0
rollup checks: -cmw -f=/\w+/ --config --watch --sourcemap[=]/inline|hidden/ --format=/\w+/ --silent --failAfterWarnings --logLevel=/\w+/ --no-strict --perf --version max0
esbuild checks: --bundle --minify --minify-whitespace --minify-identifiers --minify-syntax --sourcemap[=]/inline|external|linked|both/ --watch[=]/forever/ --format=/iife|cjs|esm/ --platform=/browser|node|neutral/ --target=/[\w.,]+/ --outfile=> --metafile=> --log-level=/\w+/ --tree-shaking=/true|false/ --analyze[=]/verbose/ --keep-names --legal-comments=/\w+/ --packages=/external|bundle/ --charset=/\w+/ --jsx=/\w+/ /--(external|loader|define|drop|pure):[^\/]*/ --color= --version
tsup checks: --format=/[\w,]+/ --dts --dts-only --minify[=]/terser/ --sourcemap[=]/inline/ --clean --splitting --no-splitting --treeshake --watch --silent --target=/[\w.,]+/ --platform=/\w+/ --shims --metafile
next build, next lint, next info, next typegen checks: -dh --debug --no-lint --lint --profile --no-mangling --turbo --turbopack --webpack --dir= --ext= --quiet --max-warnings= --fix --strict --no-cache --verbose
astro build, astro check, astro sync checks: --mode= --verbose --silent --watch --minimumSeverity= --minimumFailingSeverity= --noSync --force
nuxt build, nuxt prepare, nuxt typecheck, nuxi build, nuxi prepare, nuxi typecheck, svelte-kit sync checks: --logLevel= max0
svelte-check checks: --output=/[\w-]+/ --threshold= --fail-on-warnings --watch --no-tsconfig --tsconfig= --ignore= --workspace= --compiler-warnings=~ --diagnostic-sources=
ng build, ng test, ng lint checks: -c= --configuration= --watch[=] --no-watch --code-coverage --browsers=/[\w,]+/ --source-map[=] --include= --progress[=] --no-progress --fix --quiet --silent --max-warnings= --format=/json|stylish|compact/
# https://stylelint.io/user-guide/cli, https://oxc.rs/docs/guide/usage/linter/cli, https://knip.dev/reference/cli, https://github.com/depcheck/depcheck, https://github.com/pahen/madge, https://cspell.org/docs/getting-started
stylelint checks: -q -f=/json|string|verbose|compact|unix|tap|github/ --fix[=]/lax|strict/ --quiet --max-warnings= --ignore-path= --ignore-pattern=~ --allow-empty-input --cache --no-cache --formatter=/json|string|verbose|compact|unix|tap|github/ --color --no-color --report-needless-disables --report-invalid-scope-disables --report-descriptionless-disables
oxlint checks: -f=/\w+/ -DWA=/[\w\/-]+/ --deny=/[\w\/-]+/ --warn=/[\w\/-]+/ --allow=/[\w\/-]+/ --fix --quiet --deny-warnings --max-warnings= --format=/\w+/ /--[a-z]+-plugin/ --tsconfig= --ignore-pattern=~ --threads= --rules
knip checks: -h --production --strict --include= --exclude= --reporter=/\w+/ --no-progress --dependencies --exports --files --max-issues= --no-exit-code --workspace= --cache --include-entry-exports
depcheck checks: --json --oneline --ignores=~ --ignore-dirs= --ignore-patterns=~ --skip-missing[=] max1
madge checks: -csjlw -bd= -x=~ --circular --basedir= --extensions= --ts-config= --json --summary --orphans --leaves --depends= --exclude=~ --warning --no-color --no-count --no-spinner
cspell, cspell lint checks: -u -e=~ --no-progress --no-summary --words-only --unique --locale= --show-suggestions --show-context --dot --gitignore --quiet --exclude=~ --no-must-find-files
typos, codespell checks: -w -q= --write-changes --format=/\w+/ --exclude=~ --diff --locale= -S=~ -L=~ --skip=~ --ignore-words-list=~ --quiet-level= --count
# https://mochajs.org/#command-line-usage, https://github.com/avajs/ava/blob/main/docs/05-command-line.md, https://nodejs.org/api/cli.html, https://docs.cypress.io/app/references/command-line
mocha checks: -bwcC -gf=~ -t= -u=/bdd|tdd|qunit|exports/ -R=/spec|dot|min|list|tap|json|nyan|landing|progress/ --grep=~ --fgrep=~ --invert --bail --timeout= --ui=/bdd|tdd|qunit|exports/ --reporter=/spec|dot|min|list|tap|json|nyan|landing|progress/ --retries= --slow= --recursive --ignore= --exclude= --extension= --parallel --jobs= --watch --forbid-only --forbid-pending --check-leaks --exit --full-trace --sort --color --no-color --diff --no-diff --dry-run
ava checks: -vstuw -m=~ -Tc= --match=~ --verbose --timeout= --serial --fail-fast --tap --update-snapshots --concurrency= --watch --color --no-color
node --test checks: --test-name-pattern=~ --test-skip-pattern=~ --test-only --test-reporter=/spec|tap|dot|junit|lcov/ --test-concurrency= --test-timeout= --test-shard= --test-force-exit --test-isolation=/none|process/ --experimental-test-coverage --test-coverage-include= --test-coverage-exclude= --test-update-snapshots --watch --no-warnings --experimental-strip-types --enable-source-maps
cypress run checks: -q -b=/\w+/ -s= --browser=/\w+/ --spec= --headless --headed --quiet --e2e --component max0
bats checks: -cprtT -f=~ -j= --filter=~ --jobs= --tap --count --recursive --timing --pretty operands/([\w.-]+\/)*(tests?|specs?|e2e)(\/[\w.\/-]*)?|.*[.]bats/
# https://bandit.readthedocs.io, https://github.com/jendrikseipp/vulture, https://radon.readthedocs.io, https://docs.sqlfluff.com/en/stable/reference/cli.html
bandit checks: -rqvli -fstx= -o=> --recursive --skip= --tests= --exclude= --severity-level= --confidence-level= --format=/\w+/ --quiet
vulture checks: --min-confidence= --exclude=~ --ignore-names=~ --ignore-decorators=~ --sort-by-size
radon cc, radon mi, radon raw, radon hal reads: -asj -xnoei= --min= --max= --average --show-complexity --total-average --order= --json --exclude=~ --ignore=~
sqlfluff lint checks: -dref= -n --dialect=/\w+/ --rules=/[\w.,]+/ --exclude-rules=/[\w.,]+/ --format=/[\w-]+/ --nofail --processes=
# https://pkg.go.dev/golang.org/x/vuln/cmd/govulncheck, https://github.com/mvdan/sh, https://clang.llvm.org/docs/ClangFormat.html, https://cppcheck.sourceforge.io, https://buf.build/docs/reference/cli
govulncheck checks: ~json ~test ~tags= ~show= ~mode=/source/ ~format=/\w+/
shfmt checks: ~l ~d ~w ~s ~f ~ci ~bn ~sr ~kp ~fn ~mn ~i= ~ln=/\w+/ --list --diff --write --simplify --indent= --language-dialect=/\w+/
clang-format local: -in --dry-run ~style=/file|\w+/ ~Werror ~verbose ~sort-includes[=] ~fallback-style=/\w+/
cppcheck reads: -qvf -jID= --enable=/[\w,]+/ --std=/[\w+]+/ --inconclusive --suppress=~ --error-exitcode= --force --quiet --language=/[\w+]+/ --max-configs= --inline-suppr --check-level=/\w+/
buf lint, buf format, buf breaking checks: -dw --diff --write --exit-code --error-format=/\w+/ --path= --exclude-path= --against=/[.]git(#[\w=,.\/-]*)?/ max1
cargo machete, cargo deny check, cargo audit, cargo outdated checks: -qR -d= --quiet --json --workspace --all-features --deny= --ignore= --no-fetch --depth= --root-deps-only --color= --locked --offline operands/licenses|bans|advisories|sources/
# https://hexdocs.pm/mix, https://docs.swift.org/swiftpm/documentation/packagemanagerdocs, https://dart.dev/tools, https://docs.flutter.dev/reference/flutter-cli
mix test, mix compile, mix credo checks: --trace --only= --exclude= --include= --stale --failed --seed= --max-failures= --cover --slowest= --warnings-as-errors --force --color --no-color --timeout= --strict --all --format=/\w+/
mix format local: --check-formatted --dry-run
# Native builds. An agent needs approval to change their build files. Targets that are not listed here can install or publish.
cmake checks: -SG= -B=^ -t=/all|tests?|check|clean|lint|format/ -j[=] -D=/(CMAKE_BUILD_TYPE|CMAKE_EXPORT_COMPILE_COMMANDS|BUILD_TESTING|BUILD_SHARED_LIBS)(:\w+)?=\w+/ --build=^ --target=/all|tests?|check|clean|lint|format/ --config= --parallel[=] --verbose --clean-first --fresh --list-presets operands/[.]{1,2}(\/[\w.-]+)*\/?|\d+/
ctest checks: -VQNF -j[=] -RELC=~ --test-dir=^ --output-on-failure --parallel[=] --rerun-failed --stop-on-failure --verbose --timeout= --tests-regex=~ --exclude-regex=~ --build-config=~ max0
ninja checks: -vnd -C=^ -jkl= --verbose --quiet operands/all|tests?|check|clean|lint|format/
meson test checks: -vq -C=^ -j= --suite=~ --list --no-rebuild --print-errorlogs --verbose --quiet --num-processes= --timeout-multiplier= operands/[\w-]+/
meson compile checks: -v -C=^ -j= --clean --verbose operands/all|tests?|check|clean|lint|format/
rake checks: -tq --trace --quiet min1 operands/(test|spec|lint|rubocop)(:(?!\w*(deploy|release|push|publish|prod))\w+)?/
zig build checks: --summary= -j= operands/test/
swift build, swift test checks: -vq -c= --configuration= --filter=~ --skip=~ --parallel --enable-code-coverage --target= --product= --build-tests --verbose --quiet max0
dart analyze, dart test, flutter analyze, flutter test checks: -ntx=~ -jr= --fatal-infos --fatal-warnings --no-fatal-infos --no-fatal-warnings --name=~ --plain-name=~ --tags=~ --exclude-tags=~ --concurrency= --reporter=/\w+/ --no-pub --update-goldens --coverage
dart format local: -o=/show|json|none|write/ -l= --output=/show|json|none|write/ --line-length= --set-exit-if-changed
# https://github.com/yannh/kubeconform, https://docs.kubelinter.io, https://github.com/terraform-linters/tflint, https://docs.stoplight.io/docs/spectral, https://github.com/sharkdp/bat
kubeconform, kube-linter lint reads: ~strict ~summary ~verbose ~ignore-missing-schemas ~kubernetes-version=/[\w.]+/ ~output=/\w+/ ~format=/\w+/ ~skip= ~n= ~reject=
tflint checks: --recursive --format=/\w+/ --minimum-failure-severity=/\w+/ --no-color --chdir= --filter= --disable-rule= --enable-rule= --only= max0
spectral lint checks: -qvD -f= --format=/[\w-]+/ --fail-severity=/\w+/ --display-only-failures --quiet --verbose
bat, batcat reads: -pnA -rlHm= --plain --number --show-all --paging=/never/ --style=/[\w,+-]+/ --color= --language= --line-range= --highlight-line= --theme= --wrap= --tabs= --decorations=
git submodule status, git notes list, git notes show, git sparse-checkout list reads: --recursive --cached
git stash show reads: -p --stat --patch --name-only --name-status --numstat max1
git format-patch reads: --stdout --cover-letter --signoff needs/--stdout/
`;
