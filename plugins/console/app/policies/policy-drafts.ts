/**
 * Unsaved drafts of policies. They are in the tab's session storage, so they survive a reload and a visit to other
 * pages. Signing out deletes them.
 */

/** A draft, with the entity tag of the policy version that it is based on. */
interface PolicyDraft {
  yaml: string;
  tests: string;
  /** Entity tag; empty for a new policy. */
  base: string;
}

const PREFIX = "assent.draft.";

/**
 * Returns the draft; null if there is none.
 * @param title title of the editor's page
 */
export function readPolicyDraft(title: string): PolicyDraft | null {
  return JSON.parse(sessionStorage.getItem(`${PREFIX}${title}`) ?? "null") as PolicyDraft | null;
}

/** Stores a draft. Returns false if it is too large for the browser's storage: it then exists only in the open page. */
export function writePolicyDraft(title: string, draft: PolicyDraft): boolean {
  try {
    sessionStorage.setItem(`${PREFIX}${title}`, JSON.stringify(draft));
    return true;
  } catch {
    sessionStorage.removeItem(`${PREFIX}${title}`);
    return false;
  }
}

export function deletePolicyDraft(title: string): void {
  sessionStorage.removeItem(`${PREFIX}${title}`);
}

/** Returns the titles of the pages that have unsaved drafts. */
export function listPolicyDrafts(): string[] {
  return Object.keys(sessionStorage)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => name.slice(PREFIX.length));
}
