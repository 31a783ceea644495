/** The sign-in page: passkeys, recovery codes, enrolment links, and the configured identity providers. */

const element = (id) => {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
};
const SECTIONS = ["sign-in", "enrol", "codes", "terminal", "signed-in"];

function show(section) {
  for (const id of SECTIONS) element(id).hidden = id !== section;
}

function report(error) {
  const box = element("error");
  box.hidden = error === null;
  box.textContent = error === null ? "" : error instanceof Error ? error.message : String(error);
}

/** Calls the API with the session's cookie. Throws an Error with the detail of the problem. */
async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    credentials: "same-origin",
    headers: {
      "Assent-Session": "1",
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = text === "" ? null : JSON.parse(text);
  if (!response.ok) throw Object.assign(new Error(json?.detail ?? response.statusText), { status: response.status });
  return json;
}

const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

async function create(options) {
  const credential = await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: toBytes(options.challenge),
      user: { ...options.user, id: toBytes(options.user.id) },
      excludeCredentials: options.excludeCredentials.map((each) => ({ ...each, id: toBytes(each.id) })),
    },
  });
  const { clientDataJSON, attestationObject } = credential.response;
  return {
    id: credential.id,
    rawId: credential.id,
    type: "public-key",
    response: { clientDataJSON: toText(clientDataJSON), attestationObject: toText(attestationObject) },
    clientExtensionResults: {},
  };
}

async function assert(options) {
  const credential = await navigator.credentials.get({
    publicKey: {
      ...options,
      challenge: toBytes(options.challenge),
      allowCredentials: (options.allowCredentials ?? []).map((each) => ({ ...each, id: toBytes(each.id) })),
    },
  });
  const { clientDataJSON, authenticatorData, signature, userHandle } = credential.response;
  return {
    id: credential.id,
    rawId: credential.id,
    type: "public-key",
    response: {
      clientDataJSON: toText(clientDataJSON),
      authenticatorData: toText(authenticatorData),
      signature: toText(signature),
      ...(userHandle === null ? {} : { userHandle: toText(userHandle) }),
    },
    clientExtensionResults: {},
  };
}

/** Runs an action when a button is clicked, and displays its error. */
function onClick(id, action) {
  const button = element(id);
  button.addEventListener("click", () => {
    report(null);
    button.disabled = true;
    action()
      .catch(report)
      .finally(() => (button.disabled = false));
  });
}

/**
 * Texts for error codes in the address. The address contains only a code, so that it cannot determine what the page
 * says.
 */
const FAILURES = {
  USERS_PROVIDER_UNAVAILABLE: "The identity provider does not respond. Try again later. Sessions that exist continue.",
  USERS_PROVIDER_REFUSED: "The identity provider refused the sign-in. Start again.",
  USERS_PROVIDER_INVALID:
    "The identity provider's response is not valid. Start again, and tell an admin if it happens twice.",
  USERS_CHALLENGE_INVALID: "The sign-in expired, was used before or was started in another browser. Start again.",
  USERS_SIGN_IN_ENDED: "Your user is deactivated. Ask an admin to reactivate it.",
};

function failureInAddress() {
  const code = new URLSearchParams(location.search).get("failed");
  if (code === null) return null;
  return Object.hasOwn(FAILURES, code) ? FAILURES[code] : "The sign-in failed. Start again.";
}

let token = "";

async function startEnrolment(value) {
  token = value;
  const { user } = await call("POST", "/v1/enrolment/options", { token });
  element("name").textContent = user;
  show("enrol");
}

/** Tells the console that this browser has a session, because scripts cannot read the cookie. */
const rememberSession = () => localStorage.setItem("assent.key", "cookie");

/** Challenge of the terminal that opened this page; null if no terminal did. */
const terminal = /^#terminal=([A-Za-z0-9_-]{43})$/.exec(location.hash)?.[1] ?? null;

