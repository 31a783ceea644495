/**
 * Creates people who sign in to a service under test with software passkeys.
 * @needs users
 */
import assert from "node:assert/strict";
import users from "../../plugins/users/index.ts";
import type { Plugin } from "../../src/plugin.ts";
import { userState } from "../../src/domain/users.ts";
import { createAuthenticator, type Authenticator } from "./authenticator.ts";
import { person, startService, type Answer, type Service, type ServiceOptions } from "./service.ts";

export const ORIGIN = "http://assent.localhost:8000";

/** Returns the plugin `users`, for a service that is started without it. */
export function usersPlugin(options: object = {}): { plugin: Plugin; options: object; origin: string; core: boolean } {
  return { plugin: users as Plugin, options, origin: "users", core: true };
}

/** Starts a service with the plugin `users`. */
export function startPeople(options: ServiceOptions & { users?: object } = {}): Promise<Service> {
  return startService({
    ...options,
    plugins: [...(options.plugins ?? []), usersPlugin(options.users)],
  });
}

/** Headers that a page of the service sends without a session. */
export const PAGE = { host: new URL(ORIGIN).host, origin: ORIGIN, "assent-session": "1" };

/** The headers that the pages of a session send. */
export interface SessionHeaders extends Record<string, string> {
  cookie: string;
  /** The page token. */
  "assent-session": string;
}

export interface Person {
  id: string;
  /** `user:<id>`, which is also the owner of the person's keys. */
  principal: string;
  passkey: Authenticator;
  session: SessionHeaders;
  recovery_codes: string[];
  /** Sends a request as the person's browser does. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  signIn(): Promise<Answer>;
}

export function cookieOf(answer: Answer): string {
  return answer.headers.getSetCookie()[0]?.split(";")[0] ?? "";
}

/** Returns the headers of the session that the response starts. */
export function sessionOf(answer: Answer): SessionHeaders {
  return { cookie: cookieOf(answer), "assent-session": answer.body.page_token };
}

/**
 * Creates a user, or takes the test person with this name if it exists and has not enrolled. Returns the response body,
 * which contains the enrolment link.
 */
export async function addUser(
  service: Service,
  about: { name: string; roles?: string[]; groups?: string[] },
  host = new URL(ORIGIN).host,
): Promise<Answer["body"]> {
  const id = person(about.name).slice("user:".length);
  if ((await service.runtime.host.state(userState)).get(id)?.passkeys.length === 0) {
    const key = service.admin;
    assert.equal((await service.call("PATCH", `/v1/users/${id}`, { key, body: about })).status, 200);
    return (await service.call("POST", `/v1/users/${id}/link`, { key, headers: { host } })).body;
  }
  const { status, body } = await service.call("POST", "/v1/users", {
    key: service.admin,
    body: about,
    headers: { host },
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

/** Creates a user and enrols a passkey for that user. */
export async function invite(
  service: Service,
  about: { name: string; roles?: string[]; groups?: string[] },
  origin = ORIGIN,
): Promise<Person> {
  const { host } = new URL(origin);
  const page = { ...PAGE, host, origin };
  const invited = await addUser(service, about, host);
  const token = enrolmentToken(invited.link.url);
  const passkey = createAuthenticator(origin);
  passkey.counter = 1;
  const done = await enrol(service, token, passkey, page);
  assert.equal(done.status, 201, JSON.stringify(done.body));
  const person: Person = {
    id: invited.user.id,
    principal: invited.user.principal,
    passkey,
    session: sessionOf(done),
    recovery_codes: done.body.recovery_codes,
    async call(method, path, body, headers = {}) {
      const answer = await service.call(method, path, {
        key: null,
        ...(body === undefined ? {} : { body }),
        headers: { ...page, ...person.session, ...headers },
      });
      // Like a browser, send a replaced cookie from the next request on.
      if (answer.headers.getSetCookie().length > 0) person.session = { ...person.session, cookie: cookieOf(answer) };
      return answer;
    },
    async signIn() {
      const answer = await signIn(service, passkey, page);
      if (answer.status === 201) person.session = sessionOf(answer);
      return answer;
    },
  };
  return person;
}

export const enrolmentToken = (url: string): string => new URL(url).hash.replace("#enrol=", "");

export async function enrol(
  service: Service,
  token: string,
  passkey: Authenticator,
  page: Record<string, string> = PAGE,
  change?: object,
): Promise<Answer> {
  const started = await service.call("POST", "/v1/enrolment/options", { key: null, body: { token }, headers: page });
  if (started.status !== 200) return started;
  const response = passkey.create(started.body.options, change);
  return service.call("POST", "/v1/enrolment", { key: null, body: { token, response }, headers: page });
}

export async function signIn(
  service: Service,
  passkey: Authenticator,
  page: Record<string, string> = PAGE,
  change?: object,
): Promise<Answer> {
  const { body } = await service.call("POST", "/v1/session/passkey/options", { key: null, headers: page });
  const response = passkey.get(body.options, change);
  return service.call("POST", "/v1/session/passkey", { key: null, body: { response }, headers: page });
}

/** Confirms the sign-in of a terminal as the sign-in page does. */
export async function confirmTerminal(person: Person, challenge: string, code: string): Promise<Answer> {
  const path = "/v1/session/terminal/confirm";
  const started = await person.call("POST", `${path}/options`, { challenge, code });
  if (started.status !== 200) return started;
  return person.call("POST", path, { challenge, code, response: person.passkey.get(started.body.options) });
}

/**
 * Removes a passkey (`passkeys/<id>/remove`) or replaces the recovery codes (`recovery-codes`) as the sign-in page
 * does, and confirms the change with a passkey.
 * @param change values that replace those of a correct browser and authenticator
 */
export async function confirmChange(
  person: Person,
  change: string,
  passkey: Authenticator = person.passkey,
  difference?: object,
): Promise<Answer> {
  const path = `/v1/users/${person.id}/${change}`;
  const started = await person.call("POST", `${path}/options`);
  if (started.status !== 200) return started;
  return person.call("POST", path, { confirmation: passkey.get(started.body.options, difference) });
}

/** Adds a passkey as the sign-in page does, and confirms it with the person's passkey. */
export async function addPasskey(person: Person, added: Authenticator): Promise<Answer> {
  const path = `/v1/users/${person.id}/passkeys`;
  const { body } = await person.call("POST", `${path}/options`);
  const confirmation = person.passkey.get(body.confirmation);
  return person.call("POST", path, { response: added.create(body.options), confirmation });
}
