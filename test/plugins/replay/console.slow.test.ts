/**
 * Backtests in the console display what a policy version would have changed before it is activated.
 * @needs console
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { sqliteStorage } from "../../../plugins/storage-sqlite/index.ts";
import type { Storage } from "../../../src/contract/storage.ts";
import { withoutBrowser } from "../../support/browser.ts";
import { editorOf, fillEditor, readEditor, startConsole, type Console } from "../../support/console.ts";
import { DENIED } from "../../support/service.ts";
import { pause, until } from "../../support/wait.ts";

const EDIT = { agent_id: "writer", tool: "wiki", operation: "edit" };
const ALLOWING = "policy: wiki\nrules:\n  - name: edits\n    tool: wiki\n    operation: edit\n    effect: allow\n";

/** Wraps a store so that reads of past decisions take `pace.ms` milliseconds. */
function slow(store: Storage, pace: { ms: number; begun: number; ended: number }): Storage {
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown;
      if (typeof member !== "function") return member;
      const call = (...given: unknown[]): unknown => (member as (...args: unknown[]) => unknown).apply(target, given);
      if (name !== "decisions") return call;
      return async (...given: unknown[]) => {
        pace.begun++;
        await pause(pace.ms);
        const rows = await call(...given);
        pace.ended++;
        return rows;
      };
    },
  });
}

