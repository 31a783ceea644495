/** The draft of an editor. */
import { useEffect, useRef, useState } from "preact/hooks";
import { deletePageDraft, readPageDraft, writePageDraft } from "../../console/app/kit.ts";

/** A draft, with the entity tag of the policy version that it is based on. */
interface PolicyDraft {
  yaml: string;
  tests: string;
  /** Entity tag; empty for a new policy. */
  base: string;
}

const TESTS = "assent.policy-tests.";

/** Returns the tests that were last saved in this tab with the policy. Signing out deletes them. */
export function readTests(policyId: string | null): string {
  return policyId === null ? "" : (sessionStorage.getItem(`${TESTS}${policyId}`) ?? "");
}

export function storeTests(policyId: string, tests: string): void {
  try {
    sessionStorage.setItem(`${TESTS}${policyId}`, tests);
  } catch {
    // They are too large for the browser's storage.
  }
}

/**
 * Stores the typed text in the tab, with the entity tag of the policy version that it is based on. With the tag, the
 * service rejects the text if someone else has stored a newer version. The browser asks before it closes a page with a
 * draft.
 */
export function usePolicyDraft(title: string, initial: { yaml: string; tests: string }, base: string) {
  const [storedDraft, setStoredDraft] = useState(() => readPageDraft<PolicyDraft>(title));
  const [content, setContent] = useState({
    yaml: storedDraft?.yaml ?? initial.yaml,
    tests: storedDraft?.tests ?? initial.tests,
  });
  const [isTooLarge, setTooLarge] = useState(false);
  /** Counter that changes when the text is replaced, so that the editors are created again with the new text. */
  const [round, setRound] = useState(0);
  const from = useRef(storedDraft?.base ?? base);
  const isDraft = (typed: typeof content): boolean => typed.yaml !== initial.yaml || typed.tests !== initial.tests;
  const isChanged = isDraft(content);
  /**
   * Whether the browser asks before it closes the page. Each change sets it directly, because a page can be closed
   * before it is rendered again.
   */
  const asksBeforeUnload = useRef(isChanged);
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => {
      if (asksBeforeUnload.current) event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);
  return {
    ...content,
    base: from.current,
    isChanged,
    isTooLarge,
    isFromBefore: storedDraft !== null,
    round,
    write(next: { yaml: string; tests: string }): void {
      asksBeforeUnload.current = isDraft(next);
      setTooLarge(!writePageDraft(title, { ...next, base: from.current } satisfies PolicyDraft));
      setContent(next);
    },
    discard: () => deletePageDraft(title),
    startOver(): void {
      deletePageDraft(title);
      asksBeforeUnload.current = false;
      from.current = base;
      setStoredDraft(null);
      setTooLarge(false);
      setContent(initial);
      setRound((n) => n + 1);
    },
  };
}
