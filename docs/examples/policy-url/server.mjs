/** Stands in for a web server while you try the plugin: serves one file with its entity tag. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const file = process.argv[2];

const server = createServer((request, response) => {
  const content = readFileSync(file);
  const etag = `"${createHash("sha256").update(content).digest("hex")}"`;
  const status = request.headers["if-none-match"] === etag ? 304 : 200;
  console.log(`${status} ${etag.slice(1, 9)}`);
  response.writeHead(status, { ETag: etag, "Content-Type": "application/yaml" });
  response.end(status === 200 ? content : undefined);
});
server.listen(Number(process.env.POLICY_PORT ?? 8091), "127.0.0.1", () =>
  console.log(`serving ${file} on http://127.0.0.1:${server.address().port}/`),
);
