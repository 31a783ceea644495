/** Files of pages: their address changes with their content, they are cached forever, and they are compressed. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { createAssets, createDocument } from "../../src/http/resource/assets.ts";
import { needs } from "../support/features.ts";
import { startService, type Service } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("assent-assets-");
after(() => rmSync(folder, { recursive: true }));
const MAIN = `import { a } from "./lib/a.js";\nimport {b} from "./b.js";\nconst late = () => import("./late.js");\n`;
const FILES = {
  "main.js": MAIN,
  "b.js": 'export const b = 1;\nexport { c } from "./lib/c.js";\n',
  "late.js": 'import "./b.js";\n',
  "c.js": "export const c = 1;\n",
  "a.js": `export const a = "${"a".repeat(5000)}";\nimport{c}from"./c.js";\n`,
};
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
const file = (name: string) => ({ path: () => join(folder, name) });
const NAMED = {
  "main.js": file("main.js"),
  "b.js": file("b.js"),
  "late.js": file("late.js"),
  "lib/a.js": file("a.js"),
  "lib/c.js": { ...file("c.js"), headers: { "X-Own": "yes" } },
};

describe("assets", () => {
  const assets = createAssets("/files", NAMED);
  const get = async (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
    assets.page.serve(new Request(`http://assent.test${path}`, { method, headers }));

  it("are cached forever under an address that changes with any of them", async () => {
    const base = await assets.base();
    assert.match(base, /^\/files\/[0-9a-f]{16}$/);
    const main = await get(`${base}/main.js`);
    assert.equal(await main.text(), MAIN);
    assert.equal(main.headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.equal((await get(`${base}/lib/c.js`)).headers.get("x-own"), "yes");
    const other = createAssets("/files", { ...NAMED, "lib/c.js": file("b.js") });
    assert.notEqual(await other.base(), base);
    for (const path of ["/files/0000000000000000/main.js", `${base}/none.js`, `${base}/../main.js`, `${base}/lib`])
      await assert.rejects(get(path), { code: "NOT_FOUND" }, path);
  });

  it("are compressed in an encoding that the client accepts", async () => {
    const path = `${await assets.base()}/lib/a.js`;
    for (const [accepts, encoding] of [
      ["gzip, deflate", "gzip"],
      ["gzip, deflate, br, zstd", "br"],
      ["br;q=0, gzip;q=0.5", "gzip"],
      ["*", "br"],
      ["identity", null],
      ["br;q=0,gzip;q=0", null],
      [null, null],
    ] as const) {
      const response = await get(path, accepts === null ? {} : { "accept-encoding": accepts });
      const bytes = Buffer.from(await response.arrayBuffer());
      assert.equal(response.headers.get("content-encoding"), encoding, String(accepts));
      assert.equal(response.headers.get("vary"), "Accept-Encoding");
      assert.equal(response.headers.get("content-length"), String(bytes.length));
      const plain = encoding === "gzip" ? gunzipSync(bytes) : encoding === "br" ? brotliDecompressSync(bytes) : bytes;
      assert.equal(plain.toString(), FILES["a.js"]);
      if (encoding !== null) assert.ok(bytes.length < 500);
      const etag = response.headers.get("etag") as string;
      const again = await get(path, {
        "if-none-match": etag,
        ...(accepts === null ? {} : { "accept-encoding": accepts }),
      });
      assert.deepEqual([again.status, await again.text()], [304, ""]);
    }
    const head = await get(path, { "accept-encoding": "gzip" }, "HEAD");
    assert.deepEqual([head.status, await head.text(), head.headers.get("content-encoding")], [200, "", "gzip"]);
  });

  it("have addresses that depend on static imports at any depth, but not on dynamic ones", async () => {
    assert.deepEqual((await assets.imports("main.js")).sort(), ["b.js", "lib/a.js", "lib/c.js", "main.js"]);
  });

  it("are read again at the next request if they could not be read", async () => {
    const late = createAssets("/late", { "x.js": file("not yet.js") });
    await assert.rejects(late.base());
    writeFileSync(join(folder, "not yet.js"), "1\n");
    assert.match(await late.base(), /^\/late\//);
  });
});

describe("documents", () => {
  it("are revalidated each time, and get a 304 while they are unchanged", async () => {
    const serve = createDocument(async () => `<p>${"text ".repeat(500)}</p>`, { "X-Own": "yes" });
    const first = await serve(new Request("http://assent.test/", { headers: { "accept-encoding": "gzip" } }));
    assert.deepEqual(
      ["cache-control", "x-own", "content-encoding", "content-type"].map((name) => first.headers.get(name)),
      ["no-cache", "yes", "gzip", "text/html; charset=utf-8"],
    );
    const again = await serve(
      new Request("http://assent.test/", {
        headers: { "accept-encoding": "gzip", "if-none-match": first.headers.get("etag") as string },
      }),
    );
    assert.equal(again.status, 304);
  });
});

describe("the service's pages", () => {
  let service: Service;
  before(async () => {
    service = await startService();
  });
  after(() => service.close());

  it("load only files that exist, and each of them is compressed and cached", needs("console", "docs"), async () => {
    for (const path of ["/", "/approve", "/docs", "/docs/frame", "/redoc", "/redoc/frame", "/docs/errors"]) {
      const page = await service.call("GET", path, { key: null });
      assert.equal(page.status, 200, path);
      const addresses = [...(page.body as string).matchAll(/(?:href|src)="(\/[^"]+\.(?:js|mjs|css|svg))"/g)].map(
        (match) => match[1] as string,
      );
      assert.ok(addresses.length >= 2, path);
      for (const address of addresses) {
        const response = await service.runtime.fetch(
          new Request(`http://assent.test${address}`, { headers: { "accept-encoding": "gzip" } }),
        );
        assert.deepEqual(
          [response.status, response.headers.get("content-encoding"), response.headers.get("cache-control")],
          [200, "gzip", "public, max-age=31536000, immutable"],
          address,
        );
        await response.arrayBuffer();
      }
    }
    const gone = await service.call("GET", "/console/0000000000000000/main.js", { key: null });
    assert.deepEqual([gone.status, gone.body.code], [404, "NOT_FOUND"]);
  });

  it("the page of errors has the text of each link, and no Markdown", needs("docs"), async () => {
    const page: string = (await service.call("GET", "/docs/errors", { key: null })).body;
    assert.match(page, /<td>Use another key\. .*For a workload's token, <code>detail<\/code>/);
    assert.doesNotMatch(page, /\]\(|`/);
  });
});
