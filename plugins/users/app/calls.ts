/** Requests of the sign-in page to the service, with the session's cookie and page token. */
import type * as schema from "../schemas.ts";
import { pageToken } from "./page-token.ts";

/** Path parameters, body and response of each request. */
interface Calls {
  "GET /v1/session": { response: schema.CurrentSession };
  "DELETE /v1/session": { response: null };
  "GET /v1/sign-in-methods": { response: schema.SignInMethods };
  "POST /v1/session/passkey/options": { response: schema.Ceremony };
  "POST /v1/session/passkey": { body: schema.SignInBody; response: schema.SignedIn };
  "POST /v1/enrolment/options": { body: schema.EnrolmentStartBody; response: schema.EnrolmentCeremony };
  "POST /v1/enrolment": { body: schema.EnrolmentBody; response: schema.Enrolled };
  "POST /v1/session/terminal/confirm/options": { body: schema.TerminalCode; response: schema.ConfirmationOptions };
  "POST /v1/session/terminal/confirm": { body: schema.TerminalConfirmBody; response: schema.ConfirmedTerminal };
  "POST /v1/users/{}/passkeys/options": { path: [string]; response: schema.PasskeyCeremony };
  "POST /v1/users/{}/passkeys": { path: [string]; body: schema.PasskeyBody; response: schema.UserRecord };
  "POST /v1/users/{}/passkeys/{}/remove/options": { path: [string, string]; response: schema.ConfirmationOptions };
  "POST /v1/users/{}/passkeys/{}/remove": {
    path: [string, string];
    body: schema.ConfirmedBody;
    response: schema.UserRecord;
  };
  "POST /v1/users/{}/recovery-codes/options": { path: [string]; response: schema.ConfirmationOptions };
  "POST /v1/users/{}/recovery-codes": { path: [string]; body: schema.ConfirmedBody; response: schema.RecoveryCodes };
}

/** A refused request. The message is the problem's detail. */
export class CallError extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

/**
 * Sends a request. Rejects with CallError if the service refuses it.
 * @example const { user } = await call("GET /v1/session", {});
 */
export async function call<Name extends keyof Calls>(
  name: Name,
  request: Omit<Calls[Name], "response">,
): Promise<Calls[Name]["response"]> {
  const { path = [], body } = request as { path?: readonly string[]; body?: object };
  const [method = "", template = ""] = name.split(" ");
  const values = [...path];
  const response = await fetch(
    template.replaceAll("{}", () => encodeURIComponent(values.shift() ?? "")),
    {
      method,
      credentials: "same-origin",
      headers: {
        "Assent-Session": pageToken() ?? "1",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    },
  );
  const text = await response.text();
  const json: unknown = text === "" ? null : JSON.parse(text);
  if (response.ok) return json as Calls[Name]["response"];
  throw new CallError(response.status, (json as { detail?: string } | null)?.detail ?? response.statusText);
}
