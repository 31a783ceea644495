/**
 * Unsaved drafts of pages. They are in the tab's session storage, so they survive a reload and a visit to other pages.
 * Signing out deletes them, and asks first.
 */

const PREFIX = "assent.draft.";

/**
 * Returns the draft; null if there is none.
 * @param title title of the page, which the question before signing out lists
 */
export function readPageDraft<T>(title: string): T | null {
  return JSON.parse(sessionStorage.getItem(`${PREFIX}${title}`) ?? "null") as T | null;
}

/** Stores a draft. Returns false if it is too large for the browser's storage: it then exists only in the open page. */
export function writePageDraft(title: string, draft: unknown): boolean {
  try {
    sessionStorage.setItem(`${PREFIX}${title}`, JSON.stringify(draft));
    return true;
  } catch {
    sessionStorage.removeItem(`${PREFIX}${title}`);
    return false;
  }
}

export function deletePageDraft(title: string): void {
  sessionStorage.removeItem(`${PREFIX}${title}`);
}

/** Returns the titles of the pages that have unsaved drafts. */
export function listPageDrafts(): string[] {
  return Object.keys(sessionStorage)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => name.slice(PREFIX.length));
}
