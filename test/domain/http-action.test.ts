/** Which requests of a gateway have one reading, and which action they become. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toHttpAction } from "../../src/domain/http-action.ts";
import { UnreadableRequest } from "../../src/domain/json-body.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { needs } from "../support/features.ts";

function paramsOf(uri: string, host = "api.example"): JsonObject {
  const headers = new Headers();
  const original = { method: "GET", host, uri, headers, gatewayHeaders: [], body: null, declaredLength: null };
  return toHttpAction(original, "http", "gateway").params;
}

test("a path is decoded once", needs("docs"), () => {
  for (const [uri, path] of [
    ["/docs/a%20b", "/docs/a b"],
    ["/docs/%61", "/docs/a"],
    ["/.well-known/x", "/.well-known/x"],
    ["/docs/a.b/c", "/docs/a.b/c"],
    ["/docs/%C3%A9", "/docs/\u00e9"],
    ["/docs/a:b@c~d!e$f'g(h)i*j+k,l=m&n", "/docs/a:b@c~d!e$f'g(h)i*j+k,l=m&n"],
    ["/", "/"],
    ["/docs/", "/docs/"],
  ] as const)
    assert.equal(paramsOf(uri)["path"], path);
});

test("a path that servers read differently is refused", needs("docs"), () => {
  for (const path of [
    // Separators, encoded once, twice and in other cases.
    ..."/\\.;?#%".split("").flatMap((character) => {
      const code = (character.codePointAt(0) as number).toString(16);
      return [`%${code}`, `%${code.toUpperCase()}`, `%25${code}`, `%2525${code}`].map((text) => `/docs/a${text}b`);
    }),
    "/docs/a\\b",
    "/docs/a;b=c",
    "/docs/a;/../b",
    "/docs//a",
    "//docs",
    "/docs/./a",
    "/docs/../a",
    "/docs/..",
    "/docs/.",
    // Overlong and otherwise invalid UTF-8, and other ways to write a character.
    "/docs/%c0%af",
    "/docs/%c0%ae%c0%ae/a",
    "/docs/%e0%80%af",
    "/docs/%f0%80%80%af",
    "/docs/%ff",
    "/docs/%ed%a0%80",
    "/docs/%u002f",
    "/docs/%2",
    "/docs/%zz",
    // Dots and spaces at the end of a segment.
    "/admin.",
    "/admin./a",
    "/admin...",
    "/.../a",
    "/admin%20",
    "/admin%20/a",
    "/admin%C2%A0",
    "/admin%E3%80%80/a",
    // Characters that servers map to dots, slashes and marks.
    "/docs/%EF%BC%8E%EF%BC%8E/a",
    "/docs/a%EF%BC%8Fb",
    "/docs/a%EF%BC%BCb",
    "/docs/a%EF%BC%9Fb",
    "/docs/a%EF%BC%83b",
    "/docs/a%EF%BC%9Bb",
    "/docs/a%EF%BC%85b",
    "/docs/a%E2%80%A4b",
    "/docs/a%E2%88%95b",
    "/docs/a%E2%81%84b",
    "/docs/a%C2%A5b",
    // Controls.
    "/docs/a%00",
    "/docs/a%0d%0ab",
    "/docs/a%09",
    "/docs/a%7f",
    "/docs/a%C2%85",
    // Characters that people do not see and some servers ignore.
    ...["200B", "200D", "2060", "FEFF", "00AD", "202E", "E0041", "FE0F", "3164", "E000"].map(
      (code) => `/adm${encodeURIComponent(String.fromCodePoint(parseInt(code, 16)))}in`,
    ),
    "/adm%E2%A0%80in",
    // Not a path, or not in ASCII.
    "docs",
    "http://api.example/docs",
    "*",
    "",
    "/docs/a b",
    "/docs/\u00e9",
    "/docs/a#b",
  ])
    assert.throws(() => paramsOf(path), UnreadableRequest, path);
  for (const query of ["a=1;b=2", "a#b", "a=%", "a=%ff", "a=%u002f"])
    assert.throws(() => paramsOf(`/docs?${query}`), UnreadableRequest, query);
});

test("a host has one spelling", () => {
  for (const host of ["api.example", "API.example", "api.example:443", "Api.Example:80"])
    assert.equal(paramsOf("/", host)["host"], "api.example");
  assert.equal(paramsOf("/", "api.example:8443")["host"], "api.example:8443");
  assert.equal(paramsOf("/", "[::1]:443")["host"], "[::1]");
  for (const host of [
    "api.example.",
    "api..example",
    "api.example:0443",
    "api.example:",
    ".example",
    "a b",
    "a/b",
    "",
    "\u212a",
    "api.example:99999",
    "1.2.3.4.5",
  ])
    assert.throws(() => paramsOf("/", host), UnreadableRequest, host);
  for (const host of [
    "169.254.169.254",
    "[::ffff:169.254.169.254]",
    "169.254.43518:80",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
  ])
    assert.equal(paramsOf("/", host)["host"], "169.254.169.254", host);
  for (const host of ["[::1]", "[0:0:0:0:0:0:0:1]", "[0::0001]:443"])
    assert.equal(paramsOf("/", host)["host"], "[::1]");
  for (const host of ["[::]", "[2001:db8::1]", "[2001:4860:4860::8888]", "[2001:0db8::5efe]"])
    assert.equal(paramsOf("/", host)["host"], new URL(`http://${host}`).host);
  // A network can translate these to 169.254.169.254, and a rule for it would not cover them.
  for (const address of [
    "::169.254.169.254",
    "::a9fe:0",
    "::1:0",
    "::2",
    "::ffff:0:169.254.169.254",
    "::ffff:0:0:1",
    "64:ff9b::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "0064:FF9B:0:0:0:0:a9fe:a9fe",
    "64:ff9b:1::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "2001::1",
    "fe80::5efe:169.254.169.254",
    "2001:db8::200:5efe:a9fe:a9fe",
    "2001:db8:1:2:0:5efe:a9fe:a9fe",
  ])
    assert.throws(() => paramsOf("/", `[${address}]`), UnreadableRequest, address);
});

test("query parameters that servers read differently are refused", () => {
  for (const query of [
    "amount=5&AMOUNT=500",
    "order_id=1&order.id=2",
    "order_id=1&order%20id=2",
    "order_id=1&order[id=2",
    "%20amount=500",
    "+amount=500",
    "amount%00=500",
    "a%0ab=1",
    "amount=%00500",
    // PHP, Rails and qs read both as one parameter.
    "amount=5&amount[]=500",
    "amount%5b0%5d=500&amount=5",
    "Amount=5&amount[usd]=500",
    "amount[usd]=5&amount[usd][]=500",
    "amount[usd]=5&amount[usd][x]=500",
    "amount[usd]=5&amount[usd]x=500",
    "ids[]=1&ids[0]=2",
    // Each level is compared with all parameters, so thousands of levels would take seconds.
    `a${"[b]".repeat(33)}=1`,
    "ids[]=1&ids[%20]=2",
    "ids[0][]=1&ids[0][0]=2",
    "a=1;b=2",
  ])
    assert.throws(() => paramsOf(`/docs?${query}`), UnreadableRequest, query);
  assert.deepEqual(paramsOf("/docs?a=1&a=2&b[]=3&b[]=4&c.d=+x&e[f]=5&e[g]=6")["query"], {
    a: ["1", "2"],
    "b[]": ["3", "4"],
    "c.d": " x",
    "e[f]": "5",
    "e[g]": "6",
  });
  const deepest = `a${"[b]".repeat(32)}`;
  assert.deepEqual(paramsOf(`/docs?${deepest}=1`)["query"], { [deepest]: "1" });
  assert.deepEqual(paramsOf("/docs?a[0]=1&a[1]=2&b[x][y]=3&b[x][z]=4")["query"], {
    "a[0]": "1",
    "a[1]": "2",
    "b[x][y]": "3",
    "b[x][z]": "4",
  });
});

/** Parameters of a request with the body `{}`. */
function typed(...types: string[]): JsonObject {
  const headers = new Headers(types.map((type): [string, string] => ["content-type", type]));
  const body = new TextEncoder().encode("{}");
  const original = {
    method: "PATCH",
    host: "api.example",
    uri: "/",
    headers,
    gatewayHeaders: [],
    body,
    declaredLength: null,
  };
  return toHttpAction(original, "http", "gateway").params;
}

test("two bodies with the same bytes and other types are different actions", () => {
  const types = ["application/merge-patch+json", "application/strategic-merge-patch+json", "text/plain", "text/x.a"];
  const actions = ["application/json", ...types].map((type) => JSON.stringify(typed(type)));
  assert.equal(new Set(actions).size, actions.length);
  for (const type of types) assert.equal(typed(type)["content_type"], type);
  // Frameworks choose the spelling.
  for (const type of ["application/json; charset=utf-8", "Application/JSON"])
    assert.equal(JSON.stringify(typed(type)), actions[0]);
});

test("a body with two content types is refused, because servers read one of them", () => {
  for (const first of ["application/json", "application/json; a=b", 'application/json; a="b', "text/plain"])
    assert.throws(() => typed(first, "application/merge-patch+json"), UnreadableRequest, first);
  assert.equal(typed('multipart/mixed; boundary="a,b"')["content_type"], 'multipart/mixed; boundary="a,b"');
});
