/**
 * What a machine does that enrols while the service is slow.
 * @needs hook, users
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { devices } from "../../../plugins/devices/cli/devices.ts";
import { serve } from "../../../src/serve/index.ts";
import { invite, startPeople } from "../../support/people.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/wait.ts";

const NEVER = new Promise<never>(() => {});

test("a machine whose service is slow gets no key that it does not know, and enrols once the service answers", async () => {
  const people = await startPeople({
    pluginOptions: { devices: { groups: ["engineers"], agent: "coder", silent_hours: 72, notify: null } },
  });
  let slow = "/v1/sign-in-methods";
  let withheld = 0;
  const server = await serve(
    async (request, info) => {
      const response = await people.runtime.fetch(request, info);
      // The service has done its work, and the client does not learn it.
      if (new URL(request.url).pathname !== slow || response.status >= 400) return response;
      withheld++;
      return NEVER;
    },
    { host: "127.0.0.1", port: 0 },
  );
  people.runtime.listensAt(server.port);
  const folder = temporaryFolder("assent-slow-");
  const before = { ...process.env };
  Object.assign(process.env, { HOME: folder, XDG_CONFIG_HOME: "", ASSENT_API_KEY: "", PATH: "" });
  const file = join(folder, ".config/assent/hook.json");
  let shown = "";
  const show = (text: string): void => void (shown += `${text}\n`);
  const io = { out: show, err: show, fancy: false, watched: false };
  try {
    await assert.rejects(devices.run(["enrol", "--url", server.url], io), { exit: 5 });
    assert.equal(shown, "", "no link is printed");
    slow = "/v1/devices";
    withheld = 0;
    const origin = people.runtime.host.origin() as string;
    const eva = await invite(people, { name: "Eva", roles: ["viewer"], groups: ["engineers"] }, origin);
    const done = devices.run(["enrol", "--url", server.url], io);
    await until("the link is printed", () => shown.includes("challenge="));
    const [, code = "", link = ""] = /the code (\S+):\s+(\S+)/.exec(shown) ?? [];
    const { challenge, ...machine } = Object.fromEntries(new URLSearchParams(link.split("?")[1]));
    const confirm = () => eva.call("POST", "/v1/devices/confirm", { challenge, code, machine });
    assert.equal((await confirm()).status, 201);
    await until("the response with the key is withheld", () => withheld > 0);
    assert.equal(existsSync(file), false);
    slow = "";
    // The person confirms again, on the same page.
    assert.equal((await confirm()).status, 201);
    assert.equal(await done, 0);
    const { api_key: key } = JSON.parse(readFileSync(file, "utf8")) as { api_key: string };
    const found = (await eva.call("GET", "/v1/devices")).body.devices as { key_id: string; status: string }[];
    const { id } = (await people.call("GET", "/v1/me", { key })).body.key;
    assert.deepEqual(
      found.map(({ key_id, status }) => [key_id, status]),
      [[id, "active"]],
      "the device whose key no one knows has ended",
    );
  } finally {
    process.env = before;
    await server.stop(0);
    await people.close();
  }
});
