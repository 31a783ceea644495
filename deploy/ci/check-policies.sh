#!/bin/sh
# Checks a folder of policies in any CI system: files, tests and their coverage, changes since a base revision, and past
# decisions that would change. Writes a report in Markdown, and posts it if configured.
# deploy/ci/README.md lists what can be set. Needs git, Node and what "npm ci" installed; curl to post.
#
# Exit codes: 0 the policies are good, 1 a check failed or could not run, 2 wrong usage

# A trace would print tokens.
set +x
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
folder=${1:-./policies}
out=${ASSENT_OUT:-./policy-report}
base=${ASSENT_BASE:-}
since=${ASSENT_SINCE:-7d}
least=${ASSENT_MIN_COVERAGE:-}
[ $# -le 1 ] || { echo "usage: check-policies.sh [FOLDER]" >&2; exit 2; }

# Removed from the environment, so that only the program that needs a token gets it.
api_key=${ASSENT_API_KEY:-}
github_token=${GITHUB_TOKEN:-}
gitlab_token=${GITLAB_TOKEN:-}
unset ASSENT_API_KEY GITHUB_TOKEN GITLAB_TOKEN GH_TOKEN CI_JOB_TOKEN

policy() {
  if [ -n "${ASSENT_BIN:-}" ]; then "$ASSENT_BIN" policy "$@"; else node "$here/../../bin/assent.mjs" policy "$@"; fi
}

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$out" || exit 1
report=$out/report.md
: > "$report" || exit 1
status=0

say() { printf '%s\n' "$@" >> "$report"; }
# Indentation by four spaces makes a code block that its content cannot end.
block() { say ""; sed 's/^/    /' "$1" >> "$report"; say ""; }

# Default base revision: the variables of GitHub and GitLab.
[ -n "$base" ] || base=${CI_MERGE_REQUEST_DIFF_BASE_SHA:-}

name=$(printf '%s' "$folder" | LC_ALL=C tr -cd 'A-Za-z0-9._/-')
marker="<!-- assent policies $name -->"
say "$marker" "## Policies in \`$name\`"

recursive=
[ "${ASSENT_RECURSIVE:-}" != 1 ] || recursive=--recursive

good=1
policy check $recursive --format sarif -- "$folder" > "$out/policies.sarif" 2> "$tmp/err" || good=0
policy test $recursive ${least:+--min-coverage "$least"} --format junit -- "$folder" > "$out/policies.xml" 2> "$tmp/err"
if [ $good = 0 ]; then
  status=1
  policy check $recursive -- "$folder" > "$tmp/text" 2>&1
  say "" "### :x: The files have faults"
  block "$tmp/text"
fi

if [ $good = 1 ]; then
  policy test $recursive --coverage ${least:+--min-coverage "$least"} -- "$folder" > "$tmp/text" 2>&1
  code=$?
  if [ $code = 0 ]; then say "" "### :white_check_mark: The tests pass"
  elif [ $code = 2 ]; then cat "$tmp/text" >&2; exit 2
  else status=1; say "" "### :x: The tests do not pass, or reach too few rules"
  fi
  grep -v '^ok ' "$tmp/text" > "$tmp/told"
  block "$tmp/told"
fi

if [ $good = 1 ] && [ -n "$base" ]; then
  say ""
  if policy diff $recursive --format markdown -- "$base" "$folder" > "$tmp/diff" 2> "$tmp/err"; then cat "$tmp/diff" >> "$report"
  else say "### Not compared with the base revision"; block "$tmp/err"
  fi
fi

against=
if [ "${ASSENT_BACKTEST:-}" = store ]; then against=store
elif [ -n "${ASSENT_URL:-}" ] && [ -n "$api_key" ]; then against=$ASSENT_URL
fi
if [ $good = 1 ] && [ $status = 0 ] && [ -n "$against" ]; then
  fail=
  [ "${ASSENT_FAIL_ON_FLIPS:-}" != 1 ] || fail=--fail-on-flips
  say ""
  (
    ASSENT_API_KEY=$api_key
    export ASSENT_API_KEY
    policy backtest $recursive --against "$against" --since "$since" --format markdown $fail -- "$folder"
  ) > "$tmp/flips" 2> "$tmp/err" || status=1
  if [ -s "$tmp/flips" ]; then cat "$tmp/flips" >> "$report"
  else say "### :x: The backtest could not be made"; block "$tmp/err"
  fi
fi

cat "$report"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$report" >> "$GITHUB_STEP_SUMMARY"

# --- Posting. A failure here is reported, and does not change the result.

warn() { echo "check-policies: the report was not posted: $1" >&2; }

# Pass the token by standard input, because every process on the machine can read arguments.
# call TOKEN_HEADER METHOD URL [BODY_FILE]; the answer is in $tmp/answer
call() {
  case $3 in
    https://*|http://127.0.0.1[:/]*|http://localhost[:/]*) ;;
    *) warn "$2 needs an https address"; return 1 ;;
  esac
  case $1 in *[!A-Za-z0-9:._=\ -]*) warn "the token holds characters that no token has"; return 1 ;; esac
  code=$(printf 'header = "%s"\n' "$1" | curl -K - -sS --max-time 30 -X "$2" -H 'Content-Type: application/json' -H 'Accept: application/json' \
    ${4:+--data-binary "@$4"} -o "$tmp/answer" -w '%{http_code}' "$3" 2> "$tmp/err") || { warn "$2 failed: $(cat "$tmp/err")"; return 1; }
  case $code in 2??) ;; *) warn "$2 was answered with $code"; return 1 ;; esac
}

