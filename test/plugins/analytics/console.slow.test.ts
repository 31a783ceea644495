/**
 * Totals and charts in the console.
 * @needs console
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Locator } from "playwright-core";
import { withoutBrowser } from "../../support/browser.ts";
import { startConsole, type Console } from "../../support/console.ts";
import { ALLOWED, ASKED, DENIED } from "../../support/service.ts";

describe("analytics in a browser", { skip: withoutBrowser }, () => {
  let console_: Console;
  before(async () => {
    const hour = 3_600_000;
    // Five days of actions.
    console_ = await startConsole({ ahead: -120 * hour });
    for (let h = 120; h >= 0; h -= 5) {
      console_.service.clock.now = -h * hour;
      for (let i = 0; i < 1 + (h % 4); i++)
        await console_.service.call("POST", "/v1/actions", { body: { ...ALLOWED, agent_id: `bot-${h % 3}` } });
      if (h % 2 === 0) await console_.service.call("POST", "/v1/actions", { body: DENIED });
    }
    await console_.service.call("POST", "/v1/actions", { body: { ...ALLOWED, tool: "no-rule-names-it" } });
    const approver = await console_.key("ada", { preset: "approver", owner: "Ada" });
    const { body } = await console_.service.call("POST", "/v1/actions", { body: ASKED });
    console_.service.clock.now = 90_000;
    const { body: seen } = await console_.service.call("GET", `/v1/actions/${body.id}`, { key: approver });
    await console_.service.call("POST", `/v1/actions/${body.id}/approval`, {
      key: approver,
      body: { token: seen.approval_token, approve: true },
    });
    console_.service.clock.now = 0;
  });
  after(() => console_.close());

  it("shows the API's sums, as lines, bars and figures", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/analytics");
    await page.locator(".chart canvas").waitFor();
    const { body } = await console_.service.call(
      "GET",
      `/v1/analytics?since=${new Date(new Date(Date.now() - 7 * 86_400_000).setHours(0, 0, 0, 0)).toISOString()}`,
      { key: console_.service.admin },
    );
    const figure = async (name: string) => page.locator(".figure", { hasText: name }).locator("strong").textContent();
    assert.equal(await figure("Actions"), String(body.total));
    assert.equal(await figure("denied by policy"), String(body.by_decision.deny));
    assert.match((await figure("Median time to decide")) ?? "", /^1 min 3\d s$/);
    assert.deepEqual(
      await page
        .getByRole("list", { name: "By tool" })
        .getByRole("listitem")
        .allTextContents()
        .then((rows) => rows.map((row) => row.replaceAll(/\s/g, ""))),
      body.by_tool.map((row: any) => `${row.tool}${row.count}`),
    );
    const widths = await page
      .getByRole("list", { name: "By tool" })
      .locator(".bar > span")
      .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
    assert.ok((widths[0] as number) > (widths[1] as number), "the longer bar is the greater number");
    const painted = await page.locator(".chart canvas").evaluate((canvas) => {
      const { width, height } = canvas as HTMLCanvasElement;
      return (canvas as HTMLCanvasElement)
        .getContext("2d")
        ?.getImageData(0, 0, width, height)
        .data.some((byte) => byte !== 0);
    });
    assert.equal(painted, true);
    assert.deepEqual([complaints, strayed], [[], []]);
  });

  it("shows the same figure under the same name, and draws only whole days", async () => {
    // An approval that a person rejected does not count as denied by policy.
    const grace = await console_.key("grace", { preset: "approver", owner: "Grace" });
    const { body } = await console_.service.call("POST", "/v1/actions", { body: ASKED });
    const { body: seen } = await console_.service.call("GET", `/v1/actions/${body.id}`, { key: grace });
    await console_.service.call("POST", `/v1/actions/${body.id}/approval`, {
      key: grace,
      body: { token: seen.approval_token, approve: false },
    });
    const asked: URL[] = [];
    const { page } = await console_.visit(console_.service.admin, "#/system");
    page.on("request", (request) => request.url().includes("/v1/analytics") && asked.push(new URL(request.url())));
    await page.evaluate(() => void (location.hash = "#/analytics"));
    await page.locator(".chart canvas").waitFor();
    const bars = await page
      .getByRole("list", { name: "Current status" })
      .getByRole("listitem")
      .evaluateAll((rows) =>
        rows.map((row) => [row.querySelector(".bar-name")?.textContent, row.querySelector(".bar-count")?.textContent]),
      );
    const shown = new Map(bars as [string, string][]);
    assert.equal(shown.get("denied after approval was required"), "1");
    for (const figure of await page.locator(".figure").all()) {
      const [name, count] = [await figure.locator("span").textContent(), await figure.locator("strong").textContent()];
      const bar = shown.get(name ?? "");
      if (bar !== undefined) assert.equal(bar, count, name ?? "");
    }
    assert.ok(shown.has("denied by policy"));
    // Days that are only partly in the range would look like a decline, so the request excludes them.
    const since = new Date(asked[0]?.searchParams.get("since") ?? "");
    assert.deepEqual([since.getHours(), since.getMinutes(), since.getSeconds(), since.getMilliseconds()], [0, 0, 0, 0]);
    await page.getByText(/Not drawn: the current day/).waitFor();
  });

  it("changes the range and the interval, and shows the figures in a table", async () => {
    const { page } = await console_.visit(console_.service.admin, "#/analytics");
    await page.getByLabel("Range").selectOption("24 hours");
    await page.getByLabel("By", { exact: true }).selectOption("hour");
    await page.getByRole("heading", { name: "Decisions by hour" }).waitFor();
    await page.getByText("The numbers", { exact: true }).click();
    const rows = page.getByRole("region", { name: "Decisions over time" }).locator("tbody tr");
    await rows.first().waitFor();
    const count = await rows.count();
    assert.ok(count > 0 && count <= 25, `${count} hours`);
    await page.getByLabel("By", { exact: true }).selectOption("day");
    await page.getByRole("heading", { name: "Decisions by day" }).waitFor();
  });

  it("links every number to the actions that it counts, and names the rules that ask and how fast people vote", async () => {
    const { page, complaints, strayed } = await console_.visit(console_.service.admin, "#/analytics");
    const follow = (name: string | RegExp, list: string) =>
      followLink(page.getByRole("list", { name: list }).getByRole("link", { name }).first(), `${list} ${name}`);
    const followLink = async (link: Locator, what: string): Promise<number> => {
      const count = Number(await link.textContent());
      await link.click();
      const rows = page.getByRole("region", { name: "Actions" }).locator("tbody tr");
      await rows.first().waitFor();
      assert.equal(await rows.count(), count, what);
      await page.goBack();
      await page.getByRole("heading", { name: "Analytics" }).waitFor();
      return count;
    };
    await follow(/: bot-1$/, "By agent");
    await follow(/: denied by policy$/, "Current status");
    assert.equal(await follow(/: denied after approval was required$/, "Current status"), 1);
    assert.equal(await follow(/: no rule matched$/, "By rule"), 1);
    for (const name of ["Approvals", "Rejections"])
      assert.equal(await followLink(page.getByRole("link", { name: `1 ${name}` }), name), 1);
    await page.getByRole("link", { name: "50 % Approval rate" }).waitFor();
    const asking = await follow(/^\d+: /, "Rules that require approval most often");
    assert.equal(asking, 2);
    const votes = page.getByRole("region", { name: "Time to decide" }).locator("tbody tr");
    await votes.filter({ hasText: "ada" }).getByText("100 %").waitFor();
    await votes.filter({ hasText: "grace" }).getByText("0 %", { exact: true }).first().waitFor();
    await page
      .getByRole("link", { name: /required approval$/ })
      .first()
      .waitFor();
    assert.deepEqual([complaints, strayed], [[], []]);
  });
});
