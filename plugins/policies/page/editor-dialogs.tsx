/** The dialogs of the editor, which ask for confirmation before changes are discarded or a policy becomes active. */
import { Dialog, Panels } from "../../console/app/kit.ts";
import { EDITOR_TEXTS } from "./strings.ts";
import { renderShadowYaml } from "./versions.ts";

export function DiscardDialog({ onClose, onDiscard }: { onClose(): void; onDiscard(): void }) {
  return (
    <Dialog title={EDITOR_TEXTS.discardTitle} onClose={onClose}>
      <p>{EDITOR_TEXTS.discardText}</p>
      <div class="row end">
        <button type="button" class="danger" onClick={onDiscard}>
          {EDITOR_TEXTS.discard}
        </button>
        <button type="button" data-focus onClick={onClose}>
          {EDITOR_TEXTS.keepEditing}
        </button>
      </div>
    </Dialog>
  );
}

interface ActivateProps {
  yaml: string;
  onClose(): void;
  onActivate(yaml: string): void;
  /**
   * Called with the error of a request. Returns true if the editor displays the error, so that this component does not.
   */
  onRefused: (error: unknown) => boolean;
}

export function ActivateDialog({ yaml, onClose, onActivate, onRefused }: ActivateProps) {
  const shadow = renderShadowYaml(yaml);
  return (
    <Dialog title={EDITOR_TEXTS.activateTitle} onClose={onClose}>
      <p>{EDITOR_TEXTS.activateText}</p>
      <Panels place="policy-candidate" name="activation" candidate={{ yaml }} onRefused={onRefused} startsItself />
      <div class="row end">
        <button type="button" class="primary" onClick={() => onActivate(yaml)}>
          {EDITOR_TEXTS.activate}
        </button>
        {shadow === null || shadow === yaml ? null : (
          <button type="button" onClick={() => onActivate(shadow)}>
            {EDITOR_TEXTS.activateInShadow}
          </button>
        )}
        <button type="button" data-focus onClick={onClose}>
          {EDITOR_TEXTS.cancel}
        </button>
      </div>
    </Dialog>
  );
}
