/**
 * The open request, in this order: preview, why approval is required, who has to agree, pinned facts, what is unusual,
 * parameters, proof.
 */
import type { ComponentChildren, Ref } from "preact";
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { encodeSegment } from "../core/api.ts";
import { findVoteElsewhere, hasPanels } from "../core/parts.ts";
import { hasScope } from "../core/me.ts";
import { isUserSession, userSignInAddress } from "../core/session.ts";
import { Age, Badge, CopyButton, Notice, ErrorNotice, MarkedValue, TimeLeft } from "../ui/elements.tsx";
import { renderPlain } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { formatHeadline } from "../ui/params.tsx";
import { LazyPart, Panels } from "../ui/panels.tsx";
import {
  hasWrongHash,
  RequestHash,
  RequestContent,
  RequestMetadata,
  RequestOrigin,
  ActionPreview,
  RiskBadge,
  MachineReviews,
  PinnedFacts,
  UnusualFindings,
  EarlierActions,
  ApprovalReason,
} from "../ui/request-view.tsx";
import { AgentQuestions } from "../ui/agent-questions.tsx";
import { EditedParameters } from "../ui/edited.tsx";
import { readDraft, writeDraft } from "./drafts.ts";
import { canHold, findHeldVote, heldVotes, holdVotes } from "./held-votes.ts";
import { RequestHistory } from "./history.tsx";
import { OutcomeText } from "./outcome.tsx";
import type { QueueItem } from "./queue-state.ts";
import { mayStart, Recall } from "./recall.tsx";
import { RequiredApprovals } from "./required-approvals.tsx";
import { countApprovals, findVoteAvailability, type VoteAvailability, findOwnVote } from "./vote-availability.ts";
import { VotingCapacity } from "./voting-capacity.tsx";
import { TEXTS } from "./strings.ts";
import { isTestRequest } from "./is-test-request.ts";
import { castVote, type VoteResult } from "./vote.ts";
import type { VoteBarHandle } from "./vote-bar.tsx";
import { VoteWithAddition } from "./vote-with-addition.tsx";

interface Props {
  item: QueueItem;
  /** Address of the list. */
  list: string;
  handle: Ref<VoteBarHandle>;
  /** The selection, on which votes act instead of the open request; null if nothing is selected. */
  others: { count: number; onShow(): void; onClear(): void } | null;
  onVoted(result: VoteResult): void;
  /** Called when the vote is held, so that it can be undone. */
  onHeld(): void;
  onUndo(): void;
  onAsked(action: Action): void;
  /** Called after the person took the vote back. */
  onRecalled(action: Action, message: string): void;
  onLeave(): void;
}

