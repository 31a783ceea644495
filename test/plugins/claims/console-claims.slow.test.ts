/**
 * Claims in the console: another approver sees at once who is looking, in the list and in the open request.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { withoutBrowser } from "../../support/browser.ts";
import { inboxRow, openRequest, requestPane, startConsole, type Console, voteNow } from "../../support/console.ts";
import { person } from "../../support/service.ts";

const POLICY = `policy: ask
rules: [{ name: all, effect: require_approval, approval: { expires_in: 8h } }]
`;

describe("claims in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  const keys: Record<string, string> = {};
  before(async () => {
    console_ = await startConsole({
      policy: POLICY,
      change: (config) => (config.groups = { staff: { members: [person("Ada"), person("Bob")] } }),
    });
    for (const name of ["Ada", "Bob"])
      keys[name] = await console_.key(name, { preset: "approver", owner: person(name) });
  });
  after(() => console_.close());

  it("are seen by others at once, handed over, taken over and released, and block no vote", async () => {
    const body = { agent_id: "support-bot", tool: "bank", operation: "pay", params: { order: 4711 } };
    const { id } = (await console_.service.call("POST", "/v1/actions", { body })).body as { id: string };
    const [ada, bob] = [
      await console_.visit(keys["Ada"]!, "#/approvals"),
      await console_.visit(keys["Bob"]!, "#/approvals"),
    ];
    await openRequest(ada.page, id);
    const pane = await openRequest(bob.page, id);
    await bob.page.locator(".stream-status.live").waitFor();
    await ada.page.getByRole("button", { name: "Claim", exact: true }).click();
    await ada.page.getByText("You are looking at this").waitFor();
    await inboxRow(ada.page, id).getByText("you are looking").waitFor();
    await pane.getByText("Ada is looking at this").waitFor();
    await inboxRow(bob.page, id).getByText("Ada is looking").waitFor();
    assert.equal(await bob.page.getByRole("button", { name: "Approve", exact: true }).isEnabled(), true);
    await ada.page.getByRole("button", { name: "Hand over…" }).click();
    await ada.page.getByLabel("Person").selectOption({ label: "Bob" });
    await ada.page.getByRole("button", { name: "Hand over", exact: true }).click();
    await pane.getByText("You are looking at this").waitFor();
    await requestPane(ada.page, id).getByText("Bob is looking at this").waitFor();
    await ada.page.getByRole("button", { name: "Take over" }).click();
    await pane.getByText("Ada is looking at this").waitFor();
    await ada.page.getByRole("button", { name: "Release" }).click();
    await pane.getByText("Ada is looking at this").waitFor({ state: "detached" });
    await ada.page.getByRole("button", { name: "Claim", exact: true }).click();
    await pane.getByText("Ada is looking at this").waitFor();
    await voteNow(bob.page, "Approve");
    await requestPane(ada.page, id).getByText("approved it").waitFor();
    assert.equal(await ada.page.getByText("You are looking at this").count(), 0);
    await ada.page.evaluate((address) => void (location.hash = address), `#/actions/${id}`);
    await ada.page.getByText("handed to Bob").waitFor();
    for (const { complaints, strayed } of [ada, bob]) assert.deepEqual([complaints, strayed], [[], []]);
  });
});
