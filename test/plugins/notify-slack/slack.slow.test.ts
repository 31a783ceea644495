/** notify-slack with a server that rejects what Slack rejects. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import notifySlack, { createNotifier } from "../../../plugins/notify-slack/index.ts";
import type { Notifier, DeliveryResult, Message } from "../../../src/contract/notifier.ts";
import type { NotifierError, Plugin } from "../../../src/plugin.ts";
import type { LinkResponse } from "../../../plugins/actions/chat-vote.ts";
import { renderVoteForm } from "../../../plugins/notify-slack/vote-views.ts";
import { needs } from "../../support/features.ts";
import { voteByLink } from "../../support/link-vote.ts";
import { ASKING, askedMessage, closedMessage, eventMessage, HOSTILE, HOSTILE_ACTION } from "../../support/receiver.ts";
import { type Answer, ASKED, startService, type Service, person } from "../../support/service.ts";
import {
  isView,
  SIGNING_SECRET,
  signAsSlack,
  startSlack,
  textsOf,
  TOKEN,
  type SlackMessage,
  type SlackServer,
} from "../../support/slack.ts";
import { eventually } from "../../support/wait.ts";

const never = new AbortController().signal;
const HOUR = 3_600_000;
let slack: SlackServer;
let notifier: Notifier;

beforeEach(async () => {
  slack = await startSlack();
  notifier = createNotifier({ token: TOKEN, api_url: `${slack.url}/` });
});
afterEach(() => slack.close());

const deliver = async (message: Message): Promise<DeliveryResult> =>
  (await notifier.deliver(message, never)) as DeliveryResult;
const failure = async (message: Message): Promise<NotifierError> => {
  const error = await deliver(message).then(
    () => assert.fail("it was delivered"),
    (e: unknown) => e,
  );
  assert.ok(error instanceof Error);
  assert.ok(!error.message.includes(TOKEN));
  return error as NotifierError;
};
const newest = (): SlackMessage => slack.messages.at(-1) as SlackMessage;
const buttons = ({ blocks }: SlackMessage): string[] =>
  blocks
    .filter(({ type }) => type === "actions")
    .flatMap(({ elements }) => elements.map(({ url }: { url: string }) => url));
const codes = ({ blocks }: SlackMessage): string[] =>
  blocks
    .filter(({ type, text }) => type === "section" && text?.type === "mrkdwn")
    .map(({ text }) => text.text as string);
/** The request as a reader would copy it from the code blocks. */
const shown = (message: SlackMessage): string[] => {
  const [, code = ""] = /```\n([\s\S]*)\n```/.exec(codes(message)[0] as string) ?? [];
  return code.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&").split("\n");
};

const HOSTILE_LINES = [
  "amount: 500",
  "note:",
  "  | [U+0060][U+0060][U+0060][U+000D]",
  "  | Bcc: eve@example.com[U+000D]",
  "  | [U+000D]",
  "  | <b>approved</b> <!everyone> <@U0EVE0000> [U+202E][U+200B]",
  "<key>: 2 items",
  "  1. &amp;",
  "  2. *bold*",
];

