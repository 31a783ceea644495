/** The elements of the sign-in page: sections, buttons, forms, and the messages above them. */

/** Returns the element with this id. Throws if the document has none of this type. */
export function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return found;
}

const SECTIONS = ["sign-in", "enrol", "codes", "terminal", "signed-in", "new-passkey"] as const;
type Section = (typeof SECTIONS)[number];

/** Shows one section and hides the others. */
export function showSection(section: Section | null): void {
  for (const id of SECTIONS) element(id, HTMLElement).hidden = id !== section;
}

/** Shows an error; null removes it. */
export function showError(error: unknown): void {
  const box = element("error", HTMLElement);
  box.hidden = error === null;
  box.textContent =
    error instanceof Error ? error.message : typeof error === "string" ? error : error === null ? "" : "It failed.";
}

/** Shows the outcome of a change. */
export function announce(text: string): void {
  element("status", HTMLElement).textContent = text;
}

/** Runs an action when a button is clicked, and shows its error. */
export function onClick(button: HTMLButtonElement, action: () => Promise<void>): void {
  button.addEventListener("click", () => {
    showError(null);
    button.disabled = true;
    action()
      .catch(showError)
      .finally(() => (button.disabled = false));
  });
}

/** Runs an action with the text of a form's field when the form is submitted, and shows its error. */
export function onSubmit(form: string, field: string, action: (text: string) => Promise<void>): void {
  element(form, HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    showError(null);
    action(element(field, HTMLInputElement).value).catch(showError);
  });
}
