/** The sign-in page: passkeys, recovery codes, enrolment links, and the configured identity providers. */
import type { SignInMethods, UserRecord } from "../../schemas.ts";
import { listenToAccount, showAccount } from "../account.ts";
import { call, CallError } from "../calls.ts";
import { answerWithPasskey, createPasskey } from "../ceremonies.ts";
import { failureInAddress, NOT_STARTED_HERE, returnPath, terminalChallenge, wantsPasskey } from "../destination.ts";
import { announce, element, onClick, onSubmit, showError, showSection } from "../elements.ts";
import { markSignInStarted, pageToken, removePageToken, storePageToken, takePageToken } from "../page-token.ts";

/** Token of the enrolment link or recovery code that the person uses; empty if there is none. */
let token = "";

async function startEnrolment(value: string): Promise<void> {
  token = value;
  const { user } = await call("POST /v1/enrolment/options", { body: { token } });
  element("name", HTMLElement).textContent = user;
  showSection("enrol");
}

async function showSession(): Promise<UserRecord> {
  const { user } = await call("GET /v1/session", {});
  element("user", HTMLElement).textContent = user.name;
  element("terminal-user", HTMLElement).textContent = user.name;
  element("open", HTMLAnchorElement).href = returnPath();
  showAccount(user);
  showSection(terminalChallenge === null ? "signed-in" : "terminal");
  return user;
}

function showCodes(codes: readonly string[]): void {
  element("list", HTMLUListElement).replaceChildren(
    ...codes.map((code) => Object.assign(document.createElement("li"), { textContent: code })),
  );
  onClick(element("copy-codes", HTMLButtonElement), async () => {
    await navigator.clipboard.writeText(codes.join("\n"));
    announce("The codes are copied.");
  });
  onClick(element("save-codes", HTMLButtonElement), async () => saveCodes(codes));
  showSection("codes");
}

function saveCodes(codes: readonly string[]): void {
  const text = `Recovery codes of Assent at ${location.origin}\n\n${codes.join("\n")}\n`;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = "assent-recovery-codes.txt";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Confirms the terminal, with a passkey if the user has one. */
async function confirmTerminal(code: string): Promise<void> {
  const body = { challenge: terminalChallenge ?? "", code };
  const { options } = await call("POST /v1/session/terminal/confirm/options", { body: body });
  const signed = options === null ? {} : { response: await answerWithPasskey(options) };
  await call("POST /v1/session/terminal/confirm", { body: { ...body, ...signed } });
  showSection(null);
  announce("The terminal is signed in. You can close this page.");
}

/** Shows the session, if there is one. */
async function continueSession(): Promise<void> {
  if (pageToken() === null) return;
  try {
    await showSession();
  } catch (error) {
    if (!(error instanceof CallError) || error.status !== 401) throw error;
    removePageToken();
  }
}

function showProviders(providers: SignInMethods["providers"]): void {
  element("providers", HTMLUListElement).replaceChildren(
    ...providers.map(({ name, url }) => {
      const link = document.createElement("a");
      link.href = `${url}?return_to=${encodeURIComponent(returnPath())}`;
      link.textContent = `Sign in with ${name}`;
      link.className = "button";
      link.addEventListener("click", markSignInStarted);
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
}

async function signInWithPasskey(): Promise<void> {
  const { options } = await call("POST /v1/session/passkey/options", {});
  const body = { response: await answerWithPasskey(options) };
  storePageToken((await call("POST /v1/session/passkey", { body })).page_token);
  if (terminalChallenge === null) location.assign(returnPath());
  else await showSession();
}

function listen(): void {
  onClick(element("passkey", HTMLButtonElement), signInWithPasskey);
  onClick(element("create", HTMLButtonElement), async () => {
    const { options } = await call("POST /v1/enrolment/options", { body: { token } });
    const body = { token, response: await createPasskey(options) };
    const { recovery_codes, page_token } = await call("POST /v1/enrolment", { body });
    token = "";
    storePageToken(page_token);
    if (recovery_codes === null) location.assign(returnPath());
    else showCodes(recovery_codes);
  });
  onClick(element("sign-out", HTMLButtonElement), async () => {
    await call("DELETE /v1/session", {});
    removePageToken();
    showSection("sign-in");
  });
  onSubmit("recovery", "code", (code) => startEnrolment(code.trim()));
  onSubmit("terminal-form", "terminal-code", confirmTerminal);
  listenToAccount(showSession, showCodes);
  // Reload when the fragment changes, because pasting another link into this tab does not load the page again.
  addEventListener("hashchange", () => location.reload());
}

async function start(): Promise<void> {
  const enrolment = /^#enrol=([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1];
  if (enrolment !== undefined) {
    // Remove the token from the address, because the browser history and screenshots contain the address.
    history.replaceState(null, "", location.pathname);
    return startEnrolment(enrolment);
  }
  const isSignedIn = takePageToken();
  if (isSignedIn === true) return location.replace(returnPath());
  const { origin, passkey, providers } = await call("GET /v1/sign-in-methods", {});
  const isHere = origin === location.origin;
  element("passkey", HTMLButtonElement).disabled = !isHere;
  showProviders(isHere ? providers : []);
  showSection("sign-in");
  const failure = isSignedIn === false ? NOT_STARTED_HERE : failureInAddress();
  if (failure !== null) showError(failure);
  else if (isHere) {
    await continueSession();
    if (!wantsPasskey || pageToken() !== null) return;
    history.replaceState(null, "", location.pathname + location.search);
    // Some browsers ask only after a click on this page. The button is there for them, and for a person who cancelled.
    await signInWithPasskey().catch((error: unknown) => {
      if (error instanceof CallError) throw error;
    });
  } else showError(passkey.reason ?? `People sign in at ${origin}, not at this address.`);
}

listen();
start().catch((error: unknown) => {
  showSection("sign-in");
  showError(error);
});
