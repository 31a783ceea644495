/**
 * Unsaved drafts of policies. They are in the tab's session storage, so they survive a reload and a visit to other
 * pages. The sign-out deletes them.
 */

/** A draft, and the state of the policy on which it is based. */
interface PolicyDraft {
  yaml: string;
  tests: string;
  /** Entity tag; empty for a new policy. */
  base: string;
}

const PREFIX = "assent.draft.";

/** @param title of the editor's page */
export function readPolicyDraft(title: string): PolicyDraft | null {
  return JSON.parse(sessionStorage.getItem(`${PREFIX}${title}`) ?? "null") as PolicyDraft | null;
}

/** Stores a draft. Returns false if it is too large for the browser's storage, so that only the open page has it. */
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

/** Returns the titles of the pages whose drafts are not saved. */
export function listPolicyDrafts(): string[] {
  return Object.keys(sessionStorage)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => name.slice(PREFIX.length));
}