# own MEMBER VALUE: id of our own comment in the answer. Others can write the marker too.
own() {
  node -e '
    const [file, marker, member, value] = process.argv.slice(1);
    const author = (comment) => String((comment.user ?? comment.author ?? {})[member]);
    const found = JSON.parse(require("fs").readFileSync(file, "utf8")).find((comment) => author(comment) === value && String(comment.body).startsWith(marker));
    if (found && Number.isSafeInteger(found.id)) process.stdout.write(String(found.id));
  ' "$tmp/answer" "$marker" "$1" "$2" 2> /dev/null || { warn "the list of comments could not be read"; return 1; }
}

body() {
  node -e '
    const text = require("fs").readFileSync(process.argv[1], "utf8");
    const body = text.length <= 60000 ? text : `${text.slice(0, 60000).replace(/[\ud800-\udbff]$/, "").replace(/\n[^\n]*$/, "")}\n\nThe report is longer; the job has all of it.`;
    process.stdout.write(JSON.stringify({ body }));
  ' "$report" > "$tmp/body"
}

post_github() {
  comments="${GITHUB_API_URL:-https://api.github.com}/repos/$GITHUB_REPOSITORY/issues"
  call "Authorization: Bearer $github_token" GET "$comments/$ASSENT_PR/comments?per_page=100" || return
  id=$(own login "${ASSENT_COMMENT_AUTHOR:-github-actions[bot]}") && body || return
  if [ -n "$id" ]; then call "Authorization: Bearer $github_token" PATCH "$comments/comments/$id" "$tmp/body"
  else call "Authorization: Bearer $github_token" POST "$comments/$ASSENT_PR/comments" "$tmp/body"
  fi
}

post_gitlab() {
  call "PRIVATE-TOKEN: $gitlab_token" GET "$CI_API_V4_URL/user" || return
  me=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).id' "$tmp/answer" 2> /dev/null) || { warn "the account of the token could not be read"; return; }
  notes="$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
  call "PRIVATE-TOKEN: $gitlab_token" GET "$notes?per_page=100&sort=desc" || return
  id=$(own id "$me") && body || return
  if [ -n "$id" ]; then call "PRIVATE-TOKEN: $gitlab_token" PUT "$notes/$id" "$tmp/body"
  else call "PRIVATE-TOKEN: $gitlab_token" POST "$notes" "$tmp/body"
  fi
}

if [ -n "$github_token" ] && [ -n "${GITHUB_REPOSITORY:-}" ] && [ -n "${ASSENT_PR:-}" ]; then post_github
elif [ -n "$gitlab_token" ] && [ -n "${CI_API_V4_URL:-}" ] && [ -n "${CI_PROJECT_ID:-}" ] && [ -n "${CI_MERGE_REQUEST_IID:-}" ]; then post_gitlab
fi

exit $status
