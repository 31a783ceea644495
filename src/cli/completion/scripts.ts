/** Completion scripts for bash, zsh and fish. */
import type { WordList } from "./words.ts";

/** Returns the script for bash. */
export function bashScript(lists: readonly WordList[]): string {
  const cases = lists.map(
    ({ path, words }) => `    ${quote(path.join(" "))}) words=${quote(words.map(({ text }) => text).join(" "))} ;;`,
  );
  return `# Completion of assent for bash: source <(assent completion bash)
_assent() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words=""
  [ "$COMP_CWORD" -gt 1 ] && path="\${COMP_WORDS[1]}"
  if [ "$COMP_CWORD" -gt 2 ]; then
    case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
      ${subcommands(lists)}) path="\${COMP_WORDS[1]} \${COMP_WORDS[2]}" ;;
    esac
  fi
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _assent assent
`;
}

/** Returns the script for zsh. */
export function zshScript(lists: readonly WordList[]): string {
  const cases = lists.map(({ path, words }) => {
    const choices = words.map(({ text, summary }) =>
      quote(`${text.replaceAll(":", "\\:")}${summary === "" ? "" : `:${summary}`}`),
    );
    return `    ${quote(path.join(" "))}) choices=(${choices.join(" ")}) ;;`;
  });
  return `#compdef assent
# Completion of assent for zsh: source <(assent completion zsh)
_assent() {
  local command_path="" choices
  (( CURRENT > 2 )) && command_path="\${words[2]}"
  if (( CURRENT > 3 )); then
    case "\${words[2]} \${words[3]}" in
      ${subcommands(lists)}) command_path="\${words[2]} \${words[3]}" ;;
    esac
  fi
  case "$command_path" in
${cases.join("\n")}
  esac
  _describe 'assent' choices
  _files
}
if [ "\${funcstack[1]}" = _assent ]; then _assent "$@"; else compdef _assent assent; fi
`;
}

/** Returns the script for fish. */
export function fishScript(lists: readonly WordList[]): string {
  const lines = lists.flatMap(({ path, words }) => {
    const condition =
      path.length === 0
        ? "__fish_use_subcommand"
        : path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
    return words.map(({ text, summary }) => {
      const word = text.startsWith("--") ? `-l ${text.slice(2)}` : `-a ${text}`;
      return `complete -c assent -n ${quote(condition)} ${word}${summary === "" ? "" : ` -d ${fishQuote(summary)}`}`;
    });
  });
  return `# Completion of assent for fish: assent completion fish | source\n${lines.join("\n")}\n`;
}

/** Returns the paths of all subcommands as a pattern for the shell's `case`. */
function subcommands(lists: readonly WordList[]): string {
  return lists
    .filter(({ path }) => path.length === 2)
    .map(({ path }) => quote(path.join(" ")))
    .join("|");
}

/** Returns a word that bash and zsh read literally. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishQuote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
