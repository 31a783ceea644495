/**
 * The endpoint that Discord calls when a person presses a button. Discord signs each call, and states who pressed the
 * button. Only the user to whom the message was sent can vote with it.
 */
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { Facade, FacadeCall } from "../../src/plugin.ts";
import { fitsDiscord, renderMessage, voteButton } from "./render.ts";
import { answerButton } from "../actions/api.ts";

const INTERACTIONS_PATH = "/discord/interactions";
const MAX_BODY = 262_144;
/**
 * Maximum difference between a call's time and the current time, so that a recorded call cannot be replayed later.
 * Seconds.
 */
const MAX_AGE_SECONDS = 300;
/** The encoding of an Ed25519 public key, without the key itself (RFC 8410). */
const KEY_PREFIX = "302a300506032b6570032100";

const PING = 1;
const BUTTON_PRESSED = 3;
/** Response types, and the flag of a message that only the person who pressed the button sees. */
const RESPONSES = { pong: 1, message: 4, update: 7 };
const EPHEMERAL = 64;

/** The members of an interaction that this module reads. */
interface Interaction {
  type?: unknown;
  data?: { custom_id?: unknown };
  user?: { id?: unknown };
  member?: { user?: { id?: unknown } };
  message?: { components?: unknown };
}

/**
 * @param publicKey the public key of the application, hex
 * @param token the token of the bot, with which buttons are sealed
 */
export function createInteractions(publicKey: string, token: string): Facade {
  const key = createPublicKey({ key: Buffer.from(KEY_PREFIX + publicKey, "hex"), format: "der", type: "spki" });
  return {
    path: INTERACTIONS_PATH,
    title: "Discord interactions",
    methods: ["POST"],
    verifiesCallers: true,
    bodyLimit: MAX_BODY,
    async serve(call) {
      if (!isSigned(key, call.request.headers, call.body, Date.now()))
        return { status: 401, text: "the request is not signed with the public key of this service's application" };
      const interaction = readInteraction(call.body);
      if (interaction === null) return { status: 400, text: "the body is not an interaction" };
      if (interaction.type === PING) return { status: 200, json: { type: RESPONSES.pong } };
      if (interaction.type !== BUTTON_PRESSED) return { status: 400, text: "the service has only buttons" };
      return { status: 200, json: await answer(call, interaction, token) };
    },
    fault: ({ status, detail }) => ({ status, text: detail }),
  };
}

async function answer(call: FacadeCall, { data, user, member, message }: Interaction, token: string): Promise<object> {
  const presser = user?.id ?? member?.user?.id;
  const sent = { to: typeof presser === "string" ? presser : "", link: linkOf(message?.components) };
  const value = typeof data?.custom_id === "string" ? data.custom_id : "";
  const result = await answerButton(call, token, value, sent);
  if (result.kind === "confirm") {
    // A vote covers the whole request, so the person must be able to see it.
    if (!fitsDiscord(result.sheet)) return notice("The request is too long for Discord. Vote on the approval page.");
    const button = voteButton(result.approve ? "Approve" : "Deny", result.approve, result.value);
    return { type: RESPONSES.message, data: { ...renderMessage(result.sheet, [button]), flags: EPHEMERAL } };
  }
  return notice(result.text, result.kind === "voted");
}

/** Returns a notice that only the person sees. After a vote, it replaces the form. */
function notice(text: string, replacesForm = false): object {
  const sheet = { title: text, opening: "", link: null, others: [], facts: [], sections: [] };
  const { content, allowed_mentions } = renderMessage(sheet);
  const type = replacesForm ? RESPONSES.update : RESPONSES.message;
  return { type, data: { content, allowed_mentions, embeds: [], components: [], flags: EPHEMERAL } };
}

/** Returns the personal link among the buttons of a message, which Discord returns unchanged; "" if there is none. */
function linkOf(components: unknown): string {
  const buttons = Array.isArray(components)
    ? (components as ({ components?: unknown } | null)[]).flatMap((row) =>
        Array.isArray(row?.components) ? (row.components as unknown[]) : [],
      )
    : [];
  const urls = buttons.map((button) => (button as { url?: unknown } | null)?.url);
  return urls.find((url): url is string => typeof url === "string") ?? "";
}

/** Returns true if Discord signed the body. @param now milliseconds since the epoch */
function isSigned(key: KeyObject, headers: Headers, body: Uint8Array, now: number): boolean {
  const time = headers.get("x-signature-timestamp") ?? "";
  const signature = headers.get("x-signature-ed25519") ?? "";
  if (!/^\d{1,12}$/.test(time) || Math.abs(now / 1000 - Number(time)) > MAX_AGE_SECONDS) return false;
  if (!/^[0-9a-f]{128}$/i.test(signature)) return false;
  return verify(null, Buffer.concat([Buffer.from(time), body]), key, Buffer.from(signature, "hex"));
}

function readInteraction(body: Uint8Array): Interaction | null {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as unknown;
    return typeof value === "object" && value !== null ? (value as Interaction) : null;
  } catch {
    return null;
  }
}