/** Returns the path to open after the sign-in. It is always a path of this service, never of another site. */
function returnPath() {
  if (terminal !== null) return `/sign-in#terminal=${terminal}`;
  const wanted = new URLSearchParams(location.search).get("return_to") ?? "/";
  const url = new URL(wanted, location.origin);
  return url.origin === location.origin && wanted.startsWith("/") ? url.pathname + url.search + url.hash : "/";
}

async function showSession() {
  const { user } = await call("GET", "/v1/session");
  rememberSession();
  element("user").textContent = user.name;
  element("terminal-user").textContent = user.name;
  element("open").href = returnPath();
  show(terminal === null ? "signed-in" : "terminal");
  return user;
}

onClick("passkey", async () => {
  const { options } = await call("POST", "/v1/session/passkey/options");
  await call("POST", "/v1/session/passkey", { response: await assert(options) });
  rememberSession();
  if (terminal === null) location.assign(returnPath());
  else await showSession();
});

onClick("create", async () => {
  const { options } = await call("POST", "/v1/enrolment/options", { token });
  const { recovery_codes } = await call("POST", "/v1/enrolment", { token, response: await create(options) });
  token = "";
  rememberSession();
  if (recovery_codes === null) {
    location.assign(returnPath());
    return;
  }
  element("list").replaceChildren(
    ...recovery_codes.map((code) => Object.assign(document.createElement("li"), { textContent: code })),
  );
  show("codes");
});

onClick("add", async () => {
  const user = await showSession();
  const path = `/v1/users/${user.id}/passkeys`;
  const { options } = await call("POST", `${path}/options`);
  const { passkeys } = await call("POST", path, { response: await create(options) });
  element("status").textContent = `You have ${passkeys.length} passkeys.`;
});

onClick("sign-out", async () => {
  await call("DELETE", "/v1/session");
  if (localStorage.getItem("assent.key") === "cookie") localStorage.removeItem("assent.key");
  show("sign-in");
});

element("recovery").addEventListener("submit", (event) => {
  event.preventDefault();
  report(null);
  startEnrolment(element("code").value.trim()).catch(report);
});

element("terminal-form").addEventListener("submit", (event) => {
  event.preventDefault();
  report(null);
  confirmTerminal(element("terminal-code").value).catch(report);
});

/** Confirms the terminal, with a passkey if the user has one. */
async function confirmTerminal(code) {
  const path = "/v1/session/terminal/confirm";
  const { options } = await call("POST", `${path}/options`, { challenge: terminal, code });
  const signed = options === null ? {} : { response: await assert(options) };
  await call("POST", path, { challenge: terminal, code, ...signed });
  show(null);
  element("status").textContent = "The terminal is signed in. You can close this page.";
}

/** Shows the session, if there is one. After a sign-in at a provider, goes where the person was going. */
async function continueSession() {
  try {
    await showSession();
  } catch (fault) {
    if (fault.status === 401) return;
    throw fault;
  }
  if (terminal === null && new URLSearchParams(location.search).has("continue")) location.replace(returnPath());
}

async function start() {
  const enrolment = /^#enrol=([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1];
  if (enrolment !== undefined) {
    // Remove the token from the address, which the browser history and screenshots contain.
    history.replaceState(null, "", location.pathname);
    return startEnrolment(enrolment);
  }
  const { passkey, providers } = await call("GET", "/v1/sign-in-methods");
  element("passkey").disabled = !passkey.available;
  // A provider redirects back to this page, where `showSession` remembers the session.
  const here = `/sign-in?continue&return_to=${encodeURIComponent(returnPath())}`;
  element("providers").replaceChildren(
    ...providers.map(({ name, url }) => {
      const link = document.createElement("a");
      link.href = `${url}?return_to=${encodeURIComponent(here)}`;
      link.textContent = `Sign in with ${name}`;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
  show("sign-in");
  const failure = failureInAddress();
  if (failure !== null) report(failure);
  else if (!passkey.available) report(passkey.reason);
  else await continueSession();
}

// Pasting another link into this tab changes only the fragment, so reload.
addEventListener("hashchange", () => location.reload());

start().catch((error) => {
  show("sign-in");
  report(error);
});