describe("backtests in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  const pace = { ms: 0, begun: 0, ended: 0 };
  before(async () => {
    console_ = await startConsole({
      storage: (folder) => slow(sqliteStorage({ path: join(folder, "assent.db") }), pace),
    });
  });
  after(() => console_.close());
  const admin = async (method: string, path: string, body?: unknown) => {
    const answer = await console_.service.call(method, path, {
      key: console_.service.admin,
      ...(body === undefined ? {} : { body }),
    });
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as Record<string, any>;
  };
  const submit = async (body: object) =>
    (await console_.service.call("POST", "/v1/actions", { body })).body.id as string;

  it("says that it knows nothing where nothing was decided", async () => {
    const { page, complaints } = await console_.visit(console_.service.admin, "#/policies/new");
    await page.getByRole("button", { name: "Backtest", exact: true }).click();
    await page.getByRole("button", { name: "Run the backtest" }).click();
    await page.getByText("the backtest says nothing about this version").waitFor();
    assert.deepEqual(complaints, []);
  });

  it("shows which decisions would flip before a draft is activated, with examples, and preserves the draft", async () => {
    const ids = [await submit(EDIT), await submit(EDIT)];
    await submit({ ...DENIED, tool: "elsewhere" });
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/policies/new");
    await fillEditor(page, ALLOWING);
    await page.getByRole("button", { name: "Save and activate…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("2 of 3 past decisions would flip.").waitFor();
    const rule = dialog.locator(".flips");
    assert.equal(await rule.count(), 1);
    assert.match((await rule.getByRole("heading").textContent()) ?? "", /edits of wiki\s*allow\s*2 flips/);
    assert.match(
      (await rule.locator("> ul > li").textContent()) ?? "",
      /^\s*2 recorded as deny by no rule\s*less strict/,
    );
    await rule.getByRole("link").first().click();
    await page.getByRole("heading", { name: "wiki edit", level: 1 }).waitFor();
    assert.match(page.url(), new RegExp(`#/actions/(${ids.join("|")})$`));
    assert.equal(
      (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).status,
      404,
      "looking stores nothing",
    );
    await page.goBack();
    await page.getByText("Your earlier draft").waitFor();
    await editorOf(page).waitFor();
    assert.equal(await readEditor(page), ALLOWING);
    await page.getByRole("button", { name: "Save and activate…" }).click();
    await dialog.getByText("2 of 3 past decisions would flip.").waitFor();
    await dialog.getByRole("button", { name: "Cancel", exact: true }).last().click();
    assert.equal(
      (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).status,
      404,
      "cancelling stores nothing",
    );
    await page.getByRole("button", { name: "Save and activate…" }).click();
    await dialog.getByRole("button", { name: "Activate", exact: true }).click();
    await page.getByRole("heading", { name: "wiki", level: 1 }).waitFor();
    assert.equal((await admin("GET", "/v1/policies/wiki"))["active_version"], 1);
    await page.goto(`${console_.server.url}/#/policies/new`);
    await editorOf(page).waitFor();
    assert.equal(await page.getByText("Your earlier draft").count(), 0, "what was saved is no longer a draft");
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("marks a fault of the draft at its line instead of testing it", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/new");
    await fillEditor(page, ALLOWING.replace("effect: allow", "effect: alow"));
    await page.getByRole("button", { name: "Save and activate…" }).click();
    await page.getByText(/^Line 6, column \d+$/).waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
    assert.equal(await page.locator(".cm-lint-marker-error").count(), 1);
  });

  it("distinguishes flips of the active policies from flips of the version, and becomes stale when the text changes", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/wiki");
    await page.getByRole("button", { name: "Run the backtest" }).click();
    await page.getByText("2 of 3 past decisions would flip.").waitFor();
    await page.getByText("also with the active policies").waitFor();
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByRole("button", { name: "Backtest", exact: true }).click();
    await fillEditor(page, ALLOWING.replace("operation: edit", "operation: '*'"));
    await page.getByRole("button", { name: "Run the backtest" }).click();
    await page.getByText("also with the active policies").waitFor();
    await fillEditor(page, ALLOWING.replace("effect: allow", "effect: deny"));
    await page.getByText("The text has changed since this backtest").waitFor();
    await page.getByRole("button", { name: "Run the backtest" }).click();
    await page
      .getByText(/^None of 3 past decisions would flip\. 2 would have the same outcome, by a different rule/)
      .waitFor();
  });

  it("is run before a rollback, and does not stand in its way", async () => {
    await admin("PUT", "/v1/policies/wiki?activate=true", {
      policy: "wiki",
      rules: [{ name: "edits", tool: "wiki", effect: "require_approval" }],
    });
    const key = await console_.key("may not replay", { scopes: ["policies:read", "policies:activate"] });
    const { page } = await console_.visit(key, "#/policies/wiki");
    await page.getByRole("button", { name: "Activate version 1" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Not tested:").waitFor();
    assert.match((await dialog.getByRole("alert").textContent()) ?? "", /replay:run/);
    await dialog.getByRole("button", { name: "Activate", exact: true }).click();
    await page.getByText("Version 1 is active.").waitFor();
    const admin_ = await console_.visit(console_.service.admin, "#/policies/wiki");
    await admin_.page.getByRole("button", { name: "Activate version 2" }).click();
    await admin_.page.getByRole("dialog").getByText("2 of 3 past decisions would flip.").waitFor();
    assert.match(
      (await admin_.page.getByRole("dialog").locator(".flips").textContent()) ?? "",
      /edits of wiki\s*requires approval\s*2 flips/,
    );
  });

  it("shows what a policy in shadow mode would have changed", async () => {
    await admin("POST", "/v1/policies?activate=true", {
      policy: "watching",
      mode: "shadow",
      rules: [{ name: "no edits", tool: "wiki", effect: "deny" }],
    });
    const seen = [await submit(EDIT), await submit(EDIT), await submit(EDIT)];
    const { page, complaints } = await console_.visit(console_.service.admin, "#/policies/watching");
    const card = page.getByRole("region", { name: "Shadow mode: what it would have changed" });
    await card.getByText("3 of 3 past decisions would flip.").waitFor();
    const text = (await card.locator(".flips").textContent()) ?? "";
    assert.match(text, /no edits of watching\s*deny\s*3 flips\s*3 recorded as allow by edits of wiki/);
    const links = await card
      .locator(".flips")
      .getByRole("link")
      .evaluateAll((found) => found.map((link) => link.getAttribute("href")));
    assert.deepEqual(links.sort(), seen.map((id) => `#/actions/${id}`).sort());
    await page.getByText("tested here as if it were enforced").waitFor();
    await page.getByRole("button", { name: "Run the backtest" }).click();
    await page.getByText("3 of 6 past decisions would flip.").waitFor();
    assert.deepEqual(complaints, []);
  });

  it("shows its progress, and stops in the service when it is cancelled", async () => {
    for (let i = 0; i < 1200; i += 50)
      await Promise.all(Array.from({ length: 50 }, () => submit({ ...EDIT, operation: "bulk" })));
    const { page } = await console_.visit(console_.service.admin, "#/policies/new");
    await fillEditor(page, "policy: bulk\nrules:\n  - { name: bulk, operation: bulk, effect: allow }\n");
    await page.getByRole("button", { name: "Backtest", exact: true }).click();
    pace.ms = 1500;
    await page.getByRole("button", { name: "Run the backtest" }).click();
    await page.getByText(/^[24]00 decisions evaluated again, [24]00 would flip so far/).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText(/^Cancelled\. Of the [246]00 newest decisions, [246]00 would flip/).waitFor();
    pace.ms = 0;
    // The read that was in progress ends. Without the cancellation, the next read would start at once.
    await until("the read ends", () => pace.ended >= pace.begun);
    const { begun } = pace;
    await pause(500);
    assert.equal(pace.begun, begun, "the service goes on reading");
    await page.getByRole("button", { name: "Run the backtest" }).click();
    // Includes the two edits that were submitted before a policy covered them.
    await page.getByText("1,202 of 1,206 past decisions would flip.").waitFor();
  });
});
