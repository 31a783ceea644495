/**
 * The endpoint that Slack calls when a person presses a button or submits the form. The vote counts as a vote by
 * approval link: the same rules apply, and the token of the link identifies the voter. Slack's signature proves which
 * user pressed the button, and only the user to whom the message was sent can vote.
 */
import { codeOf, describeStatus, detailOf, type LinkResponse } from "../actions/api.ts";
import type { ApiResponse, Facade, FacadeCall, Reply, VerifiedAccount } from "../../src/plugin.ts";
import { isSignedBySlack } from "./request-signature.ts";
import type { SlackCall } from "./slack-api.ts";
import { readVoteButton, readVoteForm, tokenOf, VOTE_ACTIONS, type VoteButton } from "./vote-button.ts";
import { REASON_BLOCK, REASON_INPUT, renderNoticeView, renderVoteForm, TASK_FIELDS, VOTE_VIEW } from "./vote-views.ts";

const INTERACTIONS_PATH = "/slack/interactions";
const MAX_BODY = 262_144;
/** Shorter than 3 seconds, after which Slack shows the person an error. */
const OPEN_TIMEOUT_MS = 2_500;

type FormValues = Record<
  string,
  Record<string, { value?: unknown; selected_option?: { value?: unknown } | null } | undefined> | undefined
>;

/** The members of Slack's payloads that this module reads. */
interface Payload {
  type?: unknown;
  trigger_id?: unknown;
  user?: { id?: unknown };
  actions?: { action_id?: unknown; value?: unknown }[];
  view?: {
    callback_id?: unknown;
    private_metadata?: unknown;
    state?: { values?: FormValues };
  };
}

/** @param secret the app's signing secret */
export function createInteractions(secret: string, slack: SlackCall): Facade {
  return {
    path: INTERACTIONS_PATH,
    title: "Slack interactivity",
    methods: ["POST"],
    verifiesCallers: true,
    bodyLimit: MAX_BODY,
    async serve(call) {
      if (!isSignedBySlack(secret, call.request.headers, call.body, Date.now()))
        return { status: 401, text: "the request is not signed with the signing secret of this service's Slack app" };
      const payload = readPayload(call.body);
      if (payload === null) return { status: 400, text: "the body is not a Slack payload" };
      if (payload.type === "block_actions") return open(call, payload, slack);
      if (payload.type === "view_submission" && payload.view?.callback_id === VOTE_VIEW) return submit(call, payload);
      return OK;
    },
    fault: ({ status, detail }) => ({ status, text: detail }),
  };
}

const OK: Reply = { status: 200, text: "" };

/** Opens the form, or a notice that explains why the person cannot vote here. */
async function open(call: FacadeCall, { user, trigger_id, actions = [] }: Payload, slack: SlackCall): Promise<Reply> {
  const [pressed] = actions;
  const approve = pressed?.action_id === VOTE_ACTIONS.approve;
  // Buttons with a link also call this endpoint.
  if (!approve && pressed?.action_id !== VOTE_ACTIONS.deny) return OK;
  const button = readVoteButton(pressed.value);
  if (button === null || typeof trigger_id !== "string") return { status: 400, text: "the button has no value" };
  const view =
    user?.id === button.to
      ? await viewFor(call, button, approve)
      : renderNoticeView("Not your request", "This request was sent to another person. Only they can answer it here.");
  await slack("views.open", { trigger_id, view }, AbortSignal.timeout(OPEN_TIMEOUT_MS));
  return OK;
}

