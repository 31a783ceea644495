/** The origin of a service, and the names and addresses of this machine. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveLocalName } from "../../clients/typescript/url.ts";
import { addressAtSite, isSecureOrigin, reachesSite, siteOrigin } from "../../src/domain/loopback.ts";

const SITE = "http://assent.localhost:8000";

test("the origin is that of public_url, or assent.localhost with the port on a loopback host, or unknown", () => {
  const cases: [public_url: string | null, host: string, port: number, origin: string | null][] = [
    [null, "127.0.0.1", 8000, SITE],
    [null, "::1", 8000, SITE],
    [null, "localhost", 9000, "http://assent.localhost:9000"],
    [null, "127.0.0.1", 80, "http://assent.localhost"],
    [null, "127.0.0.1", 0, null],
    [null, "0.0.0.0", 8000, null],
    [null, "::", 8000, null],
    [null, "127.0.0.2", 8000, null],
    [null, "192.168.1.5", 8000, null],
    ["https://assent.example.com/", "0.0.0.0", 8000, "https://assent.example.com"],
    ["https://assent.example.com:8443/base", "127.0.0.1", 0, "https://assent.example.com:8443"],
    ["http://localhost:8000", "127.0.0.1", 8000, "http://localhost:8000"],
  ];
  for (const [public_url, host, port, origin] of cases)
    assert.equal(siteOrigin({ public_url, host }, port), origin, JSON.stringify([public_url, host, port]));
});

test("passkeys are for HTTPS and for HTTP at names of this machine", () => {
  for (const origin of ["https://a.example", "http://localhost", "http://localhost:8000", SITE, "http://a.b.localhost"])
    assert.ok(isSecureOrigin(origin), origin);
  for (const origin of [
    "http://a.example",
    "http://127.0.0.1:8000",
    "http://[::1]:8000",
    "http://localhost.example",
    "http://notlocalhost",
    "http://evil.example/.localhost",
    "http://localhost.",
    "ws://localhost",
    "localhost",
    "null",
    "",
  ])
    assert.ok(!isSecureOrigin(origin), origin);
});

test("a browser that opens a page under another name of this machine is sent to the site, and only there", () => {
  const visit = (path: string, host: string, accept = "text/html,*/*", site: string | null = SITE): string | null =>
    addressAtSite(site, new Request(`http://assent.test${path}`, { headers: { host, accept } }));
  for (const host of ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "other.localhost:8000", "LOCALHOST:8000"])
    assert.equal(visit("/sign-in?return_to=%2F", host), `${SITE}/sign-in?return_to=%2F`, host);
  for (const path of ["//evil.example", "/\\evil.example", "/@evil.example", "/%2f%2fevil.example", "/.evil.example"])
    assert.equal(new URL(visit(path, "localhost:8000") ?? "").origin, SITE, path);
  for (const host of ["assent.localhost:8000", "localhost:3000", "localhost", "evil.example:8000", "a:b:8000", ""])
    assert.equal(visit("/", host), null, host);
  assert.equal(visit("/", "localhost:8000", "*/*"), null, "a program");
  assert.equal(visit("/", "localhost:8000", "text/html", null), null);
  assert.equal(visit("/", "localhost:8000", "text/html", "https://assent.example:8000"), null);
  assert.equal(visit("/", "127.0.0.1:8000", "text/html", "http://localhost:8000"), "http://localhost:8000/");
});

test("a program reaches the site at its origin, or at another name of this machine with the same port", () => {
  for (const url of [SITE, "http://127.0.0.1:8000", "http://localhost:8000/", "http://[::1]:8000"])
    assert.ok(reachesSite(url, SITE), url);
  for (const url of ["http://127.0.0.1:9999", "https://127.0.0.1:8000", "http://localhost", "http://evil.example:8000"])
    assert.ok(!reachesSite(url, SITE), url);
  assert.ok(!reachesSite("http://127.0.0.1:443", "https://assent.example"));
  assert.ok(!reachesSite("http://127.0.0.1:8000", "http://assent.example:8000"));
});

test("programs connect to an address instead of a name below localhost", () => {
  assert.equal(resolveLocalName(SITE), "http://127.0.0.1:8000");
  assert.equal(resolveLocalName("http://assent.localhost:8000/base/"), "http://127.0.0.1:8000/base");
  for (const url of [
    "http://localhost:8000",
    "https://assent.localhost",
    "http://a.example",
    "http://localhost.example",
  ])
    assert.equal(resolveLocalName(url), url);
});
