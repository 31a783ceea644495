/** The sign-in page: passkeys, recovery codes, enrolment links, and the configured identity providers. */
import type { SignInMethods, UserRecord } from "../schemas.ts";
import { listenToAccount, showAccount } from "./account.ts";
import { call, CallError } from "./calls.ts";
import { answerWithPasskey, createPasskey } from "./ceremonies.ts";
import { failureInAddress, returnPath, terminalChallenge } from "./destination.ts";
import { announce, element, onClick, onSubmit, showError, showSection } from "./elements.ts";

/** Token of the enrolment link or recovery code that the person uses; empty if there is none. */
let token = "";

async function startEnrolment(value: string): Promise<void> {
  token = value;
  const { user } = await call("POST /v1/enrolment/options", { body: { token } });
  element("name", HTMLElement).textContent = user;
  showSection("enrol");
}

/** Tells the console that this browser has a session, because scripts cannot read the cookie. */
const rememberSession = (): void => localStorage.setItem("assent.key", "cookie");

async function showSession(): Promise<UserRecord> {
  const { user } = await call("GET /v1/session", {});
  rememberSession();
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
  showSection("codes");
}

/** Confirms the terminal, with a passkey if the user has one. */
async function confirmTerminal(code: string): Promise<void> {
  const about = { challenge: terminalChallenge ?? "", code };
  const { options } = await call("POST /v1/session/terminal/confirm/options", { body: about });
  const signed = options === null ? {} : { response: await answerWithPasskey(options) };
  await call("POST /v1/session/terminal/confirm", { body: { ...about, ...signed } });
  showSection(null);
  announce("The terminal is signed in. You can close this page.");
}

/**
 * Shows the session, if there is one. After a sign-in at a provider, opens the page that the person requested before.
 */
async function continueSession(): Promise<void> {
  try {
    await showSession();
  } catch (error) {
    if (error instanceof CallError && error.status === 401) return;
    throw error;
  }
  if (terminalChallenge === null && new URLSearchParams(location.search).has("continue"))
    location.replace(returnPath());
}

function showProviders(providers: SignInMethods["providers"]): void {
  // A provider redirects back to this page, where `showSession` remembers the session.
  const here = `/sign-in?continue&return_to=${encodeURIComponent(returnPath())}`;
  element("providers", HTMLUListElement).replaceChildren(
    ...providers.map(({ name, url }) => {
      const link = document.createElement("a");
      link.href = `${url}?return_to=${encodeURIComponent(here)}`;
      link.textContent = `Sign in with ${name}`;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
}

function listen(): void {
  onClick(element("passkey", HTMLButtonElement), async () => {
    const { options } = await call("POST /v1/session/passkey/options", {});
    await call("POST /v1/session/passkey", { body: { response: await answerWithPasskey(options) } });
    rememberSession();
    if (terminalChallenge === null) location.assign(returnPath());
    else await showSession();
  });
  onClick(element("create", HTMLButtonElement), async () => {
    const { options } = await call("POST /v1/enrolment/options", { body: { token } });
    const body = { token, response: await createPasskey(options) };
    const { recovery_codes } = await call("POST /v1/enrolment", { body });
    token = "";
    rememberSession();
    if (recovery_codes === null) location.assign(returnPath());
    else showCodes(recovery_codes);
  });
  onClick(element("sign-out", HTMLButtonElement), async () => {
    await call("DELETE /v1/session", {});
    if (localStorage.getItem("assent.key") === "cookie") localStorage.removeItem("assent.key");
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
  const { origin, passkey, providers } = await call("GET /v1/sign-in-methods", {});
  const isHere = origin === location.origin;
  element("passkey", HTMLButtonElement).disabled = !isHere;
  showProviders(isHere ? providers : []);
  showSection("sign-in");
  const failure = failureInAddress();
  if (failure !== null) showError(failure);
  else if (isHere) await continueSession();
  else showError(passkey.reason ?? `People sign in at ${origin}, not at this address.`);
}

listen();
start().catch((error: unknown) => {
  showSection("sign-in");
  showError(error);
});
