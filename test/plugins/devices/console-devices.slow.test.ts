/**
 * Devices in the console: a page lists machines with their hooks, and ends one.
 * @needs console, users
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { terminalChallenge, terminalCode } from "../../../plugins/actions/api.ts";
import { open, withoutBrowser } from "../../support/browser.ts";
import { startConsole, type Console } from "../../support/console.ts";
import { addUser, usersPlugin } from "../../support/people.ts";
import { addAuthenticator } from "../../support/virtual-authenticator.ts";

const report = (...hooks: [host: string, state: string][]): object => ({
  machine_id: "a".repeat(64),
  version: "0.1.0",
  hooks: hooks.map(([host, state]) => ({ host, state })),
});

describe("devices in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    console_ = await startConsole({ plugins: [usersPlugin()] });
    console_.service.runtime.listensAt(console_.server.port);
  });
  after(() => console_.close());

  it("are listed with what is wrong, and end with their key", async () => {
    const { service } = console_;
    const origin = service.runtime.host.origin() as string;
    const invited = await addUser(service, { name: "Ada", roles: ["key_manager"] }, new URL(origin).host);
    const verifier = "v".repeat(43);
    const challenge = terminalChallenge(verifier);
    const about = new URLSearchParams({ challenge, id: "a".repeat(64), name: "lovelace-laptop", platform: "linux" });
    const context = await console_.browser.newContext();
    const mine = await open(context, invited.link.url);
    await addAuthenticator(context, mine.page);
    await mine.page.getByRole("button", { name: "Create a passkey" }).click();
    await mine.page.getByRole("heading", { name: "Recovery codes" }).waitFor();
    await mine.page.goto(`${origin}/#/enrol-device?${about}`);
    await mine.page.getByText("lovelace-laptop").waitFor();
    await mine.page.getByLabel("Code that the machine shows").fill(terminalCode(challenge));
    await mine.page.getByRole("button", { name: "Enrol" }).click();
    await mine.page.getByText("The machine gets its key now.").waitFor();
    const { device, key } = (await service.call("POST", "/v1/devices", { key: null, body: { verifier } })).body;
    const body = report(["claude-code", "present"], ["codex", "missing"]);
    assert.equal((await service.call("POST", "/v1/devices/report", { key, body })).status, 200);
    const { page, complaints } = await console_.visit(service.admin, "#/devices");
    const row = page.getByRole("row", { name: /lovelace-laptop/ });
    await row.getByText("attention").waitFor();
    await row.getByText("codex missing").waitFor();
    await row.getByRole("button", { name: /^End / }).click();
    await page.getByRole("button", { name: "End the device" }).click();
    await page.getByText("The key of lovelace-laptop is revoked.").waitFor();
    await page.getByText("No machine is enrolled.").waitFor();
    await page.getByRole("button", { name: "Ended", exact: true }).click();
    await row.waitFor();
    assert.equal((await service.call("GET", "/v1/me", { key })).status, 401, device.id);
    assert.deepEqual([complaints, mine.strayed], [[], []]);
    await context.close();
  });
});
