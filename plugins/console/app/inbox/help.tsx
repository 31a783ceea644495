/** The list of keyboard shortcuts. */
import { Dialog } from "../ui/dialog.tsx";

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["j / k", "Next, previous request"],
  ["a / d", "Approve, deny: the open request, or the selected ones if any are selected"],
  ["u", "Undo the last vote, within five seconds"],
  ["Ctrl + Enter", "Confirm a vote on a selection or on a critical request"],
  ["Esc", "Leave the reason"],
  ["x", "Select the request"],
  ["Shift + click", "Select a range"],
  ["/", "Search all pending requests"],
  ["Ctrl + K", "Find pages, agents, people, actions, policies and rules, and run commands"],
  ["?", "Show this list"],
];

export function Help({ isOn, setOn, onClose }: { isOn: boolean; setOn(isOn: boolean): void; onClose(): void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <table class="keys">
        <tbody>
          {SHORTCUTS.map(([keys, meaning]) => (
            <tr key={keys}>
              <td>
                <kbd>{keys}</kbd>
              </td>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <label class="check">
        <input type="checkbox" checked={isOn} onChange={(event) => setOn(event.currentTarget.checked)} /> Single-letter
        shortcuts
      </label>
      <div class="row end">
        <button type="button" data-focus="" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
