/** The draft of an editor. */
import { useEffect, useRef, useState } from "preact/hooks";
import { deletePolicyDraft, readPolicyDraft, writePolicyDraft } from "./policy-drafts.ts";

/**
 * Stores the typed text in the tab, with the entity tag of the policy version that it is based on. Saving the text then
 * cannot overwrite a newer version by someone else. The browser asks before it closes a page with a draft.
 */
export function useDraft(title: string, text: string, base: string) {
  const [kept, setKept] = useState(() => readPolicyDraft(title));
  const [content, setContent] = useState({ yaml: kept?.yaml ?? text, tests: kept?.tests ?? "" });
  const [isTooLarge, setTooLarge] = useState(false);
  /** Counter that changes when the text is replaced, so that the editors are created again with the new text. */
  const [round, setRound] = useState(0);
  const from = useRef(kept?.base ?? base);
  const isChanged = content.yaml !== text || content.tests !== "";
  useEffect(() => {
    if (!isChanged) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isChanged]);
  return {
    ...content,
    base: from.current,
    isChanged,
    isTooLarge,
    isFromBefore: kept !== null,
    round,
    write(next: { yaml: string; tests: string }): void {
      setTooLarge(!writePolicyDraft(title, { ...next, base: from.current }));
      setContent(next);
    },
    discard: () => deletePolicyDraft(title),
    startOver(): void {
      deletePolicyDraft(title);
      from.current = base;
      setKept(null);
      setTooLarge(false);
      setContent({ yaml: text, tests: "" });
      setRound((n) => n + 1);
    },
  };
}
