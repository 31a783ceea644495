/**
 * The part of Slack's Web API that Assent uses, on loopback. It rejects what Slack rejects, with Slack's error names,
 * and stores the posted messages.
 */
import { createHmac } from "node:crypto";
import { startReceiver, type Receiver } from "./receiver.ts";

export interface SlackMessage {
  channel: string;
  ts: string;
  thread_ts?: string;
  text: string;
  blocks: any[];
  /** Number of `chat.update` calls. */
  updates: number;
}

export interface SlackServer {
  url: string;
  messages: SlackMessage[];
  /** Modals that were opened. */
  views: any[];
  receiver: Receiver;
  /** Responses that replace those of the next calls, in order. */
  plans: ({ error: string } | { status: number; headers?: Record<string, string>; text?: string })[];
  close(): Promise<void>;
}

export const TOKEN = "xoxb-1-test";
export const SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5";

export async function startSlack(): Promise<SlackServer> {
  const receiver = await startReceiver();
  const messages: SlackMessage[] = [];
  const server: SlackServer = {
    url: `http://127.0.0.1:${receiver.port}/api`,
    messages,
    views: [],
    receiver,
    plans: [],
    close: () => receiver.close(),
  };
  receiver.answer = (request, response) => {
    const isKnown = request.headers.authorization === `Bearer ${TOKEN}`;
    if (request.path === "/api/auth.test")
      return void response
        .writeHead(200, { "content-type": "application/json; charset=utf-8" })
        .end(JSON.stringify(isKnown ? { ok: true, user_id: "U1" } : { ok: false, error: "invalid_auth" }));
    const plan = server.plans.shift();
    if (plan !== undefined && "status" in plan)
      return void response.writeHead(plan.status, plan.headers ?? {}).end(plan.text ?? "");
    const answer =
      plan === undefined ? take(request.path, request.headers, request.body) : { ok: false, error: plan.error };
    response.writeHead(200, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(answer));
  };

  function take(path: string, headers: Receiver["received"][number]["headers"], raw: string): object {
    if (headers.authorization !== `Bearer ${TOKEN}`) return { ok: false, error: "invalid_auth" };
    if (headers["content-type"] !== "application/json; charset=utf-8") return { ok: false, error: "invalid_form_data" };
    const body = JSON.parse(raw);
    if (path === "/api/views.open") {
      if (body.trigger_id !== "trigger") return { ok: false, error: "invalid_trigger_id" };
      if (!isView(body.view)) return { ok: false, error: "invalid_arguments" };
      server.views.push(body.view);
      return { ok: true, view: body.view };
    }
    const fault = faultOf(body);
    if (fault !== null) return { ok: false, error: fault };
    const known = messages.find(({ channel, ts }) => channel === body.channel && ts === body.ts);
    if (path === "/api/chat.update") {
      if (known === undefined) return { ok: false, error: "message_not_found" };
      Object.assign(known, { text: body.text, blocks: body.blocks, updates: known.updates + 1 });
      return { ok: true, channel: known.channel, ts: known.ts };
    }
    if (path !== "/api/chat.postMessage") return { ok: false, error: "unknown_method" };
    // Slack delivers a message to a user in a direct-message channel, which has a different id.
    const channel = String(body.channel).replace(/^U/, "D");
    const ts = `1700000000.${String(messages.length + 1).padStart(6, "0")}`;
    messages.push({
      channel,
      ts,
      ...(body.thread_ts === undefined ? {} : { thread_ts: body.thread_ts }),
      text: body.text,
      blocks: body.blocks,
      updates: 0,
    });
    return { ok: true, channel, ts };
  }
  return server;
}

const KEYS: Record<string, string[]> = {
  header: ["text"],
  section: ["text", "fields"],
  context: ["elements"],
  actions: ["elements"],
  input: ["block_id", "optional", "label", "hint", "element"],
};

