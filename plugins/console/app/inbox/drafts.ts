/**
 * Drafts of reasons: text that the person typed and that is not recorded yet. Drafts are in the tab's session storage,
 * so they survive a reload. Signing out deletes them.
 */

const nameOf = (subject: string): string => `assent.reason.${subject}`;

/** @param subject id of an action, or see `groupDraft` */
export function readDraft(subject: string): string {
  return sessionStorage.getItem(nameOf(subject)) ?? "";
}

export function writeDraft(subject: string, text: string): void {
  if (text === "") sessionStorage.removeItem(nameOf(subject));
  else sessionStorage.setItem(nameOf(subject), text);
}
