/** The address at which people sign in comes from the configuration or the bound port, never from a request. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createAuthenticator } from "../../support/authenticator.ts";
import { addUser, enrol, enrolmentToken, invite, ORIGIN, PAGE, signIn, startPeople } from "../../support/people.ts";
import type { Service } from "../../support/service.ts";

/** Headers with which a program can claim that people reach the service at another address. */
const CLAIMS: Record<string, string>[] = [
  { host: "localhost:3000" },
  { host: "assent.localhost:3000" },
  { host: "evil.example" },
  { "x-forwarded-host": "localhost:3000", "x-forwarded-proto": "https", "x-forwarded-port": "3000" },
  { forwarded: "host=localhost:3000;proto=https" },
  { "x-original-host": "localhost:3000", "x-forwarded-server": "localhost:3000", "x-host": "localhost:3000" },
];

describe("the address of the service", () => {
  let service: Service;
  before(async () => {
    service = await startPeople();
  });
  after(() => service.close());

  it("is reported independently of the request", async () => {
    for (const headers of [{}, ...CLAIMS]) {
      const { body } = await service.call("GET", "/v1/sign-in-methods", { key: null, headers });
      assert.deepEqual([body.origin, body.passkey.available], [ORIGIN, true], JSON.stringify(headers));
    }
  });

  it("does not become that of a page on another port, which relays a gesture and names its own host", async () => {
    const ada = await invite(service, { name: "Ada", roles: ["approver"] });
    for (const claim of CLAIMS)
      for (const origin of ["http://localhost:3000", "http://assent.localhost:3000", "https://localhost:3000"]) {
        const page = { ...PAGE, ...claim, origin };
        const options = await service.call("POST", "/v1/session/passkey/options", { key: null, headers: page });
        assert.equal(options.body.code, "USERS_CROSS_SITE", JSON.stringify(page));
        // The page signs a challenge that the agent requested, and the agent sends the response with the right origin.
        const relayed = await signIn(service, ada.passkey, { ...PAGE, ...claim }, { origin });
        assert.equal(relayed.body.code, "USERS_PASSKEY_INVALID", JSON.stringify(page));
        const { link } = await addUser(service, { name: "Eve" });
        const enrolled = await enrol(service, enrolmentToken(link.url), createAuthenticator(origin), {
          ...PAGE,
          ...claim,
        });
        assert.equal(enrolled.body.code, "USERS_PASSKEY_INVALID", JSON.stringify(page));
      }
  });

  it("is in every enrolment link, whatever address the request names", async () => {
    const { user } = await addUser(service, { name: "Bob" });
    for (const headers of CLAIMS) {
      const added = await service.call("POST", "/v1/users", { key: service.admin, body: { name: "Eve" }, headers });
      const again = await service.call("POST", `/v1/users/${user.id}/link`, { key: service.admin, headers });
      for (const { body } of [added, again])
        assert.equal(new URL(body.link.url).origin, ORIGIN, JSON.stringify([headers, body]));
    }
  });

  it("follows the bound port if the configuration leaves the port open", async () => {
    const open = await startPeople({ change: ({ server }) => void (server.port = 0) });
    try {
      const origin = async (): Promise<unknown> =>
        (await open.call("GET", "/v1/sign-in-methods", { key: null, headers: { host: "localhost:3000" } })).body.origin;
      assert.equal(await origin(), null);
      open.runtime.listensAt(41_234);
      assert.equal(await origin(), "http://assent.localhost:41234");
    } finally {
      await open.close();
    }
  });

  it("is unknown if the service listens on other addresses and has no public_url, and no one can sign in", async () => {
    const wide = await startPeople({ change: ({ server }) => void (server.host = "0.0.0.0") });
    try {
      for (const headers of [{}, ...CLAIMS]) {
        const { body } = await wide.call("GET", "/v1/sign-in-methods", { key: null, headers });
        assert.deepEqual([body.origin, body.passkey.available], [null, false]);
        assert.match(body.passkey.reason, /set server\.public_url \(ASSENT_PUBLIC_URL\)/);
        const { host = "assent.localhost:8000" } = headers;
        const page = { ...PAGE, ...headers, origin: `http://${host}` };
        const options = await wide.call("POST", "/v1/session/passkey/options", { key: null, headers: page });
        assert.equal(options.body.code, "USERS_INSECURE");
      }
      const added = await wide.call("POST", "/v1/users", { key: wide.admin, body: { name: "Eve" } });
      assert.equal(added.body.code, "USERS_INSECURE", JSON.stringify(added.body));
    } finally {
      await wide.close();
    }
  });
});