/** Returns the headers with which Slack signs the body of a request to an app. */
export function signAsSlack(body: string, secret = SIGNING_SECRET, at = Date.now()): Record<string, string> {
  const time = String(Math.floor(at / 1000));
  const mac = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
  return {
    "content-type": "application/x-www-form-urlencoded",
    "x-slack-request-timestamp": time,
    "x-slack-signature": `v0=${mac}`,
  };
}

/** Returns true if Slack accepts a modal, including one that is returned in response to a submission. */
export function isView(view: any): boolean {
  return (
    view?.type === "modal" &&
    isText(view.title, 24) &&
    [view.submit, view.close].every((text) => text === undefined || isText(text, 24)) &&
    (view.private_metadata ?? "").length <= 3000 &&
    Array.isArray(view.blocks) &&
    view.blocks.length > 0 &&
    view.blocks.length <= 100 &&
    view.blocks.every(isBlock) &&
    (view.submit !== undefined || !view.blocks.some(({ type }: { type: string }) => type === "input"))
  );
}

function faultOf(body: any): string | null {
  if (typeof body.channel !== "string" || !/^[CDGUW][A-Z0-9]+$/.test(body.channel)) return "channel_not_found";
  if (typeof body.text !== "string" || body.text === "") return "no_text";
  if (body.text.length > 40_000) return "msg_too_long";
  if (!Array.isArray(body.blocks) || body.blocks.length === 0 || body.blocks.length > 50) return "invalid_blocks";
  if (JSON.stringify(body.blocks).length > 30_000) return "msg_blocks_too_long";
  return body.blocks.every(isBlock) ? null : "invalid_blocks";
}

function isBlock(block: any): boolean {
  const keys = KEYS[block.type];
  if (keys === undefined || Object.keys(block).some((key) => key !== "type" && !keys.includes(key))) return false;
  if (block.type === "header") return isText(block.text, 150) && block.text.type === "plain_text";
  if (block.type === "section") {
    const fields = block.fields ?? [];
    return (
      (block.text !== undefined || fields.length > 0) &&
      (block.text === undefined || isText(block.text, 3000)) &&
      fields.length <= 10 &&
      fields.every((field: any) => isText(field, 2000))
    );
  }
  if (block.type === "input")
    return (
      isText(block.label, 2000) &&
      (block.element?.type === "plain_text_input" ||
        (block.element?.type === "static_select" &&
          block.element.options.length > 0 &&
          block.element.options.every((option: any) => isText(option.text, 75) && option.value.length <= 150)))
    );
  if (!Array.isArray(block.elements) || block.elements.length === 0 || block.elements.length > 10) return false;
  if (block.type === "context") return block.elements.every((element: any) => isText(element, 3000));
  return block.elements.every(
    (element: any) =>
      element.type === "button" &&
      isText(element.text, 75) &&
      element.text.type === "plain_text" &&
      (element.value === undefined || element.value.length <= 2000) &&
      (element.url === undefined || (URL.canParse(element.url) && element.url.length <= 3000)),
  );
}

/**
 * Returns true if Slack accepts a text object. Slack interprets `<…>` as a link or a mention, and `&` as the start of
 * an entity.
 */
function isText(text: any, max: number): boolean {
  if (text?.type !== "plain_text" && text?.type !== "mrkdwn") return false;
  if (typeof text.text !== "string" || text.text.length === 0 || text.text.length > max) return false;
  if ("emoji" in text && text.type === "mrkdwn") return false;
  return !("verbatim" in text && text.type === "plain_text");
}

/** Returns every string in a message, as it was sent. */
export function textsOf(message: SlackMessage): string[] {
  const texts: string[] = [message.text];
  const walk = (value: any): void => {
    if (typeof value !== "object" || value === null) return;
    if (typeof value.text === "string") texts.push(value.text);
    for (const inner of Object.values(value)) walk(inner);
  };
  walk(message.blocks);
  return texts;
}