export function RequestPane({
  item,
  list,
  handle,
  others,
  onVoted,
  onHeld,
  onUndo,
  onAsked,
  onRecalled,
  onLeave,
}: Props) {
  const { action, outcome, error } = item;
  const availability = findVoteAvailability(item);
  const isPending = availability === "open" || availability === "elsewhere";
  return (
    <article
      class={`pane is-${availability.replace(" ", "-")}`}
      aria-label={uniqueRequestLabel(action)}
      data-pane={action.id}
    >
      <div class="pane-scroll" tabIndex={0} role="region" aria-label="Request">
        <a class="back" href={list}>
          <Icon name="arrow-left" /> All requests
        </a>
        <ActionPreview action={action} />
        <p class="chips">
          <IconChip icon="bot">
            <MarkedValue value={action.agent_id} />
          </IconChip>
          <RiskBadge risk={action.risk_level} />
          {outcome === null && action.expires_at !== null ? (
            <IconChip icon="clock">
              <TimeLeft at={action.expires_at} />
            </IconChip>
          ) : null}
          {(action.approvals_needed ?? 1) > 1 ? (
            <IconChip icon="users">
              {countApprovals(action)} of {action.approvals_needed} approvals
            </IconChip>
          ) : null}
          {isPending || availability === "voted" ? <AgentWaitStatus action={action} /> : null}
        </p>
        {outcome === null && availability !== "expired" ? <Panels place="request" action={action} /> : null}
        {outcome === null ? null : <OutcomeText outcome={outcome} />}
        <Recall action={action} onDone={onRecalled} />
        {/* The person can no longer vote, but can still stop the agent before it acts. */}
        {outcome?.kind === "good" && outcome.isMine !== true ? (
          <div class="row">
            <Panels place="agent-title" agent={action.agent_id} />
            <Panels place="settled" action={action} />
            {mayStart(action) && !hasScope("admin") ? <span class="quiet">{TEXTS.tooLate}</span> : null}
          </div>
        ) : null}
        {outcome !== null && isTestRequest(action) ? <Panels place="test-request" action={action} /> : null}
        {availability === "expired" ? <Notice kind="busy">{TEXTS.expired}</Notice> : null}
        <section class="asked">
          <EditedParameters action={action} />
          <h2 class="part">Why approval is required</h2>
          <ApprovalReason action={action} />
          <h2 class="part">{TEXTS.whoAgrees}</h2>
          <RequiredApprovals action={action} />
          <MachineReviews action={action} level={3} />
          <PinnedFacts action={action} level={2} />
          <UnusualFindings action={action} level={2} />
          <RequestContent action={action} level={2} />
          <EarlierActions action={action} />
          <AgentQuestions action={action} level={2}>
            {isPending && hasPanels("request-questions") ? (
              <Panels place="request-questions" action={action} onChanged={onAsked} />
            ) : undefined}
          </AgentQuestions>
          {isPending ? <Panels place="request-changes" action={action} onChanged={onAsked} /> : null}
          <RequestHistory action={action} />
        </section>
        <p class="row">
          <a href={`#/actions/${encodeSegment(action.id)}`}>Show the action</a>
          <CopyButton value={`${location.origin}/#/approvals/${encodeSegment(action.id)}`} label="Copy link" />
        </p>
        {/* Folded unless something is wrong. */}
        <details class="drawer" open={hasWrongHash(action)}>
          <summary>Details and proof</summary>
          <RequestOrigin action={action} />
          <RequestMetadata action={action} level={3} />
          {action.erased_at ? null : <RequestHash action={action} />}
        </details>
      </div>
      <Answer {...{ item, availability, handle, others, onVoted, onHeld, onUndo, onLeave }} />
      <ErrorNotice error={availability === "open" || availability === "held" ? null : error} />
    </article>
  );
}

/** Renders the vote bar, or why the person cannot vote. It does not scroll with the request. */
function Answer({
  item,
  availability,
  handle,
  others,
  onVoted,
  onHeld,
  onUndo,
  onLeave,
}: Omit<Props, "list" | "onAsked" | "onRecalled"> & { availability: VoteAvailability }) {
  const { action } = item;
  const left = (action.approvals_needed ?? 1) - countApprovals(action);
  if (availability === "voted")
    return (
      <div class="pane-foot">
        <Notice kind="good">{TEXTS.recorded(left)}</Notice>
      </div>
    );
  if (availability === "not yours")
    return (
      <div class="pane-foot">
        <Notice kind="busy">{hasScope("approvals:decide") ? TEXTS.notYours : TEXTS.readOnly}</Notice>
      </div>
    );
  if (availability === "elsewhere")
    return (
      <div class="pane-foot">
        <VoteElsewhere action={action} />
      </div>
    );
  if (availability === "held")
    return (
      <div class="pane-foot">
        <Notice kind="busy">
          {TEXTS.heldVote(findHeldVote(action.id)?.approve === true)}{" "}
          <button type="button" class="small" onClick={onUndo}>
            Undo
          </button>
        </Notice>
      </div>
    );
  if (availability !== "open") return <LostReason id={action.id} />;
  if (others !== null)
    return (
      <div class="pane-foot">
        <Notice kind="busy">
          {TEXTS.othersSelected(others.count)}{" "}
          <button type="button" class="small" onClick={others.onShow}>
            {TEXTS.voteOnSelection}
          </button>{" "}
          <button type="button" class="small" onClick={others.onClear}>
            Select none
          </button>
        </Notice>
      </div>
    );
  if (requiresSignature(action) && !isUserSession())
    return (
      <div class="pane-foot">
        <Notice kind="busy">
          {TEXTS.signatureRequired} <a href={userSignInAddress()}>Sign in as a user</a>
        </Notice>
      </div>
    );
  return (
    <div class="pane-foot">
      <ErrorNotice error={item.error} />
      <VotingCapacity action={action} onVoted={onVoted} />
      <VoteWithAddition
        key={action.id}
        id={action.id}
        terms={action.approval_terms ?? null}
        handle={handle}
        onLeave={onLeave}
        canUndo={(approve) => canHold(action, approve)}
        cast={async (approve, reason, addition) => {
          if (addition === null && canHold(action, approve)) {
            holdVotes([action], approve, reason);
            onHeld();
            return true;
          }
          const result = await castVote(action, { approve, reason, addition });
          onVoted(result);
          return result.kind === "settled" || result.kind === "recorded";
        }}
      />
    </div>
  );
}

