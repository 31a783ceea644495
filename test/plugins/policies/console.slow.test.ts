/**
 * Policies in the console: editing, dry runs, comparison, activation and rollback. Policies from files are read-only.
 * @needs console
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Page } from "playwright-core";
import { needs } from "../../support/features.ts";
import { parseAllDocuments } from "yaml";
import { renderYaml } from "../../../plugins/policies/page/yaml.ts";
import { withoutBrowser } from "../../support/browser.ts";
import { editorOf, fillEditor, readEditor, startConsole, type Console } from "../../support/console.ts";
import { DENIED, POLICIES } from "../../support/service.ts";

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
      const [document, ...others] = parseAllDocuments(renderYaml(value));
      assert.deepEqual([document?.errors, others, document?.toJS()], [[], [], value]);
    }
  });
});

/** Returns the number of loaded files whose address contains `part`. */
const countLoaded = (page: Page, part: string): Promise<number> =>
  page.evaluate(
    (wanted) => performance.getEntriesByType("resource").filter(({ name }) => name.includes(wanted)).length,
    part,
  );

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
      (await page.locator(".rule-sentences").textContent()) ?? "",
      /large refunds: [^:]+ refund requires approval by 2 people if params.amount > 1000 · high risk · /,
    );
    await page.getByText("Version 1 as YAML", { exact: true }).click();
    assert.match(
      (await page.getByRole("region", { name: "Version 1 as YAML" }).textContent()) ?? "",
      /^policy: payments\n/,
    );
    // The feature that offers it loads late.
    await page.getByRole("button", { name: "Run the backtest" }).waitFor();
    const buttons = await page.getByRole("main").getByRole("button").allTextContents();
    assert.deepEqual(
      buttons.map((text) => text.trim()),
      ["Show", "Run the backtest"],
    );
    assert.equal(await countLoaded(page, "chunk-code-mirror-"), 0, "only the editor loads CodeMirror");
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("says what is wrong at its line, tries it on real actions, and stores it", async () => {
    const { page, strayed } = await console_.visit(console_.service.admin, "#/policies");
    await page.getByRole("link", { name: "New policy" }).click();
    await fillEditor(page, "policy: wiki\nrules:\n  - name: edits\n    tool: wiki\n    effect: alow\n");
    await page.getByText(/^Line 5, column \d+$/).waitFor();
    await page.locator(".cm-lint-marker-error").waitFor();
    await page.getByText(/^Line 5/).click();
    // The caret is at the value.
    await page.keyboard.press("Shift+End");
    await page.keyboard.type("allow");
    await page.getByText("No problems.").waitFor();
    assert.equal(await readEditor(page), "policy: wiki\nrules:\n  - name: edits\n    tool: wiki\n    effect: allow\n");
    await page.getByRole("button", { name: "Dry run" }).click();
    await page.getByRole("button", { name: "Evaluate the samples" }).click();
    await page.getByText("1 of 2 actions would be decided differently.").waitFor();
    const causes = await page.locator(".editor-results .flips h3").allTextContents();
    assert.match(causes[0] ?? "", /^allow by edits of wiki\s*1 action$/);
    assert.match(causes[1] ?? "", /^deny by/);
    assert.equal(await decided(), "deny", "a dry run changes nothing");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("heading", { name: "wiki", level: 1 }).waitFor();
    assert.equal(await decided(), "deny", "storing decides nothing");
    await page.getByRole("button", { name: "Activate version 1" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate", exact: true }).click();
    await page.getByText("Version 1 is active.").waitFor();
    assert.equal(await decided(), "allow");
    assert.deepEqual(strayed, []);
  });

  it("edits, compares, activates and rolls back", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/wiki");
    await page.getByRole("button", { name: "Edit…" }).click();
    await editorOf(page).waitFor();
    await fillEditor(page, (await readEditor(page)).replace("effect: allow", "effect: require_approval"));
    await page
      .getByText("Version 1 is active and enforced. Saving stores another version, which is not active.")
      .waitFor();
    await page.getByRole("button", { name: "Changes" }).click();
    await page.getByText('the effect of the rule "edits" is require_approval; it was allow').waitFor();
    await page.getByRole("button", { name: "Save and activate…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate", exact: true }).click();
    await page.getByText('the effect of the rule "edits" is require_approval; it was allow').waitFor();
    assert.equal(await decided(), "require_approval");
    await page.getByRole("button", { name: "Activate version 1" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate", exact: true }).click();
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
    const displayed = written.replaceAll("\r\n", "\n");
    await editorOf(page).waitFor();
    assert.equal(await readEditor(page), displayed);
    await fillEditor(page, displayed.replace("# why", "# why not"));
    const asked: string[] = [];
    page.on("dialog", (dialog) => {
      asked.push(dialog.type());
      void dialog.accept();
    });
    await page.reload();
    await page.getByText("Your earlier draft").waitFor();
    assert.deepEqual(asked, ["beforeunload"], "the browser asks before a draft is lost");
    await editorOf(page).waitFor();
    assert.equal(await readEditor(page), displayed.replace("# why", "# why not"));
    await page.getByRole("link", { name: "Policy", exact: true }).click();
    await page.getByRole("button", { name: "Keep editing" }).click();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Show version 2" }).waitFor();
    assert.equal(await readYaml(), written.replace("# why", "# why not"), "a changed comment is a new version");
    // A policy with mixed line breaks keeps each of them.
    const mixed = "policy: mixed\r\nrules:\n  - { name: edits, effect: allow, tool: nothing }\r\n";
    await console_.service.call("POST", "/v1/policies", {
      key: console_.service.admin,
      raw: mixed,
      headers: { "content-type": "application/yaml" },
    });
    await page.evaluate(() => void (location.hash = "#/policies/mixed?edit=true"));
    await page.getByRole("heading", { name: "Edit mixed" }).waitFor();
    await editorOf(page).click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("# typed");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Show version 2" }).waitFor();
    const { yaml } = (await console_.service.call("GET", "/v1/policies/mixed", { key: console_.service.admin })).body;
    assert.equal(yaml, `${mixed}# typed`);
  });

  it("reports a shadow version as shadow when it is activated, and an older one that is enforced as enforced", async () => {
    const { call, admin: key } = console_.service;
    const body = { policy: "shy", rules: [{ name: "none", tool: "nothing", effect: "deny" }] };
    await call("POST", "/v1/policies?activate=true", { key, body });
    await call("PUT", "/v1/policies/shy", { key, body: { ...body, mode: "shadow" } });
    const { page } = await console_.visit(key, "#/policies/shy");
    await page.getByText("Version 1 is active and enforced; the newest, version 2, is not active.").waitFor();
    await page.getByRole("button", { name: "Activate version 2" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Version 2 is in shadow mode").waitFor();
    await dialog.getByRole("button", { name: "Activate in shadow mode" }).click();
    await page.getByText("Version 2 is active in shadow mode: it enforces nothing.").waitFor();
    await page.getByText("Version 2 is active in shadow mode: its decisions are recorded").waitFor();
  });

  it("evaluates a draft as if it were enforced, says what overrules it, activates it in shadow mode, and keeps its tests", async () => {
    const { call, admin: key } = console_.service;
    const rules = [{ name: "no notes", tool: "notes", effect: "deny" }];
    await call("POST", "/v1/policies?activate=true", { key, body: { policy: "stricter", rules } });
    await call("POST", "/v1/actions", { body: { agent_id: "a", tool: "notes", operation: "write" } });
    const { page, complaints } = await console_.visit(key, "#/policies/new");
    const text = (effect: string) =>
      `policy: tried\n# why\nrules:\n  - { name: all, tool: notes, effect: ${effect} }\n  - { name: edits, tool: wiki, effect: allow }\n`;
    await fillEditor(page, text("allow").replace("# why", "mode: shadow"));
    await page.getByRole("button", { name: "Dry run" }).click();
    await page.getByRole("button", { name: "Evaluate the samples" }).click();
    await page.getByText("A stricter policy overrules this text: “stricter” decides.").waitFor();
    await page.getByText(/actions? would be decided differently/).waitFor();
    await page.getByRole("button", { name: "Backtest", exact: true }).click();
    await page.getByRole("button", { name: "Run the backtest" }).click();
    await page.getByText(/^\d+ of \d+ past decisions would flip/).waitFor();
    await page.getByText(/would allow 1 decision more.*: no notes of stricter overrules all in 1 decision\./).waitFor();
    await fillEditor(page, text("allow"));
    await page.getByRole("button", { name: "Tests", exact: true }).click();
    await editorOf(page, "Tests, as YAML").waitFor();
    await fillEditor(page, "now: 2026-01-31T12:00:00Z\ncases: []\n", "Tests, as YAML");
    await page.getByRole("button", { name: "Save and activate…" }).click();
    await page.getByRole("button", { name: "Activate in shadow mode" }).click();
    await page.getByText("Version 1 is active in shadow mode: its decisions are recorded").waitFor();
    await page.getByRole("button", { name: "Enforce…" }).waitFor();
    const { yaml } = (await call("GET", "/v1/policies/tried/versions", { key })).body.versions[0];
    assert.equal(yaml, text("allow").replace("# why", "mode: shadow\n# why"));
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByRole("button", { name: "Tests", exact: true }).click();
    await editorOf(page, "Tests, as YAML").waitFor();
    assert.match(await readEditor(page, "Tests, as YAML"), /^now: 2026-01-31/);
    assert.equal(await page.getByText("Your earlier draft").count(), 0);
    assert.deepEqual(complaints, []);
    await page.close();
  });

  it("enforces a suggested rule that was tried in shadow mode", needs("suggestions"), async () => {
    const { call, admin: key } = console_.service;
    const yaml = `policy: deploys
rules:
  - { name: all, tool: ci, operation: deploy, effect: require_approval }
---
policy: suggested-deploys
mode: shadow # first
suggested: { in_place_of: { policy: deploys, rule: all } }
rules:
  - { name: as people decided, tool: ci, operation: deploy, agent: [release-bot], effect: allow }
`;
    const stored = await call("POST", "/v1/policies/import-yaml?activate=true", { key, body: { yaml } });
    assert.equal(stored.status, 200, JSON.stringify(stored.body));
    const { page, complaints, strayed } = await console_.visit(key, "#/policies/suggested-deploys");
    await page.getByRole("button", { name: "Enforce…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enforce" }).click();
    await page.getByText("The suggested rule is in force.").waitFor();
    await page.getByRole("button", { name: "Enforce…" }).waitFor({ state: "detached" });
    const { body } = await call("GET", "/v1/suggested-rules", { key });
    assert.deepEqual([body.suggested_rules[0].policy, body.suggested_rules[0].status], ["suggested-deploys", "active"]);
    assert.deepEqual([complaints, strayed], [[], []]);
    await page.close();
  });

  it("does not overwrite another person's version", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/wiki");
    await page.getByRole("button", { name: "Edit…" }).click();
    const before = (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).body;
    await console_.service.call("PUT", "/v1/policies/wiki", {
      key: console_.service.admin,
      body: { ...before.definition, description: "by another" },
    });
    await editorOf(page).waitFor();
    await fillEditor(page, `${await readEditor(page)}description: by me\n`);
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

  it("preserves a draft for its version while the user is on other pages, and deletes it for the next user who signs in", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/policies/wiki");
    await page.getByRole("button", { name: "Edit…" }).click();
    await editorOf(page).waitFor();
    const mine = (await readEditor(page)).replace("by another", "kept");
    await fillEditor(page, mine);
    await page.getByRole("link", { name: "Actions", exact: true }).click();
    await page.getByRole("heading", { name: "Actions", level: 1 }).waitFor();
    const before = (await console_.service.call("GET", "/v1/policies/wiki", { key: console_.service.admin })).body;
    await console_.service.call("PUT", "/v1/policies/wiki", {
      key: console_.service.admin,
      body: { ...before.definition, description: "meanwhile" },
    });
    await page.goBack();
    await page.getByText("Your earlier draft").waitFor();
    await editorOf(page).waitFor();
    assert.equal(await readEditor(page), mine);
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
    await editorOf(page).waitFor();
    assert.match(await readEditor(page), /description: meanwhile/);
    await fillEditor(page, mine);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("dialog").getByText("Edit wiki").waitFor();
    await page.getByRole("button", { name: "Sign out and discard" }).click();
    await page.getByLabel("API key").fill(console_.service.admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await editorOf(page).waitFor();
    assert.match(await readEditor(page), /description: meanwhile/);
    assert.equal(await page.getByText("Your earlier draft").count(), 0);
  });

  it("completes keys and names while a person types, runs the tests next to the text, and preserves the page's policy", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/policies/new");
    await editorOf(page).waitFor();
    const head = "policy: typed\nlet: { most: 100 }\nrules:\n  - name: small\n    tool: wiki\n";
    await fillEditor(page, "policy: typed\n");
    await page.getByText("The text cannot be saved.").waitFor();
    await fillEditor(page, `${head}    effect: allow\n`);
    await page.getByText("No problems.").waitFor();
    const suggestions = page.locator(".cm-tooltip-autocomplete");
    await page.keyboard.type("    whe");
    await suggestions.getByText("when", { exact: true }).click();
    await page.keyboard.type("params.amount <= mo");
    // The constant that the policy declares.
    await suggestions.getByText("most", { exact: true }).click();
    await page.getByText("No problems.").waitFor();
    assert.equal(await readEditor(page), `${head}    effect: allow\n    when: params.amount <= most`);
    await page.getByRole("button", { name: "Tests", exact: true }).click();
    const test = (amount: number, effect: string) =>
      `now: 2026-01-31T12:00:00Z\ncases:\n  - name: c${amount}\n    action: { agent_id: a, tool: wiki, operation: x, params: { amount: ${amount} } }\n    expect: { effect: ${effect} }\n`;
    await editorOf(page, "Tests, as YAML").waitFor();
    await fillEditor(page, test(100, "allow"), "Tests, as YAML");
    await page.getByText("1 test passed.").waitFor();
    await fillEditor(page, test(101, "allow"), "Tests, as YAML");
    await page.getByText("1 of 1 test failed.").waitFor();
    await page
      .getByText(/effect is deny, expected allow/)
      .first()
      .waitFor();
    assert.equal(await countLoaded(page, "chunk-code-mirror-"), 1);
    assert.deepEqual([complaints, strayed], [[], []]);
  });
});
