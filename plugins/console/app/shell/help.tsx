/** The list of keyboard shortcuts: those of the displayed page, then those of every page. */
import { areShortcutsOn, listShortcuts, setShortcutsOn, type Shortcut } from "../core/shortcuts.ts";
import { Dialog } from "../ui/dialog.tsx";

const TEXTS = {
  title: "Keyboard shortcuts",
  page: "On this page",
  none: "This page has no keys of its own.",
  everywhere: "On every page",
  letters: "Single-letter shortcuts",
} as const;

/** Keys that the browser's dialogs and the command palette handle. */
const OTHERS: readonly Shortcut[] = [
  { keys: "Ctrl + K", text: "Find pages, agents, people, actions, policies and rules, and run commands" },
  { keys: "Ctrl + Enter", text: "Send the form of a dialog" },
  { keys: "Esc", text: "Close a dialog" },
];

export function Help({ onClose }: { onClose(): void }) {
  const own = listShortcuts("page");
  return (
    <Dialog title={TEXTS.title} onClose={onClose}>
      <h3>{TEXTS.page}</h3>
      {own.length === 0 ? <p class="quiet">{TEXTS.none}</p> : <Keys label={TEXTS.page} shortcuts={own} />}
      <h3>{TEXTS.everywhere}</h3>
      <Keys label={TEXTS.everywhere} shortcuts={[...listShortcuts("everywhere"), ...OTHERS]} />
      <label class="check">
        <input
          type="checkbox"
          checked={areShortcutsOn()}
          onChange={(event) => setShortcutsOn(event.currentTarget.checked)}
        />{" "}
        {TEXTS.letters}
      </label>
      <div class="row end">
        <button type="button" data-focus="" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Keys({ label, shortcuts }: { label: string; shortcuts: readonly Shortcut[] }) {
  return (
    <table class="keys" aria-label={label}>
      <tbody>
        {shortcuts.map(({ keys, text }) => (
          <tr key={keys}>
            <td>
              <kbd>{keys}</kbd>
            </td>
            <td>{text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
