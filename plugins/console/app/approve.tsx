/**
 * The page that links in notifications open. The token in the address authorizes one person. Opening the page only
 * reads the request; a button casts the vote. A signed-in user votes as that user and signs with their passkey.
 */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, encodeSegment, serviceNow, request } from "./core/api.ts";
import type { LinkAnswer } from "./core/api-types.ts";
import { loadParts } from "./core/load-parts.ts";
import { loadMe, storeNames } from "./core/me.ts";
import { type ConsolePart, hasPanels, type VoteAddition, type VoteTerms } from "./core/parts.ts";
import { isUserSession, userSignInAddress } from "./core/session.ts";
import { readDraft } from "./inbox/drafts.ts";
import { IconChip } from "./inbox/request-pane.tsx";
import { RequiredApprovals } from "./inbox/required-approvals.tsx";
import { castVote } from "./inbox/vote.ts";
import { VoteWithAddition } from "./inbox/vote-with-addition.tsx";
import { Badge, OutageBanner, Notice, ErrorNotice, MarkedValue, TimeLeft } from "./ui/elements.tsx";
import { useNow } from "./ui/hooks.ts";
import { PrincipalName } from "./ui/person.tsx";
import { ActionPreview, RequestToVoteOn, RequestHash, RequestOrigin, RiskBadge } from "./ui/request-view.tsx";

const POLL_MS = 5000;
/** Session storage key under which the token is stored while the person signs in. */
const LINK_STORE = "assent.link";
const token = takeToken();
// Opening another link in the same tab changes only the fragment. Reload, so that the page does not keep showing the
// first request.
addEventListener("hashchange", () => {
  if (location.hash !== "") location.reload();
});

const ENDED: Readonly<Record<string, readonly [string, string]>> = {
  approved: ["good", "It is approved."],
  denied: ["bad", "It was denied."],
  expired: ["busy", "It expired before it was settled. The agent has to submit it again."],
  cancelled: ["busy", "It was cancelled before it was settled."],
  executing: ["good", "It was approved and is running."],
  unknown: ["busy", "It was approved and started. Its outcome is unknown."],
  succeeded: ["good", "It was approved and succeeded."],
  failed: ["bad", "It was approved and failed."],
};

interface Lost {
  approve: boolean;
  error: Error;
}

/** A signed-in user who may vote on the request. Their passkey signs the vote. */
interface Signer {
  name: string;
  principal: string;
  terms: VoteTerms | null;
}

/** Returns the user of this browser's session if they may vote on the action; null for anyone else. */
async function findSigner(id: string): Promise<Signer | null> {
  if (!isUserSession()) return null;
  try {
    const { approval_token, approval_terms } = await request("GET /v1/actions/{id}", { path: [id] });
    if (approval_token === undefined) return null;
    const { principal, key: user } = await loadMe();
    return { name: user.name, principal, terms: approval_terms ?? null };
  } catch {
    // The session has ended, or its user cannot see the action. The person can still vote with the link.
    return null;
  }
}