/** Says where to vote on an action that cannot be approved alone. */
export function VoteElsewhere({ action }: { action: Action }) {
  const elsewhere = findVoteElsewhere(action);
  return elsewhere === null ? null : <LazyPart load={elsewhere.load} props={{ action }} />;
}

/** Whether a rule accepts only votes that are signed with a passkey. */
function requiresSignature({ approval_terms }: Action): boolean {
  return approval_terms?.approvers.some(({ signature }) => signature === "passkey") === true;
}

/** Shows the reason that the person typed, if the request was settled before their vote was recorded. */
function LostReason({ id }: { id: string }) {
  const [, redraw] = useState(0);
  // A held vote that arrives too late leaves its reason as a draft. This can happen after the request is settled.
  const isHeld = heldVotes.value.some(({ action, state }) => action.id === id && state !== "late");
  const reason = readDraft(id);
  if (isHeld || reason === "") return null;
  return (
    <div class="pane-foot">
      <Notice kind="busy">
        <MarkedValue value={TEXTS.notRecorded(reason)} />{" "}
        <button
          type="button"
          class="small"
          onClick={() => {
            writeDraft(id, "");
            redraw((count) => count + 1);
          }}
        >
          Discard it
        </button>
      </Notice>
    </div>
  );
}

export function IconChip({ icon, children }: { icon: "bot" | "clock" | "users"; children: ComponentChildren }) {
  return (
    <span class="chip">
      <Icon name={icon} />
      {children}
    </span>
  );
}

/** Shows whether the agent is waiting for the decision; if not, when it last submitted the request or waited for it. */
export function AgentWaitStatus({ action }: { action: Action }) {
  return (
    <span class="quiet">
      {action.waiting ? (
        TEXTS.waiting
      ) : (
        <>
          The agent is not waiting; it last asked <Age at={action.asked_at} /> ago.
        </>
      )}
    </span>
  );
}

/** Returns a label that is unique among requests: "stripe refund by support-bot, amount 120, 7f3a21". */
export function uniqueRequestLabel(action: Action): string {
  const { tool, operation, agent_id, id } = action;
  const value = action.erased_at ? "" : formatHeadline(action);
  return `${renderPlain(`${tool} ${operation} by ${agent_id}`)}, ${value === "" ? "" : `${value}, `}${id.slice(-6)}`;
}

/** Renders a badge for the signed-in person's vote. */
export function OwnVoteBadge({ action }: { action: Action }) {
  const vote = findOwnVote(action);
  if (vote === null) return null;
  return <Badge value={vote.approve ? "approved" : "denied"} label={`you ${vote.approve ? "approved" : "denied"}`} />;
}
