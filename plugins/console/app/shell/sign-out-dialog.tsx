/** The dialog before a sign-out that discards drafts. */
import { listPageDrafts } from "../core/page-drafts.ts";
import { Dialog } from "../ui/dialog.tsx";
import { MarkedValue } from "../ui/elements.tsx";

/** Asks for confirmation before a sign-out discards drafts, which exist only in the tab's storage. */
export function SignOutDialog({ onClose, onSignOut }: { onClose(): void; onSignOut(): void }) {
  return (
    <Dialog title="Sign out and discard drafts?" onClose={onClose}>
      <p>These drafts are not saved:</p>
      <ul>
        {listPageDrafts().map((title) => (
          <li key={title}>
            <MarkedValue value={title} />
          </li>
        ))}
      </ul>
      <div class="row end">
        <button type="button" class="danger" onClick={onSignOut}>
          Sign out and discard
        </button>
        <button type="button" data-focus onClick={onClose}>
          Stay signed in
        </button>
      </div>
    </Dialog>
  );
}
