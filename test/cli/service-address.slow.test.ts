/** Commands talk to the service that assent.yaml of the working folder configures. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../../src/serve/index.ts";
import { assentInProcessInFolder, folderWith } from "../support/cli.ts";
import { startService } from "../support/service.ts";

test("status calls the port of assent.yaml, and refuses a file that it cannot read", async (t) => {
  delete process.env["ASSENT_URL"];
  const service = await startService();
  t.after(() => service.close());
  const server = await serve(service.runtime.fetch, { host: "127.0.0.1", port: 0 });
  t.after(() => server.stop(0));
  const folder = folderWith(t, { "assent.yaml": `server:\n  port: ${server.port}\n` });
  const here = await assentInProcessInFolder(folder, "status");
  assert.equal(here.code, 0, here.out + here.err);
  assert.match(here.out, new RegExp(`:${server.port}\\b`));
  const wrong = folderWith(t, { "assent.yaml": "server:\n  port: eight\n" });
  const refused = await assentInProcessInFolder(wrong, "status");
  assert.equal(refused.code, 2, refused.out);
  assert.match(refused.err, /assent\.yaml:2:3.*\/server\/port/s);
});