/** Returns the form, or a notice with a link to the page if the person cannot vote here. */
async function viewFor(call: FacadeCall, button: VoteButton, approve: boolean): Promise<object> {
  const answer = await call.callApi("POST", "/v1/approval-link", {
    json: { token: tokenOf(button) },
    account: accountOf(button),
  });
  const page = button.link;
  if (answer.status !== 200) return renderNoticeView("Not possible", detailOf(answer), page);
  const link = answer.json as LinkResponse;
  if (link.shown === null)
    return renderNoticeView("Settled", `The request is no longer pending: ${link.action.status}.`);
  if (link.signature_required)
    return renderNoticeView(
      "Sign with your passkey",
      "The rule accepts only votes that are signed with a passkey. Vote on the approval page.",
      page,
    );
  if (approve && link.refusal !== null) return renderNoticeView("Not possible", link.refusal, page);
  return renderVoteForm(link, { ...button, approve, shown: link.shown });
}

/**
 * Votes. If the service rejects the vote, the form and the typed reason stay open. If the response to a recorded
 * vote is late, the person can submit the form again, and then sees the status of the request.
 */
async function submit(call: FacadeCall, { user, view }: Payload): Promise<Reply> {
  const form = readVoteForm(view?.private_metadata);
  if (form === null || user?.id !== form.to) return { status: 400, text: "the form belongs to another person" };
  const { shown, approve } = form;
  const values = view?.state?.values ?? {};
  const typed = readText(values, REASON_BLOCK);
  const reason = typed === null ? {} : { reason: typed };
  const task = readText(values, TASK_FIELDS.title);
  const chosen = readChoice(values, TASK_FIELDS.scope);
  const scope = chosen === null ? undefined : form.scopes[Number(chosen)];
  if (scope === undefined && task !== null)
    return refuse(TASK_FIELDS.scope, "Choose what the task allows, or remove its name.");
  if (scope !== undefined && task === null) return refuse(TASK_FIELDS.title, "Name the task, such as release 2.4.");
  const time = `${readChoice(values, TASK_FIELDS.minutes)}m`;
  const grant = { task, scope, for: time, count: Number(readChoice(values, TASK_FIELDS.count)) };
  const answer = await call.callApi("POST", "/v1/approval-link/verdict", {
    json: { token: tokenOf(form), shown, approve, ...reason, ...(scope === undefined ? {} : { grant }) },
    account: accountOf(form),
  });
  const done = `Your vote is recorded.${scope === undefined ? "" : " The task has started."}`;
  if (answer.status === 200) return updateReply("Recorded", done, answer);
  if (codeOf(answer) === "ALREADY_VOTED") {
    const link = await call.callApi("POST", "/v1/approval-link", { json: { token: tokenOf(form) } });
    if (link.status === 200) return updateReply("Voted already", "You have already voted on this request.", link);
  }
  return refuse(REASON_BLOCK, detailOf(answer));
}

/** Displays an error below a field of the form. */
const refuse = (block: string, detail: string): Reply => ({
  status: 200,
  json: { response_action: "errors", errors: { [block]: detail } },
});

function readText(values: FormValues, block: string): string | null {
  const text = values[block]?.[REASON_INPUT]?.value;
  return typeof text === "string" && text.trim() !== "" ? text.trim() : null;
}

function readChoice(values: FormValues, block: string): string | null {
  const value = values[block]?.[REASON_INPUT]?.selected_option?.value;
  return typeof value === "string" ? value : null;
}

/** Returns the account that pressed the button. Slack signed it, and it equals `to`. */
const accountOf = ({ to }: VoteButton): VerifiedAccount => ({ notifier: "notify-slack", to });

/** Replaces the form with a notice of the request's status. */
function updateReply(title: string, text: string, { json }: ApiResponse): Reply {
  const view = renderNoticeView(title, `${text} ${describeStatus((json as LinkResponse).action)}`);
  return { status: 200, json: { response_action: "update", view } };
}

/** Returns the payload in the body that Slack posts; null if there is none. */
function readPayload(body: Uint8Array): Payload | null {
  try {
    const text = new URLSearchParams(new TextDecoder("utf-8", { fatal: true }).decode(body)).get("payload");
    const payload = text === null ? null : (JSON.parse(text) as unknown);
    return typeof payload === "object" && payload !== null ? (payload as Payload) : null;
  } catch {
    return null;
  }
}
