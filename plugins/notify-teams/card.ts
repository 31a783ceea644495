/**
 * Renders messages as adaptive cards. All text is in text runs, in which Teams does not interpret Markdown, so that
 * text of agents cannot become markup or a link.
 */
import {
  type ApprovalMessage,
  type ClosedMessage,
  describeLink,
  describeOutcome,
  listMessageFacts,
  messageTitle,
  type NoticeMessage,
  otherRequestLines,
  requestSections,
} from "../../src/plugin.ts";

/** Maximum size of a message. Below Teams' limit of 28 KB. */
const MAX_BYTES = 24_000;

type Facts = readonly (readonly [name: string, value: string])[];

/** Renders a message. Omits a request that is too long for Teams, which is then only on the approval page. */
export function renderCard(message: ApprovalMessage | ClosedMessage | NoticeMessage): object {
  if (message.kind === "notice") {
    const notice = message.notice;
    return card(
      [title(notice.title), line(notice.opening), ...facts(notice.facts)],
      [openUrl("Open the console", message.link)],
    );
  }
  const head = [title(messageTitle(message)), ...("link" in message ? [] : [line(describeOutcome(message))])];
  const tail = "link" in message ? [line(describeLink(message), { isSubtle: true, size: "Small" })] : [];
  const others = "link" in message ? otherRequestLines(message).filter((_, i) => i % 2 === 0) : [];
  const actions =
    "link" in message
      ? [message.link, ...message.others.map(({ link }) => link)].map((link, i) =>
          openUrl(i === 0 ? "Open the approval page" : `Open request ${i + 1}`, link),
        )
      : [];
  const factSet = facts(listMessageFacts(message.action));
  const lines = others.map((text) => line(text));
  const whole = card([...head, ...factSet, ...sections(message.action), ...lines, ...tail], actions);
  if (Buffer.byteLength(JSON.stringify(whole)) <= MAX_BYTES) return whole;
  const hint = line("The request is too long for Teams. The approval page shows it.");
  const brief = card([...head, ...factSet, hint, ...lines, ...tail], actions);
  return Buffer.byteLength(JSON.stringify(brief)) <= MAX_BYTES ? brief : card([...head, hint, ...tail], actions);
}

function card(body: object[], actions: object[]): object {
  return {
    type: "AdaptiveCard",
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    version: "1.5",
    msteams: { width: "Full" },
    body,
    ...(actions.length === 0 ? {} : { actions }),
  };
}

function openUrl(text: string, url: string): object {
  return { type: "Action.OpenUrl", title: text, url };
}

function title(text: string): object {
  return line(text, { weight: "Bolder", size: "Large" });
}

/**
 * Renders one line of text.
 * @param style style of its text run
 */
function line(text: string, style: object = {}): object {
  return { type: "RichTextBlock", inlines: [run(text, style)] };
}

function facts(values: Facts): object[] {
  return values.map(([name, value]) => ({
    type: "RichTextBlock",
    spacing: "Small",
    inlines: [run(`${name}: `, { weight: "Bolder" }), run(value)],
  }));
}

function sections(action: Parameters<typeof requestSections>[0]): object[] {
  return requestSections(action).flatMap(([name, lines]) => [
    line(name, { weight: "Bolder" }),
    ...lines.map((text) => ({
      type: "RichTextBlock",
      spacing: "None",
      // Clients drop empty lines, and the leading spaces that show the nesting.
      inlines: [
        run(
          text.replace(/^ +/, (spaces) => "\u00a0".repeat(spaces.length)),
          { fontType: "Monospace" },
        ),
      ],
    })),
  ]);
}

function run(text: string, style: object = {}): object {
  return { type: "TextRun", text: withoutFunctions(text === "" ? "\u00a0" : text), ...style };
}

/** Breaks up date functions such as `{{DATE(…)}}`, which Teams clients would otherwise expand in any text of a card. */
function withoutFunctions(text: string): string {
  return text.replaceAll(/\{\{(?=\s*(?:DATE|TIME)\s*\()/gi, "{ {");
}