function Approve() {
  const [seen, setSeen] = useState<LinkAnswer | null>(null);
  const [signer, setSigner] = useState<Signer | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [done, setDone] = useState("");
  const [lost, setLost] = useState<Lost | null>(null);
  useNow();
  const isPending = seen?.action.status === "pending_approval";
  const refresh = async (): Promise<void> => {
    try {
      const answer = await request("POST /v1/approval-link", { body: { token }, key: null });
      if (seen === null) setSigner(await findSigner(answer.action.id));
      storeNames(answer.names);
      setSeen(answer);
      setError(null);
    } catch (refusal) {
      setError(refusal);
    }
  };
  useEffect(() => void refresh(), []);
  useEffect(() => {
    if (!isPending) return undefined;
    const timer = setInterval(() => void refresh(), POLL_MS);
    return () => clearInterval(timer);
  }, [isPending]);

  if (seen === null)
    return (
      <main class="approve">
        <h1>Approve or deny</h1>
        {error === null ? <p class="quiet">Loading…</p> : <Refused error={error} onRetry={() => void refresh()} />}
      </main>
    );
  const { action, approver, refusal, signature_required, grants, shown } = seen;
  const cast = async (approve: boolean, reason: string, addition: VoteAddition | null): Promise<boolean> => {
    setLost(null);
    try {
      const status = await (signer === null
        ? voteByLink(shown ?? "", approve, reason)
        : voteSigned(action, approve, reason, addition));
      setDone(
        status === "pending_approval"
          ? "Your approval is recorded; the request needs more approvals."
          : `You ${approve ? "approved" : "denied"} it.`,
      );
      return true;
    } catch (problem) {
      setLost({ approve, error: problem instanceof Error ? problem : new Error("an unknown error") });
      return false;
    } finally {
      await refresh();
    }
  };
  const voter = signer?.principal ?? approver;
  const vote = action.approvals.find((one) => one.approver === voter) ?? null;
  const isLate = action.expires_at !== null && Date.parse(action.expires_at) <= serviceNow();
  const mayVote = signer !== null || (refusal === null && !signature_required && shown !== null);
  const isOpen = isPending && !isLate && mayVote && vote === null;
  return (
    <>
      <OutageBanner />
      <main class="approve">
        <header class="page-head">
          <h1>Approve or deny</h1>
          <span class="quiet">
            You vote as{" "}
            <strong>
              {signer === null ? <PrincipalName principal={approver} /> : <MarkedValue value={signer.name} />}
            </strong>
            {signer === null ? null : ", signed in"}
          </span>
        </header>
        <article class="pane">
          <ActionPreview action={action} />
          <Summary action={action} isPending={isPending} />
          <Messages seen={signer === null ? seen : { ...seen, refusal: null }} {...{ voter, lost, done, isLate }} />
          <RequestToVoteOn action={action} level={2} />
          <h2 class="part">Who has to agree</h2>
          <RequiredApprovals action={action} />
          <RequestOrigin action={action} />
          <RequestHash action={action} />
          <ErrorNotice error={error} />
          {isOpen ? <VoteWithAddition id={action.id} terms={signer?.terms ?? null} cast={cast} /> : null}
          {isOpen && signer === null && grants !== null && hasPanels("vote") ? <SignInToGrant /> : null}
          {isPending && !isLate && signature_required && signer === null ? <SignInToSign /> : null}
        </article>
        <p class="quiet">
          Your vote counts for exactly this request and is recorded under your name.{" "}
          <a href={`/#/approvals/${encodeSegment(action.id)}`}>Open it in the console</a>.
        </p>
      </main>
    </>
  );
}

/**
 * Votes with the link's token. Returns the status after the vote. The service counts the vote only if the request has
 * not changed since this page displayed it.
 */
async function voteByLink(shown: string, approve: boolean, reason: string): Promise<string> {
  const body = { token, shown, approve, ...(reason === "" ? {} : { reason }) };
  return (await request("POST /v1/approval-link/verdict", { body, key: null })).action.status;
}

/**
 * Votes with the user's passkey. Returns the status after the vote. Rejects with an Error if the vote is not recorded.
 */
async function voteSigned(
  action: LinkAnswer["action"],
  approve: boolean,
  reason: string,
  addition: VoteAddition | null,
): Promise<string> {
  const result = await castVote(action, { approve, reason, addition });
  if (result.kind === "failed") throw result.error;
  if (result.kind === "late") throw new Error(result.outcome.text);
  return result.action.status;
}

function Summary({ action, isPending }: { action: LinkAnswer["action"]; isPending: boolean }) {
  return (
    <p class="chips">
      <IconChip icon="bot">
        <MarkedValue value={action.agent_id} />
      </IconChip>
      <RiskBadge risk={action.risk_level} />
      {isPending && action.expires_at !== null ? (
        <IconChip icon="clock">
          <TimeLeft at={action.expires_at} />
        </IconChip>
      ) : (
        <Badge value={action.status} />
      )}
      <IconChip icon="users">
        {action.approvals.filter(({ approve }) => approve).length} of {action.approvals_needed} approvals
      </IconChip>
    </p>
  );
}

/** Rendered instead of the vote buttons if the rules require a vote that is signed with a passkey. */
function SignInToSign() {
  return (
    <Notice kind="busy">
      The rule accepts only votes that are signed with a passkey, by a user who may vote on this.{" "}
      {/* The address must not contain the token: the sign-in page would send it to the service. */}
      <a href={userSignInAddress()} onClick={() => sessionStorage.setItem(LINK_STORE, token)}>
        Sign in as a user
      </a>{" "}
      to vote here.
    </Notice>
  );
}

