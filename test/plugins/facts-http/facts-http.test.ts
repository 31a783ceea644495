/** Facts over HTTP: which address is requested, and which responses are valid. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parseAddress } from "../../../plugins/facts-http/address-template.ts";
import { createHttpSource } from "../../../plugins/facts-http/index.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";

const OPTIONS = { not_found: "error", timeout_seconds: 2, max_age_seconds: 30 } as const;

describe("an address with inputs", () => {
  const build = (id: string | number | boolean): string =>
    parseAddress("x", "https://crm.example.com/a/{id}/b?q={id}").build({ id }).href;

  test("has them percent-encoded in the path and the query", () => {
    assert.equal(build("b?c#d&e=f"), "https://crm.example.com/a/b%3Fc%23d%26e%3Df/b?q=b%3Fc%23d%26e%3Df");
    assert.equal(build(7), "https://crm.example.com/a/7/b?q=7");
    const query = parseAddress("x", "https://crm.example.com/a?q={id}");
    assert.equal(query.build({ id: "../a;b%" }).href, "https://crm.example.com/a?q=..%2Fa%3Bb%25");
    for (const value of ["@evil.example.com:80", "'*!()~"])
      assert.equal(new URL(build(value)).host, "crm.example.com", value);
  });

  test("no address is built if an input would change the path, even for a server that decodes it first", () => {
    const values = [
      "..",
      ".",
      "",
      "../admins/7",
      "a/b",
      "\\\\evil.example.com",
      "%2e%2e",
      "a;b",
      "\r\nHost: evil",
      "a\0",
    ];
    for (const value of values) assert.throws(() => build(value), /an input (would change|is empty)/, value);
    const two = parseAddress("x", "https://crm.example.com/a/{one}{two}/b");
    assert.throws(() => two.build({ one: ".", two: "." }), /would change the path/);
    assert.throws(() => two.build({ one: "a" }), /empty/);
  });

  test("has a fixed host", () => {
    for (const url of [
      "https://{host}/a",
      "https://crm.{zone}/a",
      "https://crm.example.com:{port}/a",
      "{scheme}://crm.example.com/a",
      "https://crm.example.com{path}",
      "https://crm.example.com/a#{id}",
      "https://crm.example.com/{i d}",
      "crm.example.com/a",
    ])
      assert.throws(() => parseAddress("source", url), /^Error: source: its /, url);
  });
});

describe("a source over HTTP", () => {
  let receiver: Receiver;
  before(async () => {
    receiver = await startReceiver();
  });
  after(() => receiver.close());

  const source = (more: object = {}) =>
    createHttpSource("crm", {
      ...OPTIONS,
      url: `http://127.0.0.1:${receiver.port}/accounts/{id}`,
      allow_private: true,
      headers: { authorization: "Bearer t" },
      ...more,
    });
  const read = (more?: object) => source(more).read({ id: "a b" }, new AbortController().signal);

  test("sends a GET with its headers, and reads one JSON value", async () => {
    receiver.answer = (_, response) => void response.end('{"status":"open"}');
    assert.deepEqual(await read(), { status: "open" });
    const { headers, path, method, body } = receiver.received.at(-1) as Receiver["received"][number];
    assert.deepEqual([method, path, headers["authorization"], body], ["GET", "/accounts/a%20b", "Bearer t", ""]);
    assert.deepEqual(source().inputs, ["id"]);
  });

  test("has no value if the status is not 200, or the body is not JSON or too large, and the error does not contain the body", async () => {
    for (const [status, body] of [
      [302, "{}"],
      [404, "{}"],
      [500, "{}"],
      [200, "secret"],
      [200, '{"a":1,"a":"secret"}'],
      [200, `"${"secret".repeat(20_000)}"`],
    ] as const) {
      receiver.answer = (_, response) => void response.writeHead(status, { location: "/other" }).end(body);
      await assert.rejects(read(), (error: Error) => !/secret|a b|a%20b/.test(error.message));
    }
    receiver.answer = (_, response) => void response.writeHead(404).end();
    await assert.rejects(read(), { code: "NOT_FOUND" });
    assert.equal(await read({ not_found: null }), null);
    assert.equal(await read({ not_found: "null" }), null);
  });

  test("asks only public addresses unless the configuration allows others", async () => {
    assert.throws(() => createHttpSource("crm", { ...OPTIONS, url: "https://127.0.0.1/{id}" }), /not a public address/);
    assert.throws(() => createHttpSource("crm", { ...OPTIONS, url: "http://example.com/{id}" }), /https/);
    const rebound = createHttpSource("crm", { ...OPTIONS, url: "https://crm.example.com/{id}" }, () =>
      Promise.resolve(["10.0.0.1"]),
    );
    await assert.rejects(async () => rebound.read({ id: "x" }, new AbortController().signal), /not a public address/);
  });
});
