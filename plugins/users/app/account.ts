/**
 * Adds and removes the signed-in user's passkeys, and replaces the user's recovery codes. The user confirms each change
 * with one of their passkeys.
 */
import type { AssertionResponse, ConfirmationOptions, PasskeyCeremony, UserRecord } from "../schemas.ts";
import { call } from "./calls.ts";
import { answerWithPasskey, createPasskey } from "./ceremonies.ts";
import { announce, element, onClick, showSection } from "./elements.ts";

/** Shows the user's passkeys, with a button to remove each. */
export function showAccount(user: UserRecord): void {
  const { passkeys, managed_by } = user;
  element("passkeys", HTMLUListElement).replaceChildren(...passkeys.map((passkey) => passkeyItem(user, passkey)));
  element("add", HTMLButtonElement).textContent = passkeys.length === 0 ? "Add a passkey" : "Add another passkey";
  // Hide the button from users of an identity provider: a recovery code would let them sign in without the provider.
  element("replace-codes", HTMLButtonElement).hidden = managed_by !== null;
}

function passkeyItem(user: UserRecord, { id, name, added_at }: UserRecord["passkeys"][number]): HTMLLIElement {
  const item = document.createElement("li");
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "small",
    textContent: "Remove",
  });
  const added = new Date(added_at).toLocaleDateString();
  button.setAttribute("aria-label", `Remove ${name}, added ${added}`);
  item.append(`${name}, added ${added} `, button);
  onClick(button, async () => {
    const path: [string, string] = [user.id, id];
    const { options } = await call("POST /v1/users/{}/passkeys/{}/remove/options", { path });
    const changed = await call("POST /v1/users/{}/passkeys/{}/remove", { path, body: await confirm(options) });
    showAccount(changed);
    announce(`${name} was removed.`);
  });
  return item;
}

/**
 * Asks the user to confirm with a passkey if the service requires that. Returns the `confirmation` for the request's
 * body, if any.
 */
async function confirm(options: ConfirmationOptions["options"]): Promise<{ confirmation?: AssertionResponse }> {
  return options === null ? {} : { confirmation: await answerWithPasskey(options) };
}

/** A new passkey that the user has confirmed but not created yet. */
let confirmed: { user: string; options: PasskeyCeremony["options"]; confirmation?: AssertionResponse } | null = null;

/** @param readUser returns the signed-in user */
export function listenToAccount(readUser: () => Promise<UserRecord>, showCodes: (codes: string[]) => void): void {
  onClick(element("add", HTMLButtonElement), async () => {
    const { id } = await readUser();
    const { options, confirmation } = await call("POST /v1/users/{}/passkeys/options", { path: [id] });
    // Create the passkey only after another click, because some browsers allow one ceremony per click, and the person
    // might have to connect another device.
    confirmed = { user: id, options, ...(await confirm(confirmation)) };
    announce("");
    showSection("new-passkey");
  });
  onClick(element("create-another", HTMLButtonElement), async () => {
    if (confirmed === null) return;
    const { user, options, ...confirmation } = confirmed;
    const body = { response: await createPasskey(options), ...confirmation };
    confirmed = null;
    try {
      const { passkeys } = await call("POST /v1/users/{}/passkeys", { path: [user], body });
      announce(`You have ${passkeys.length === 1 ? "1 passkey" : `${passkeys.length} passkeys`}.`);
    } finally {
      await readUser();
    }
  });
  onClick(element("replace-codes", HTMLButtonElement), async () => {
    const { id } = await readUser();
    const { options } = await call("POST /v1/users/{}/recovery-codes/options", { path: [id] });
    const body = await confirm(options);
    showCodes((await call("POST /v1/users/{}/recovery-codes", { path: [id], body })).recovery_codes);
  });
}