/**
 * Rendered instead of the grants if a person votes by link. The service checks the grantor again at each use of a
 * grant, which is impossible for a link, so grants need a signed-in user.
 */
function SignInToGrant() {
  return (
    <p class="quiet">
      The rule lets you also allow later requests like this one.{" "}
      <a href={userSignInAddress()} onClick={() => sessionStorage.setItem(LINK_STORE, token)}>
        Sign in as a user
      </a>{" "}
      to do so.
    </p>
  );
}

interface MessagesProps {
  seen: LinkAnswer;
  /** Principal. */
  voter: string;
  lost: Lost | null;
  done: string;
  isLate: boolean;
}

function Messages({ seen: { action, refusal }, voter, lost, done, isLate }: MessagesProps) {
  const isPending = action.status === "pending_approval";
  const reason = readDraft(action.id);
  const [kind, text] = ENDED[action.status] ?? ["busy", `It is ${action.status}.`];
  const ownVote = action.approvals.find((vote) => vote.approver === voter);
  return (
    <div role="status">
      {lost === null ? null : (
        <Notice kind="bad">
          Your {lost.approve ? "approval" : "rejection"} was not recorded: <MarkedValue value={lost.error.message} />.
          {reason === "" ? null : (
            <>
              {" "}
              Your reason is kept: “<MarkedValue value={reason} />”
            </>
          )}
        </Notice>
      )}
      {lost === null && done === "" && !isPending && reason !== "" ? (
        <Notice kind="busy">
          Your vote was not recorded. Your reason is kept: “<MarkedValue value={reason} />”
        </Notice>
      ) : null}
      {done === "" ? null : <Notice kind="good">{done}</Notice>}
      {isPending && isLate ? <Notice kind="busy">{ENDED["expired"]?.[1]}</Notice> : null}
      {isPending ? null : <Notice kind={kind}>{text}</Notice>}
      {isPending && ownVote !== undefined && done === "" ? (
        <Notice kind="busy">You have {ownVote.approve ? "approved" : "denied"} it already; it needs more votes.</Notice>
      ) : null}
      {refusal === null ? null : (
        <Notice kind="bad">
          You cannot vote on this: <MarkedValue value={refusal} />.
        </Notice>
      )}
    </div>
  );
}

/** Rendered if the link is invalid, or the service is unreachable. */
function Refused({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const isInvalid = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
  if (!isInvalid) return <ErrorNotice error={error} onRetry={onRetry} />;
  return (
    <>
      <ErrorNotice error={error} />
      <p>
        No vote was recorded. Open the link exactly as it was sent to you, or vote in{" "}
        <a href="/#/approvals">the console</a>.
      </p>
    </>
  );
}

/**
 * Returns the link's token. Removes it from the address, where others could read it, and stores it in the tab's history
 * state for a reload.
 */
function takeToken(): string {
  const given = decodeFragment(location.hash.slice(1));
  if (given === "") {
    const state: unknown = history.state;
    const stored = sessionStorage.getItem(LINK_STORE) ?? "";
    sessionStorage.removeItem(LINK_STORE);
    const last = typeof state === "object" && state !== null && "token" in state ? String(state.token) : stored;
    if (last !== "") history.replaceState({ token: last }, "", location.pathname);
    return last;
  }
  history.replaceState({ token: given }, "", location.pathname);
  return given;
}

/** Decodes percent-encoding, because mail programs encode fragments in different ways. */
function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

function NoLink() {
  return (
    <main class="approve">
      <h1>Approve or deny</h1>
      <Notice kind="busy">
        This page needs the link that was sent to you. You can also vote in <a href="/#/approvals">the console</a>.
      </Notice>
    </main>
  );
}

/**
 * Renders the page. The build calls it with the parts in `plugins/<name>/page`.
 * @param bundled the parts in the bundle, keyed by plugin
 */
export async function startApprove(bundled: Readonly<Record<string, ConsolePart>>): Promise<void> {
  const isActionId = /^[0-9a-f-]{36}$/.test(token);
  if (isActionId) return location.replace(`/#/approvals/${encodeSegment(token)}`);
  const place = document.getElementById("console");
  if (place === null) return;
  // Without the parts of plugins, a person can still vote.
  await loadParts([], bundled);
  place.replaceChildren();
  render(token === "" ? <NoLink /> : <Approve />, place);
}
