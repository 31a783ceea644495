/**
 * The text editor of policies. Only this module imports CodeMirror, so that the bundler puts CodeMirror into a separate
 * chunk, which a page loads when needed.
 */
import {
  autocompletion,
  type CompletionContext,
  completionKeymap,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { yaml } from "@codemirror/lang-yaml";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Completion } from "./completions.ts";

/** An error or a warning at a position of the text. If `line` is null, the editor marks the first line. */
export interface EditorMark {
  severity: "error" | "warning";
  line: number | null;
  column: number | null;
  detail: string;
}

export interface Editor {
  setMarks(marks: readonly EditorMark[]): void;
  /** Focuses the editor at a position. Lines and columns start at 1. */
  goTo(line: number, column: number | null): void;
  destroy(): void;
}

interface Options {
  /** Accessible name. */
  label: string;
  text: string;
  /** Called with the new text, byte for byte. */
  onChange(text: string): void;
  complete(text: string, position: number): Completion | null;
}

/**
 * Creates an editor within a shadow root of the element, where CodeMirror adopts its style sheets. In the document,
 * CodeMirror would insert a `style` element, which the page's Content-Security-Policy blocks.
 */
export function createEditor(parent: HTMLElement, { label, text, onChange, complete }: Options): Editor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const separator = lineSeparatorOf(text);
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorState.lineSeparator.of(separator),
        EditorView.clipboardInputFilter.of((pasted) => pasted.replaceAll(/\r\n?|\n/g, separator)),
        EditorView.contentAttributes.of({
          "aria-label": label,
          tabindex: "0",
          spellcheck: "false",
          autocapitalize: "off",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.sliceDoc());
        }),
        lineNumbers(),
        highlightSpecialChars(),
        history(),
        yaml(),
        syntaxHighlighting(HIGHLIGHTING),
        lintGutter(),
        search({ top: true }),
        highlightSelectionMatches(),
        autocompletion({ override: [(context) => completionResult(context, complete)], icons: false }),
        keymap.of([...completionKeymap, ...searchKeymap, ...historyKeymap, ...lintKeymap, ...defaultKeymap]),
        THEME,
      ],
    }),
  });
  return {
    setMarks: (marks) =>
      view.dispatch(
        setDiagnostics(
          view.state,
          marks.map((mark) => toDiagnostic(view.state, mark)),
        ),
      ),
    goTo(line, column) {
      const anchor = offsetOf(view.state, line, column);
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}

/**
 * Returns the line break of a document. If a document mixes line breaks, its carriage returns stay visible characters,
 * so that the text is saved unchanged.
 */
function lineSeparatorOf(text: string): "\n" | "\r\n" {
  return text.includes("\r\n") && !/(?:^|[^\r])\n|\r(?!\n)/.test(text) ? "\r\n" : "\n";
}

function completionResult(context: CompletionContext, complete: Options["complete"]): CompletionResult | null {
  // A line break has the length 1 in the document, even if it is two characters in the text.
  const found = complete(context.state.doc.toString(), context.pos);
  if (found === null || (!context.explicit && found.from === context.pos)) return null;
  return { from: found.from, options: found.suggestions, validFor: /^[\w.-]*$/ };
}

function offsetOf({ doc }: EditorState, number: number, column: number | null): number {
  const line = doc.line(Math.min(Math.max(number, 1), doc.lines));
  return line.from + Math.min((column ?? 1) - 1, line.length);
}

/** Returns the diagnostic that marks the word at the position, or the rest of the line if there is no word. */
function toDiagnostic(state: EditorState, { severity, line, column, detail }: EditorMark): Diagnostic {
  if (line === null) return { from: 0, to: state.doc.line(1).to, severity, message: detail };
  const from = offsetOf(state, line, column);
  const { to, text, from: start } = state.doc.lineAt(from);
  const word = /^[^\s:,[\]{}]+/.exec(text.slice(from - start))?.[0].length ?? 0;
  return { from, to: word > 0 ? from + word : to, severity, message: detail };
}

const HIGHLIGHTING = HighlightStyle.define([
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.separator, tags.punctuation, tags.squareBracket, tags.brace], color: "var(--quiet)" },
]);

const THEME = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--card)", fontSize: "var(--small)" },
  // The element around the editor has the outline, because the gutters would cover it here.
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-specialChar": { color: "var(--bad)" },
  ".cm-selectionMatch": { backgroundColor: "var(--accent-ground)" },
  ".cm-searchMatch": { backgroundColor: "var(--busy-ground)", outline: "1px solid var(--busy-line)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-textfield": { backgroundColor: "var(--card)", borderColor: "var(--field)", color: "var(--text)" },
  ".cm-button": {
    backgroundImage: "none",
    backgroundColor: "var(--card)",
    borderColor: "var(--line)",
    color: "var(--text)",
  },
  ".cm-tooltip": { backgroundColor: "var(--card)", border: "1px solid var(--line)", color: "var(--text)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-solid)",
    color: "var(--on-accent)",
  },
  ".cm-completionDetail": { color: "inherit", opacity: "1", fontStyle: "normal", marginLeft: "12px" },
  ".cm-completionInfo": { maxWidth: "24rem", padding: "8px" },
});
