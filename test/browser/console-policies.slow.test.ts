/** Policies in the console: written, tried, compared, activated and rolled back; those of files only read. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { withoutBrowser } from "../support/browser.ts";
import { startConsole, type Console } from "../support/console.ts";
import { DENIED, POLICIES } from "../support/service.ts";

const yamlOf = (
  (await import(new URL("../../plugins/console/app/yaml.js", import.meta.url).href)) as {
    yamlOf(value: unknown): string;
  }
).yamlOf;

describe("a definition as YAML", () => {
  it("reads back as what it was", () => {
    const tricky = {
      policy: "x",
      description: 'it\'s: "odd" # no\nline\u2028',
      rules: [
        { name: "yes", effect: "allow", when: "params.a == 'b' && true", tool: ["a*", "null"], context: {}, list: [] },
        { nested: [[1, -0.5, 1e21], [{ a: [{ b: null }] }]], "key: odd": false, "": " lead" },
      ],
      long: Array.from({ length: 30 }, (_, i) => `item ${i}`),
    };
    const own = ["customer-data", "payments"].map(
      (name) =>
        parseAllDocuments(readFileSync(`${POLICIES}/${name}.yaml`, "utf8")).map(
          (document) => document.toJS() as unknown,
        )[0],
    );
    for (const value of [tricky, ...own]) {
      const [document, ...others] = parseAllDocuments(yamlOf(value));
      assert.deepEqual([document?.errors, others, document?.toJS()], [[], [], value]);
    }
  });
});

describe("policies in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    console_ = await startConsole();
    await console_.service.call("POST", "/v1/actions", { body: DENIED });
    await console_.service.call("POST", "/v1/actions", { body: { ...DENIED, tool: "wiki", operation: "edit" } });
  });
  after(() => console_.close());
  const decided = async () =>
    (
      await console_.service.call("POST", "/v1/gate/decide", {
        body: { agent_id: "a", tool: "wiki", operation: "edit" },
      })
    ).body.decision as string;

  it("shows a policy of files, read-only", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/policies");
    await page.getByRole("link", { name: "payments" }).waitFor();
    await page.getByRole("link", { name: "payments" }).click();
    await page.getByText("read-only here").waitFor();
    assert.match(
      (await page.getByRole("region", { name: "Version 1 as YAML" }).textContent()) ?? "",
      /^policy: payments\n/,
    );
    const buttons = await page.getByRole("main").getByRole("button").allTextContents();
    assert.deepEqual(
      buttons.map((text) => text.trim()),
      ["Show", "Run the backtest"],
    );
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("says what is wrong at its line, tries it on real actions, and stores it", async () => {
    const { page, strayed } = await console_.visit(console_.service.admin, "#/policies");
    await page.getByRole("link", { name: "New policy" }).click();
    const editor = page.getByLabel("Policy, as YAML");
    await editor.fill("policy: wiki\nrules:\n  - name: edits\n    tool: wiki\n    effect: alow\n");
    await page.getByRole("button", { name: "Check and dry-run" }).click();
    await page.getByText(/^Line 5, column \d+$/).waitFor();
    assert.deepEqual(await page.locator(".editor .marked").allTextContents(), ["5\n"]);
    await page.getByText(/^Line 5/).click();
    const caret = await editor.evaluate((area) => (area as HTMLTextAreaElement).selectionStart);
    assert.equal((await editor.inputValue()).slice(0, caret).split("\n").length, 5);
    await editor.fill("policy: wiki\nrules:\n  - name: edits\n    tool: wiki\n    effect: allow\n");
    await page.getByRole("button", { name: "Check and dry-run" }).click();
    await page.getByText("1 of 2 actions would be decided otherwise").waitFor();
    assert.equal(await decided(), "deny", "a dry run changes nothing");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("heading", { name: "wiki", level: 1 }).waitFor();
    assert.equal(await decided(), "deny", "storing decides nothing");
    await page.getByRole("button", { name: "Activate version 1" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate" }).click();
    await page.getByText("Version 1 is active.").waitFor();
    assert.equal(await decided(), "allow");
    assert.deepEqual(strayed, []);
  });

  it("edits, compares, activates and rolls back", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/wiki");
    await page.getByRole("button", { name: "Edit…" }).click();
    const editor = page.getByLabel("Policy, as YAML");
    await editor.fill((await editor.inputValue()).replace("effect: allow", "effect: require_approval"));
    await page.getByRole("button", { name: "Save and activate…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate" }).click();
    await page.getByText('the effect of the rule "edits" is require_approval; it was allow').waitFor();
    assert.equal(await decided(), "require_approval");
    await page.getByRole("button", { name: "Activate version 1" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate" }).click();
    await page.getByText("Version 1 is active.").waitFor();
    assert.equal(await decided(), "allow");
    await page.getByRole("button", { name: "Deactivate…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Deactivate" }).click();
    await page.getByText("The policy is inactive.").waitFor();
    assert.equal(await decided(), "deny");
  });

  it("keeps comments, block scalars and line ends byte for byte, in the draft over a reload too", async () => {
    const written = [
      "# Owner: billing   (two spaces)",
      "policy: kept",
      "description: |",
      "  First line.",
      "",
      "    indented",
      "rules:",
      "  - { name: edits, effect: allow, tool: 'nothing' } # why",
      "",
    ].join("\r\n");
    await console_.service.call("POST", "/v1/policies", {
      key: console_.service.admin,
      raw: written,
      headers: { "content-type": "application/yaml" },
    });
    const readYaml = async () =>
      (await console_.service.call("GET", "/v1/policies/kept", { key: console_.service.admin })).body.yaml as string;
    assert.equal(await readYaml(), written);
    const { page } = await console_.visit(console_.service.admin, "#/policies/kept");
    await page.getByRole("button", { name: "Edit…" }).click();
    const editor = page.getByLabel("Policy, as YAML");
    const displayed = written.replaceAll("\r\n", "\n");
    assert.equal(await editor.inputValue(), displayed);
    await editor.fill(displayed.replace("# why", "# why not"));
    await page.reload();
    await page.getByText("Your draft from before").waitFor();
    assert.equal(await editor.inputValue(), displayed.replace("# why", "# why not"));
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Show version 2" }).waitFor();
    assert.equal(await readYaml(), written.replace("# why", "# why not"), "a changed comment is a new version");
  });

  it("reports a shadow version as shadow when it is activated, and an older one that is enforced as enforced", async () => {
    const { call, admin: key } = console_.service;
    const body = { policy: "shy", rules: [{ name: "none", tool: "nothing", effect: "deny" }] };
    await call("POST", "/v1/policies?activate=true", { key, body });
    await call("PUT", "/v1/policies/shy", { key, body: { ...body, mode: "shadow" } });
    const { page } = await console_.visit(key, "#/policies/shy");
    await page.getByText("Version 1 is active and enforced. The newest is version 2.").waitFor();
    await page.getByRole("button", { name: "Activate version 2" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Version 2 is in shadow mode").waitFor();
    await dialog.getByRole("button", { name: "Activate" }).click();
    await page.getByText("Version 2 is active in shadow mode: it enforces nothing.").waitFor();
    await page.getByText("Version 2 is active in shadow mode: its decisions are recorded").waitFor();
  });

  it("does not overwrite a version that another made", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/wiki");
    await page.getByRole("button", { name: "Edit…" }).click();
    const before = (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).body;
    await console_.service.call("PUT", "/v1/policies/wiki", {
      key: console_.service.admin,
      body: { ...before.definition, description: "by another" },
    });
    const editor = page.getByLabel("Policy, as YAML");
    await editor.fill(`${await editor.inputValue()}description: by me\n`);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page
      .getByText(/changed since/)
      .first()
      .waitFor();
    assert.equal(
      (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).body.description,
      "by another",
    );
  });

  it("keeps a draft while one looks elsewhere, for the version that it was made from, and not for the next who signs in", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/wiki");
    await page.getByRole("button", { name: "Edit…" }).click();
    const editor = page.getByLabel("Policy, as YAML");
    const mine = `${(await editor.inputValue()).replace("by another", "kept")}`;
    await editor.fill(mine);
    await page.getByRole("link", { name: "Actions", exact: true }).click();
    await page.getByRole("heading", { name: "Actions", level: 1 }).waitFor();
    const before = (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).body;
    await console_.service.call("PUT", "/v1/policies/wiki", {
      key: console_.service.admin,
      body: { ...before.definition, description: "meanwhile" },
    });
    await page.goBack();
    await page.getByText("Your draft from before").waitFor();
    assert.equal(await editor.inputValue(), mine);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page
      .getByText(/changed since/)
      .first()
      .waitFor();
    assert.equal(
      (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).body.description,
      "meanwhile",
    );
    await page.getByRole("button", { name: "Start over" }).click();
    assert.match(await editor.inputValue(), /description: meanwhile/);
    await editor.fill(mine);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API key").fill(console_.service.admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    assert.match(await editor.inputValue(), /description: meanwhile/);
    assert.equal(await page.getByText("Your draft from before").count(), 0);
  });
});