describe("messages", () => {
  test("a request lists what the page offers with an approval, as plain text", async () => {
    const offers = [
      "equal requests only: 0 of the last 40 requests",
      'a repo may be "<!everyone>": 4 requests, such as *b*',
    ];
    await deliver(askedMessage("U0123456789", {}, { offers }));
    const [offer] = newest().blocks.filter(({ text }) => /later requests/.test(text?.text ?? ""));
    assert.equal(offer?.text?.type, "plain_text");
    assert.deepEqual(offer?.text?.text.split("\n"), [
      "Your approval can also cover later requests. The approval page offers:",
      "• equal requests only: 0 of the last 40 requests",
      '• a repo may be "&lt;!everyone&gt;": 4 requests, such as *b*',
    ]);
    await deliver(askedMessage("U0123456789"));
    assert.ok(!textsOf(newest()).some((text) => text.includes("later requests")));
  });

  test("a request shows the action, with a button to the page, and returns a reference to its message", async () => {
    const { reference } = await deliver(askedMessage("U0123456789"));
    assert.equal(reference, `D0123456789:${newest().ts}`);
    assert.equal(newest().text, "Approval needed: stripe refund (high risk)");
    const texts = textsOf(newest());
    for (const fact of [
      "Agent\nsupport-bot",
      "Operation\nstripe refund",
      "Risk\nhigh",
      "Policy\npayments / other refunds",
      "Reason\nrefunds above 100 need an approver",
      "Expires\n2026-01-31 20:00:00 UTC",
      "Approvals\n0 of 1",
    ])
      assert.ok(texts.includes(fact), fact);
    assert.deepEqual(shown(newest()), ["amount: 500", "currency: USD"]);
    assert.deepEqual(buttons(newest()), ["https://assent.example/approve#apl1_secret.mac"]);
    assert.ok(texts.some((text) => text.includes("votes as anna")));
    await deliver(askedMessage("C0123456789", { person: null }));
    assert.ok(textsOf(newest()).some((text) => text.includes("asks for your key")));
  });

  test("the outcome replaces the message: who, when, why, and no button", async () => {
    const ends: [Parameters<typeof closedMessage>[2], string, RegExp][] = [
      [{}, "Approved: stripe refund", /^Approved by anna at 2026-01-31 13:00:00 UTC\.$/],
      [{ status: "executing" }, "Approved: stripe refund", /^Approved by anna/],
      [
        {
          status: "denied",
          votes: [
            {
              approver: "key:0190",
              approve: false,
              on_behalf_of: null,
              break_glass: false,
              reason: "not this one",
              at: "2026-01-31T13:00:00.000Z",
            },
          ],
        },
        "Denied: stripe refund",
        /^Denied by the key 0190 at .* \(“not this one”\)\.$/,
      ],
      [
        { status: "expired", votes: [] },
        "Expired: stripe refund",
        /^The request expired at 2026-01-31 20:00:00 UTC\. No one denied it/,
      ],
      [{ status: "cancelled", votes: [] }, "Cancelled: stripe refund", /^The request was cancelled/],
    ];
    for (const [about, title, ending] of ends) {
      const { reference = null } = await deliver(askedMessage("C0123456789"));
      await deliver(closedMessage("C0123456789", reference, about));
      assert.deepEqual([newest().updates, newest().text, buttons(newest())], [1, title, []]);
      assert.match(newest().blocks[1].text.text, ending);
    }
    assert.equal(slack.messages.length, ends.length);
  });

  test("the outcome of a deleted or unknown message is posted as a new message", async () => {
    await deliver(closedMessage("C0123456789", "C0123456789:1600000000.000001"));
    await deliver(closedMessage("C0123456789", null));
    assert.deepEqual(
      slack.messages.map(({ text, updates }) => [text, updates]),
      [
        ["Approved: stripe refund", 0],
        ["Approved: stripe refund", 0],
      ],
    );
  });

  test("a reminder is in the thread of the request; an escalation is a new message", async () => {
    const { reference = null } = await deliver(askedMessage("U0123456789"));
    const { ts } = newest();
    await deliver(askedMessage("U0123456789", { kind: "approval_reminder", reference }));
    assert.deepEqual(
      [newest().channel, newest().thread_ts, newest().text],
      ["D0123456789", ts, "Reminder, approval needed: stripe refund (high risk)"],
    );
    assert.equal(buttons(newest()).length, 1);
    await deliver(askedMessage("U0123456789", { kind: "approval_escalated" }));
    assert.deepEqual(
      [newest().thread_ts, newest().text],
      [undefined, "Approval still needed: stripe refund (high risk)"],
    );
    slack.plans.push({ error: "thread_not_found" });
    await deliver(askedMessage("U0123456789", { kind: "approval_reminder", reference }));
    assert.deepEqual([newest().thread_ts, codes(newest()).length], [undefined, 1]);
  });

  test("text that an agent wrote cannot add markup, a mention or a line", async () => {
    await deliver(
      askedMessage("C0123456789", {}, { ...HOSTILE, reason: "<!channel> *now*\n<https://evil.example|approve>" }),
    );
    for (const text of textsOf(newest())) {
      assert.doesNotMatch(text, /[<>\u202e\u200b\u2067\r]/, text);
      assert.doesNotMatch(text, /&(?!amp;|lt;|gt;)/, text);
    }
    // Only code and our labels are markup; everything else is plain text.
    for (const code of codes(newest())) assert.match(code, /^(\*Parameters\*\n)?```\n[^`]*\n```$/);
    assert.deepEqual(shown(newest()), HOSTILE_LINES);
    assert.ok(textsOf(newest()).some((text) => text.includes("[U+202E]gnp.exe")));
    assert.ok(textsOf(newest()).includes("Reason\n&lt;!channel&gt; *now*[U+000A]&lt;https://evil.example|approve&gt;"));
    const sent = JSON.parse(slack.receiver.received[0]?.body as string);
    assert.deepEqual(
      [sent.parse, sent.link_names, sent.mrkdwn, sent.unfurl_links, sent.unfurl_media],
      ["none", false, false, false, false],
    );
  });

  test("a long request is cut at Slack's limits, and says so", async () => {
    const params = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`key ${i}`, "<&>\u202e😀".repeat(5)]));
    await deliver(
      askedMessage(
        "C0123456789",
        {},
        { params, context: { also: "this" }, tool: "<".repeat(256), operation: "&".repeat(256) },
      ),
    );
    assert.equal(codes(newest()).length, 3);
    for (const code of codes(newest()))
      assert.doesNotMatch(code, /&(?!amp;|lt;|gt;)|\\u[0-9a-f]{0,3}(?![0-9a-f])|[\ud800-\udbff](?![\udc00-\udfff])/);
    assert.ok(textsOf(newest()).some((text) => text.startsWith("Some lines are collapsed")));
    assert.ok((newest().blocks[0].text.text as string).endsWith("…"));
    await deliver(askedMessage("C0123456789", {}, { params: { a: "x".repeat(500) } }));
    assert.ok(!textsOf(newest()).some((text) => text.startsWith("Some lines are collapsed")));
  });

  test("if Slack rejects the message as too long, a shorter one is posted", async () => {
    slack.plans.push({ error: "msg_blocks_too_long" });
    await deliver(askedMessage("C0123456789"));
    assert.deepEqual([codes(newest()), buttons(newest()).length], [[], 1]);
    assert.ok(textsOf(newest()).some((text) => text.includes("too long for Slack")));
  });
});

describe("failures", () => {
  test("permanent errors are not retried; the others are retried when Slack says", async () => {
    const cases: [SlackServer["plans"][number], boolean, number | null, RegExp][] = [
      [{ error: "channel_not_found" }, true, null, /Slack responded to chat\.postMessage with channel_not_found/],
      [{ error: "invalid_auth" }, true, null, /invalid_auth/],
      [{ error: "is_archived" }, true, null, /is_archived/],
      [{ error: "not_in_channel" }, false, null, /not_in_channel/],
      [{ error: "internal_error" }, false, null, /internal_error/],
      [{ status: 429, headers: { "retry-after": "30" } }, false, 30_000, /limits the rate/],
      [{ status: 503 }, false, null, /status 503/],
      [{ status: 302, headers: { location: "http://127.0.0.1:1/" } }, false, null, /status 302/],
    ];
    for (const [plan, permanent, retryAfterMs, words] of cases) {
      slack.plans.push(plan);
      const error = await failure(askedMessage("C0123456789"));
      assert.match(error.message, words);
      assert.deepEqual([error.permanent, error.retryAfterMs], [permanent, retryAfterMs], error.message);
    }
    for (const text of ["<html>", "[]", "null", `{"ok":true,"x":"${"x".repeat(1_100_000)}"}`]) {
      slack.plans.push({ status: 200, text });
      assert.match((await failure(askedMessage("C0123456789"))).message, /is not from Slack|larger than/);
    }
    assert.equal((await failure(eventMessage("C0123456789"))).permanent, true);
    assert.equal(slack.messages.length, 0);
  });

  test("an attempt ends when the signal aborts", async () => {
    slack.receiver.answer = () => {};
    const stop = new AbortController();
    const stopped = assert.rejects(
      Promise.resolve(notifier.deliver(askedMessage("C0123456789"), stop.signal)),
      /stopping/,
    );
    await slack.receiver.next(() => true);
    stop.abort(new Error("the service is stopping"));
    await stopped;
  });

  test("ids, tokens and addresses are validated at startup; personal links do not go to a channel", () => {
    assert.deepEqual(
      [
        notifier.check?.("U0123456789", "anna"),
        notifier.check?.("D0123456789", "anna"),
        notifier.check?.("C0123456789", null),
      ],
      [null, null, null],
    );
    assert.match(notifier.check?.("#finance", null) ?? "", /is not a Slack id/);
    assert.match(notifier.check?.("C0123456789", "anna") ?? "", /several people see/);
    assert.throws(() => createNotifier({ token: "secret" }), /xoxb-/);
    for (const api_url of ["http://slack.example/api", "nonsense", "ftp://127.0.0.1/"])
      assert.throws(() => createNotifier({ token: TOKEN, api_url }), /api_url/);
  });
});

describe("in a whole service", () => {
  let service: Service;
  const plugin = (options: unknown): { plugin: Plugin; options: unknown; origin: string } => ({
    plugin: notifySlack as Plugin,
    options,
    origin: "notify-slack",
  });
  const start = async (policy = ASKING, options: object = {}): Promise<{ owner: string; to: string }> => {
    const anna = { owner: person("anna"), to: "U0ANNA00000" };
    service = await startService({
      policy,
      plugins: [plugin({ token: TOKEN, api_url: slack.url, ...options })],
      change(config) {
        config.server.public_url = "https://assent.example";
        config.channels = {
          finance: {
            notifier: "notify-slack",
            people: [anna],
            places: [{ to: "C0FINANCE00" }],
          },
        };
      },
    });
    return anna;
  };
  const message = (channel: string, title: string): Promise<SlackMessage> =>
    eventually(
      () => slack.messages.find((one) => one.channel === channel && one.text.startsWith(title)),
      () => JSON.stringify(slack.messages),
    );

  test("a hostile request is posted and decided by its link, and both messages change", async () => {
    await start();
    try {
      const submitted = await service.call("POST", "/v1/actions", { body: HOSTILE_ACTION });
      assert.equal(submitted.status, 202, JSON.stringify(submitted.body));
      const asked = await message("D0ANNA00000", "Approval needed");
      await message("C0FINANCE00", "Approval needed");
      assert.deepEqual(shown(asked), HOSTILE_LINES);
      const [link = ""] = buttons(asked);
      const voted = await voteByLink(service, link.slice(link.indexOf("#") + 1), true, "<!here> fine\r\n");
      assert.equal(voted.status, 200, JSON.stringify(voted.body));
      for (const channel of ["D0ANNA00000", "C0FINANCE00"])
        assert.match(
          (await message(channel, "Approved")).blocks[1].text.text,
          /^Approved by anna at .* \(“&lt;!here&gt; fine\[U\+000D\]\[U\+000A\]”\)\.$/,
        );
      assert.deepEqual(
        slack.messages.map(({ updates }) => updates),
        [1, 1],
      );
    } finally {
      await service.close();
    }
  });

  test("a timed-out request says so in its message", needs("deliveries"), async () => {
    await start();
    try {
      await service.call("POST", "/v1/actions", { body: ASKED });
      await message("D0ANNA00000", "Approval needed");
      await message("C0FINANCE00", "Approval needed");
      await eventually(
        async () =>
          (await service.call("GET", "/v1/deliveries?state=delivered", { key: service.admin })).body.deliveries
            .length === 2
            ? true
            : undefined,
        () => "not delivered",
      );
      service.clock.now += 9 * HOUR;
      const expired = await message("D0ANNA00000", "Expired");
      assert.match(expired.blocks[1].text.text, /^The request expired at/);
      assert.ok(!textsOf(expired).some((text) => text.startsWith("Denied")));
    } finally {
      await service.close();
    }
  });

  /** Sends what Slack sends when a person presses a button or submits a form. */
  const interact = (payload: object, headers?: (body: string) => Record<string, string>): Promise<Answer> => {
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
    return service.call("POST", "/slack/interactions", {
      key: null,
      raw: body,
      headers: (headers ?? signAsSlack)(body),
    });
  };
  const press = (button: any, user = "U0ANNA00000"): Promise<Answer> =>
    interact({ type: "block_actions", user: { id: user }, trigger_id: "trigger", actions: [button] });
  const submit = (view: any, reason: string | null, user = "U0ANNA00000"): Promise<Answer> =>
    interact({
      type: "view_submission",
      user: { id: user },
      view: { ...view, state: { values: { reason: { text: { type: "plain_text_input", value: reason } } } } },
    });
  const voteButtons = (posted: SlackMessage): any[] =>
    posted.blocks
      .flatMap(({ type, elements }) => (type === "actions" ? elements : []))
      .filter(({ action_id }: { action_id: string }) => action_id.startsWith("vote_"));
  const VOTING = { signing_secret: SIGNING_SECRET };

  test("a person approves in Slack with a form that shows the request, and the reason is recorded", async () => {
    await start(ASKING.replace("expires_in: 8h", 'expires_in: 8h, preview: "Charge {params.amount}"'), VOTING);
    try {
      const { id } = (await service.call("POST", "/v1/actions", { body: HOSTILE_ACTION })).body;
      const asked = await message("D0ANNA00000", "Approval needed");
      assert.deepEqual(voteButtons(await message("C0FINANCE00", "Approval needed")), [], "a place votes for no one");
      const [approveButton, denyButton] = voteButtons(asked);
      assert.equal((await press(denyButton)).status, 200);
      assert.equal((await press(approveButton)).status, 200);
      const [denial, form] = slack.views;
      assert.deepEqual([denial.submit.text, form.submit.text], ["Deny", "Approve"]);
      const texts = textsOf({ text: "", blocks: form.blocks } as unknown as SlackMessage);
      assert.ok(texts.includes("Request\nCharge 500"), JSON.stringify(texts));
      assert.deepEqual(shown({ blocks: form.blocks } as unknown as SlackMessage), HOSTILE_LINES);
      const answer = await submit(form, "<!here> fine");
      assert.equal(answer.body.response_action, "update", JSON.stringify(answer.body));
      assert.ok(isView(answer.body.view));
      assert.match(JSON.stringify(answer.body.view), /The request is approved\./);
      const { approvals } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
      assert.deepEqual([approvals[0].approver, approvals[0].reason], [person("anna"), "<!here> fine"]);
      assert.deepEqual(voteButtons(await message("D0ANNA00000", "Approved")), []);
      const again = await submit(form, "once more");
      assert.equal(again.body.response_action, "update");
      assert.match(JSON.stringify(again.body.view), /already voted on this request\. The request is approved\./);
      await press(approveButton);
      assert.match(JSON.stringify(slack.views.at(-1)), /no longer pending: approved/);
    } finally {
      await service.close();
    }
  });

  test("the form says that a person changed the request, what the agent proposed, and that a fact is shortened", () => {
    const { action } = askedMessage("U0ANNA00000");
    const form = { to: "U0ANNA00000", link: "", approve: true, shown: "" };
    const textsIn = (about: object): string[] => {
      const approvals = { approvals: [], approvals_needed: 1 };
      const { names } = action;
      const answer = { approver: "user:anna", names, action: { ...action, ...approvals, proposed: null, ...about } };
      const { blocks } = renderVoteForm(answer as unknown as LinkResponse, form) as SlackMessage;
      return textsOf({ text: "", blocks } as unknown as SlackMessage);
    };
    const proposed = { params: { amount: "9000\u202e" }, edited_by: "user:bob" };
    const changed = textsIn({ proposed });
    assert.ok(changed.includes("Changed by\nbob"), JSON.stringify(changed));
    assert.ok(changed.includes("Proposed by the agent\namount: 9000[U+202E]"), JSON.stringify(changed));
    const isShortened = (texts: string[]) => texts.some((text) => text.startsWith("Some lines are collapsed"));
    assert.ok(!isShortened(changed));
    assert.ok(isShortened(textsIn({ reason: "x".repeat(400) })));
  });

  test("only the person to whom Slack showed the button votes with it, and only Slack's signature counts", async () => {
    await start(ASKING, VOTING);
    try {
      const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
      const [button] = voteButtons(await message("D0ANNA00000", "Approval needed"));
      await press(button, "U0EVE000000");
      assert.match(JSON.stringify(slack.views.at(-1)), /sent to another person/);
      await press(button);
      const form = slack.views.at(-1);
      assert.equal((await submit(form, null, "U0EVE000000")).status, 400);
      const payload = { type: "view_submission", user: { id: "U0ANNA00000" }, view: form };
      const HOUR_AGO = Date.now() - HOUR;
      for (const headers of [
        (body: string) => signAsSlack(body, "another secret of some length"),
        (body: string) => signAsSlack(`${body}&x=1`),
        (body: string) => signAsSlack(body, SIGNING_SECRET, HOUR_AGO),
        (body: string) => ({ ...signAsSlack(body), "x-slack-signature": "" }),
        () => ({ "content-type": "application/x-www-form-urlencoded" }),
      ])
        assert.equal((await interact(payload, headers)).status, 401);
      assert.equal((await interact({})).status, 200, "other interactions have no effect");
      assert.equal((await press({ ...button, value: "x" })).status, 400);
      const { status } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
      assert.equal(status, "pending_approval");
    } finally {
      await service.close();
    }
  });

  test("a button that was sent to an earlier Slack account of the person votes for no one", async () => {
    const anna = await start(ASKING, VOTING);
    try {
      const { id } = (await service.call("POST", "/v1/actions", { body: ASKED })).body;
      const [button] = voteButtons(await message("D0ANNA00000", "Approval needed"));
      await press(button);
      const form = slack.views.at(-1);
      anna.to = "U0ANNANEW00";
      await service.restart();
      await press(button);
      assert.match(JSON.stringify(slack.views.at(-1)), /sent to an earlier address/);
      assert.match((await submit(form, "fine")).body.errors.reason, /sent to an earlier address/);
      const { status } = (await service.call("GET", `/v1/actions/${id}`, { key: service.admin })).body;
      assert.equal(status, "pending_approval");
    } finally {
      await service.close();
    }
  });

  test("where the rule requires a signed vote, the button leads to the approval page; a changed request is not voted on", async () => {
    await start(ASKING.replace("expires_in: 8h", "expires_in: 8h, signature: passkey"), VOTING);
    try {
      await service.call("POST", "/v1/actions", { body: ASKED });
      const asked = await message("D0ANNA00000", "Approval needed");
      await press(voteButtons(asked)[0]);
      const view = slack.views.at(-1);
      assert.equal(view.title.text, "Sign with your passkey");
      assert.equal(view.submit, undefined);
      assert.deepEqual(buttons(view).filter(Boolean), buttons(asked).filter(Boolean));
      const form = {
        callback_id: "vote",
        private_metadata: JSON.stringify({
          ...JSON.parse(voteButtons(asked)[0].value),
          approve: true,
          shown: "0".repeat(64),
        }),
      };
      assert.match((await submit(form, "fine")).body.errors.reason, /./);
    } finally {
      await service.close();
    }
  });

  test(
    "where a rule allows grants, the message has the scopes and the earlier requests that each would have covered",
    needs("grants"),
    async () => {
      await start(ASKING.replace("expires_in: 8h", "expires_in: 8h, grants: { for: 8h, count: 50 }"));
      try {
        const submit = (repo: string): Promise<unknown> =>
          service.call("POST", "/v1/actions", { body: { ...ASKED, params: { repo } } });
        await submit("web");
        await submit("api");
        await submit("web");
        const offers = await eventually(
          () => {
            const texts = slack.messages.filter(({ channel }) => channel === "D0ANNA00000").map(textsOf);
            const found = texts.flat().filter((text) => text.includes("later requests"));
            return found.length === 3 ? found : undefined;
          },
          () => JSON.stringify(slack.messages),
        );
        assert.deepEqual(offers.at(-1)?.split("\n").slice(1), [
          '• equal requests only: the same parameters and context: 1 of the last 2 requests, such as {"repo":"web"}',
        ]);
      } finally {
        await service.close();
      }
    },
  );

  test(
    "a person approves in Slack and starts a task; a link that Slack has not signed starts none",
    needs("grants", "tasks"),
    async () => {
      await start(ASKING.replace("expires_in: 8h", "expires_in: 8h, grants: { for: 8h, count: 50 }"), VOTING);
      try {
        const params = { repo: "web", note: "<b>&'\u202e" };
        const send = async (more: object = {}): Promise<{ id: string; status: string }> =>
          (await service.call("POST", "/v1/actions", { body: { ...ASKED, params: { ...params, ...more } } })).body;
        await send();
        const [button] = voteButtons(await message("D0ANNA00000", "Approval needed"));
        await press(button);
        const form = slack.views.at(-1);
        assert.ok(isView(form), JSON.stringify(form));
        const condition = textsOf({ text: "", blocks: form.blocks } as unknown as SlackMessage).find((text) =>
          text.includes("Condition: "),
        );
        assert.match(condition ?? "", /params\.repo == "web" && params\.note == .*\[U\+202E\]|params\.note == .*202e/);
        const fill = (fields: Record<string, object>): Promise<Answer> =>
          interact({
            type: "view_submission",
            user: { id: "U0ANNA00000" },
            view: {
              ...form,
              state: {
                values: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { text: value }])),
              },
            },
          });
        const choice = (value: string) => ({ type: "static_select", selected_option: { value } });
        const time = { task_minutes: choice("60"), task_count: choice("5") };
        const title = { type: "plain_text_input", value: "release 2.4" };
        assert.match((await fill({ ...time, task_scope: choice("0") })).body.errors.task_title, /Name the task/);
        assert.match((await fill({ ...time, task_title: title })).body.errors.task_scope, /Choose what the task/);
        const chosen = { ...time, task_title: title, task_scope: choice("0") };
        const excessive = await fill({ ...chosen, task_minutes: choice("600") });
        assert.match(excessive.body.errors.reason, /up to 480 minutes/);
        const { link, shown: digest, scopes } = JSON.parse(form.private_metadata);
        const token = link.split("#")[1];
        const body = {
          token,
          shown: digest,
          approve: true,
          grant: { for: "1h", count: 5, scope: scopes[0], task: "x" },
        };
        const direct = await service.call("POST", "/v1/approval-link/verdict", { key: null, body });
        assert.deepEqual([direct.status, direct.body.code], [422, "VALIDATION_FAILED"]);
        const read = await service.call("POST", "/v1/approval-link", { key: null, body: { token } });
        assert.equal(read.body.offers, undefined);
        const answer = await fill(chosen);
        assert.match(JSON.stringify(answer.body), /The request is approved/, JSON.stringify(answer.body));
        assert.equal((await send()).status, "allowed");
        assert.equal((await send({ force: true })).status, "pending_approval");
        const { tasks } = (await service.call("GET", "/v1/tasks", { key: service.admin })).body;
        assert.deepEqual(
          tasks.map((task: any) => [task.title, task.started_by, task.status, task.grants[0].count]),
          [["release 2.4", person("anna"), "active", 5]],
        );
      } finally {
        await service.close();
      }
    },
  );

  test("without options there is no notifier; incomplete options abort startup", async () => {
    const idle = await startService({ plugins: [plugin({})] });
    assert.deepEqual(
      idle.logged.filter((line) => line.includes("slack")),
      [],
    );
    await idle.close();
    await assert.rejects(
      startService({ plugins: [plugin({ api_url: slack.url })] }),
      /plugin "notify-slack": setup failed: the option "token" is missing/,
    );
    await assert.rejects(startService({ plugins: [plugin({ tokn: TOKEN })] }), /did you mean "token"/);
  });
});
