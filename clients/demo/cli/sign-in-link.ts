/**
 * The one-time sign-in link of `assent demo --serve`. Its page exchanges the token in the fragment, once, for the keys
 * of the demo, and stores them in the browser tab for the console.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

export interface DemoKeys {
  /** Key that signs in to the console. */
  admin: string;
  /** Key that submits actions. The console inserts it into its examples. */
  agent: string;
}

interface SignInLink {
  /** Path with the token in its fragment, which browsers do not send to servers. */
  path: string;
  /** Handles requests for the page of the link. Resolves to null for all other requests. */
  answer(request: Request): Promise<Response | null>;
}

const PATH = "/demo";
const MAX_TOKEN = 100;
const HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
};

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in to the demo · Assent</title>
<main><h1>Assent demo</h1><p id="message" role="status">Signing in…</p></main>
<script type="module" src="${PATH}/sign-in.js"></script>
`;

const SCRIPT = `const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const message = document.getElementById("message");
try {
  const answer = await fetch("${PATH}/sign-in", { method: "POST", body: token });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.detail);
  sessionStorage.setItem("assent.key", body.admin);
  sessionStorage.setItem("assent.agent-key", body.agent);
  location.replace("/#/approvals");
} catch (error) {
  message.textContent = error.message;
}
`;

export function createSignInLink(keys: DemoKeys): SignInLink {
  const token = randomBytes(32).toString("base64url");
  const expected = digestOf(token);
  let isUsed = false;
  const exchange = async (request: Request): Promise<Response> => {
    const given = (await request.text()).slice(0, MAX_TOKEN);
    const isValid = timingSafeEqual(digestOf(given), expected);
    if (!isValid || isUsed)
      return respond(403, "application/json", {
        detail: isValid
          ? "This link was used already. Sign in with the admin key that the demo printed."
          : "This is not the link that the demo printed. Copy all of it.",
      });
    isUsed = true;
    return respond(200, "application/json", keys);
  };
  return {
    path: `${PATH}#${token}`,
    async answer(request) {
      const { pathname } = new URL(request.url);
      if (request.method === "GET" && pathname === PATH) return respond(200, "text/html; charset=utf-8", PAGE);
      if (request.method === "GET" && pathname === `${PATH}/sign-in.js`)
        return respond(200, "text/javascript; charset=utf-8", SCRIPT);
      if (request.method === "POST" && pathname === `${PATH}/sign-in`) return exchange(request);
      return null;
    },
  };
}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

function respond(status: number, type: string, body: string | object): Response {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Response(text, { status, headers: { ...HEADERS, "Content-Type": type } });
}
