/** Renders a complete request for the person who votes, in an order that the request's author cannot influence. */
import { useMemo, useState } from "preact/hooks";
import { encodeRequest } from "../../../../src/browser.ts";
import type { Action, LinkedAction } from "../core/api-types.ts";
import { encodeSegment, buildUrl } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { Ago, Badge, FactList, Hash, Notice, MarkedValue } from "./elements.tsx";
import { formatCounted, renderPlain } from "./format.ts";
import { Heading } from "./heading.tsx";
import { JsonDisclosure, findHeadlineMember, formatHeadline, Params } from "./params.tsx";
import { PageLink } from "./page-link.tsx";
import { PreviewText } from "./preview-text.tsx";
import { KeyName, PrincipalName } from "./person.tsx";
import { EditedParameters } from "./edited.tsx";
import { AgentQuestions } from "./agent-questions.tsx";

type Shown = (Action | LinkedAction) & { erased_at?: string | null };

/** Renders "stripe refund by support-bot". */
export function ActionTitle({ action }: { action: Pick<Shown, "tool" | "operation" | "agent_id"> }) {
  return (
    <span class="what">
      <strong>
        <MarkedValue value={action.tool} /> <MarkedValue value={action.operation} />
      </strong>{" "}
      <span class="quiet">by</span> <MarkedValue value={action.agent_id} />
    </span>
  );
}

export function RiskBadge({ risk }: { risk: string | null }) {
  return risk === null ? null : <Badge value={risk} label={`${risk} risk`} />;
}

/**
 * Renders what will happen, in the policy's words. The service has marked misleading characters in them. If the policy
 * has no preview, renders the tool, the operation and the value that distinguishes the request.
 */
export function ActionPreview({ action }: { action: Shown }) {
  if (typeof action.preview === "string" && action.preview !== "")
    return (
      <p class="preview">
        <PreviewText text={action.preview} />
      </p>
    );
  const value = action.erased_at ? null : findHeadlineMember(action);
  return (
    <div class="preview">
      <p class="preview-what">
        <MarkedValue value={action.tool} /> <MarkedValue value={action.operation} />
      </p>
      {value === null ? null : (
        <p class="preview-value">
          <span class="quiet">
            <MarkedValue value={value.name} />
          </span>{" "}
          <MarkedValue value={value.value} />
        </p>
      )}
    </div>
  );
}

/** Renders what will happen in one line, as `ActionPreview`. */
export function RequestHeadline({ action }: { action: Shown }) {
  const { preview } = action;
  if (typeof preview === "string" && preview !== "") return <PreviewText text={preview} />;
  const value = action.erased_at ? null : findHeadlineMember(action);
  return (
    <>
      <MarkedValue value={`${action.tool} ${action.operation}`} />
      {value === null ? null : (
        <span class="row-value">
          {" "}
          <MarkedValue value={value.value} />
        </span>
      )}
    </>
  );
}

/** Returns what will happen as plain text, for titles. */
export function describeRequest(action: Shown): string {
  if (typeof action.preview === "string" && action.preview !== "") return action.preview;
  const value = action.erased_at ? "" : formatHeadline(action);
  return renderPlain(`${action.tool} ${action.operation}${value === "" ? "" : `, ${value}`}`);
}

/** Renders why approval is required: the rule, its reason, and a link to the policy. */
export function ApprovalReason({ action }: { action: Shown }) {
  return (
    <div class="why">
      <p>
        <MarkedValue value={action.reason} />
      </p>
      <p class="quiet">
        {action.rule === null
          ? "Decided without a rule."
          : `Rule ${renderPlain(action.rule)} (policy ${renderPlain(action.policy)})`}
        {action.policy === null || !hasScope("policies:read") ? null : (
          <>
            {" · "}
            <PageLink href={policyAddress(action, action.policy)}>
              {action.rule === null ? "Show the policy" : "Show the rule"}
            </PageLink>
          </>
        )}
      </p>
    </div>
  );
}

/** Returns the link to the deciding rule's lines in the policy version that was active at the decision. */
function policyAddress(action: Shown, policy: string): string {
  const version = "policy_version" in action ? action.policy_version : null;
  return buildUrl(`#/policies/${encodeSegment(policy)}`, { rule: action.rule, version });
}

/**
 * Renders the answers of machine reviewers. Renders nothing if the rules have no reviewer, or no reviewer has answered
 * yet.
 */
export function MachineReviews({ action, level }: { action: Shown; level: 2 | 3 }) {
  const reviews = "reviews" in action ? (action.reviews ?? []) : [];
  if (reviews.length === 0) return null;
  const words = { approve: "has no objection", deny: "denied it", escalate: "left it to people" };
  return (
    <section>
      <Heading level={level}>Machine reviewers</Heading>
      <ul>
        {reviews.map(({ reviewer, answer, fault, reason, created_at }) => (
          <li key={`${reviewer} ${created_at}`}>
            <MarkedValue value={reviewer} /> {answer === null ? `gave no answer (${fault ?? "error"})` : words[answer]}
            {reason === null ? null : (
              <>
                : <MarkedValue value={reason} />
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

/**
 * Maximum number of sentences that are not collapsed. The agent's request determines their number, and more of them
 * could push the parameters out of view.
 */
const SENTENCES = 3;

/** Renders what is unusual about the action compared with earlier ones, or nothing. */
export function UnusualFindings({ action: { unusual = [] }, level }: { action: Shown; level: 2 | 3 }) {
  if (unusual.length === 0) return null;
  const folded = unusual.slice(SENTENCES);
  return (
    <section class="unusual">
      <Heading level={level}>Unusual</Heading>
      <Sentences lines={unusual.slice(0, SENTENCES)} />
      {folded.length === 0 ? null : (
        <details>
          <summary>{folded.length} more</summary>
          <Sentences lines={folded} />
        </details>
      )}
    </section>
  );
}

/** Renders, collapsed, the differences from the agent's last similar action, and the votes on similar actions. */
export function EarlierActions({ action }: { action: Shown }) {
  const [isOpen, setOpen] = useState(false);
  const { differs_from: earlier = null, earlier_votes: votes = [] } = action;
  const members = earlier?.members ?? [];
  if (members.length + votes.length === 0) return null;
  const summary = [
    members.length === 0 ? "" : formatCounted(members.length, "difference"),
    votes.length === 0 ? "" : formatCounted(votes.length, "earlier vote"),
  ];
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Compared with similar actions: {summary.filter((part) => part !== "").join(", ")}</summary>
      {isOpen ? (
        <>
          <Differences members={members} />
          <EarlierVotes votes={votes} />
          {earlier === null ? null : (
            <a href={`/#/actions/${encodeSegment(earlier.action_id)}`}>The last similar action</a>
          )}
        </>
      ) : null}
    </details>
  );
}

/** Renders the facts that the rule pins: the values that a vote is about, and what has changed. */
export function PinnedFacts({ action, level }: { action: Shown; level: 2 | 3 }) {
  const pins = action.pins ?? [];
  if (pins.length === 0) return null;
  const isDifferent = pins.some(
    ({ state, previous }) => state === "changed" || state === "unreadable" || previous !== undefined,
  );
  return (
    <section class={isDifferent ? "pinned unusual" : "pinned"}>
      <Heading level={level}>Facts that your vote is about</Heading>
      <ul>
        {pins.map(({ path, policy, value, previous, current, state }) => (
          <li key={`${policy} ${path}`}>
            <code>{path}</code>: <MarkedValue value={JSON.stringify(value)} />
            {previous === undefined ? null : (
              <>
                {" "}
                <span class="quiet">(before</span> <MarkedValue value={JSON.stringify(previous)} />
                <span class="quiet">)</span>
              </>
            )}
            {state === "changed" ? (
              <>
                {" "}
                <strong>
                  now <MarkedValue value={JSON.stringify(current)} />
                </strong>
              </>
            ) : state === "unreadable" ? (
              <strong> cannot be read now</strong>
            ) : null}
          </li>
        ))}
      </ul>
      <p class="quiet">
        {pins.some(({ state }) => state === "changed")
          ? "A fact has changed. An approval now is refused and records the current values; then vote again."
          : "The service reads them again at the start. If one has changed, the action returns to you."}
      </p>
    </section>
  );
}

function Sentences({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <ul>
      {lines.map((line) => (
        <li key={line}>
          <QuotedText text={line} />
        </li>
      ))}
    </ul>
  );
}

/** Renders a sentence of the service. Values in it, which the service quotes as JSON strings, are styled instead. */
function QuotedText({ text }: { text: string }) {
  const parts = text.split(/("(?:[^"\\]|\\.)*")/);
  return (
    <>
      {parts.map((part, i) =>
        i % 2 === 0 ? (
          <MarkedValue key={i} value={part} />
        ) : (
          <code key={i} class="value">
            <MarkedValue value={unquote(part)} />
          </code>
        ),
      )}
    </>
  );
}

/** Returns the text of a JSON string; the input if it is not JSON. */
function unquote(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted;
  }
}

function Differences({ members }: { members: NonNullable<NonNullable<Shown["differs_from"]>["members"]> }) {
  return (
    <ul>
      {members.map(({ pointer, before, after }) => (
        <li key={pointer}>
          <code>
            <MarkedValue value={pointer} />
          </code>
          : <MarkedValue value={JSON.stringify(after)} /> <span class="quiet">(last time</span>{" "}
          <MarkedValue value={JSON.stringify(before)} />
          <span class="quiet">)</span>
        </li>
      ))}
    </ul>
  );
}

function EarlierVotes({ votes }: { votes: NonNullable<Shown["earlier_votes"]> }) {
  return (
    <ul>
      {votes.map(({ action_id, approver, approve, reason, created_at }) => (
        <li key={`${action_id} ${approver}`}>
          <PrincipalName principal={approver} /> {approve ? "approved" : "denied"} a similar action{" "}
          <Ago at={created_at} />
          {reason === null ? null : (
            <>
              : <MarkedValue value={reason} />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Renders parameters and context, collapsed beyond a number of lines. */
export function RequestContent({ action, level, lines = 40 }: { action: Shown; level: 2 | 3; lines?: number }) {
  const name = renderPlain(`${action.tool} ${action.operation}`);
  if (action.erased_at)
    return (
      <Notice kind="busy">
        The request and its result were erased <Ago at={action.erased_at} />. The decision and its proof remain.
      </Notice>
    );
  return (
    <>
      <Heading level={level}>Parameters</Heading>
      <Params
        value={action.params}
        root="/params"
        first={action.shown_first}
        lines={lines}
        label={`Parameters of ${name}`}
      />
      <JsonDisclosure value={action.params} label="Parameters as JSON" />
      {Object.keys(action.context).length === 0 ? null : (
        <>
          <Heading level={level}>Context</Heading>
          <Params
            value={action.context}
            root="/context"
            first={action.shown_first}
            lines={Math.min(lines, 20)}
            label={`Context of ${name}`}
          />
        </>
      )}
    </>
  );
}

interface RequestProps {
  action: Shown;
  level?: 2 | 3;
  lines?: number;
}

/**
 * Renders what a person reads before they vote, below the preview, in order: changes by an approver, reason, pinned
 * facts, what is unusual, parameters, context, earlier actions, questions.
 */
export function RequestToVoteOn({ action, level = 3, lines = 40 }: RequestProps) {
  return (
    <>
      <EditedParameters action={action} />
      <ApprovalReason action={action} />
      <PinnedFacts action={action} level={level} />
      <UnusualFindings action={action} level={level} />
      <RequestContent action={action} level={level} lines={lines} />
      <EarlierActions action={action} />
      <AgentQuestions action={action} level={level} />
    </>
  );
}

/** Renders when and by whom the request was submitted, its risk, and which policy decided. */
export function RequestOrigin({ action }: { action: Shown }) {
  return (
    <FactList
      rows={[
        ["Agent", action.agent_id],
        ["Risk", action.risk_level === null ? "not rated" : <RiskBadge risk={action.risk_level} />],
        ["Submitted", <Ago at={action.created_at} />],
        ["Submitted with the key", "submitted_by" in action ? <KeyName id={action.submitted_by} /> : null],
        [
          "Policy",
          action.policy === null || !("policy_version" in action)
            ? null
            : `${action.policy}, version ${action.policy_version}`,
        ],
        ["Reason code", "reason_code" in action ? <code>{action.reason_code}</code> : null],
      ]}
    />
  );
}

/** Renders a complete request, with its metadata and its hash. */
export function FullRequest({ action, level = 3 }: { action: Action; level?: 2 | 3 }) {
  return (
    <>
      <RequestToVoteOn action={action} level={level} />
      <RequestOrigin action={action} />
      <RequestMetadata action={action} level={level} />
      {action.erased_at ? null : <RequestHash action={action} />}
    </>
  );
}

export function RequestMetadata({ action, level }: { action: Action; level: 2 | 3 }) {
  if (Object.keys(action.meta).length === 0) return null;
  return (
    <>
      <Heading level={level}>Metadata</Heading>
      <p class="quiet">For tracing only. Policies do not see it, and a vote does not cover it.</p>
      <Params value={action.meta} root="/meta" lines={20} label="Metadata" />
    </>
  );
}

/** Renders the request hash that a vote is bound to, and compares it with the hash of the displayed data. */
export function RequestHash({ action }: { action: Shown }) {
  const computed = useMemo(() => hashOf(action), [action.request_hash]);
  if (action.request_hash === null) return null;
  return (
    <div class="bound">
      <p class="quiet">
        Request hash <Hash value={action.request_hash} />
      </p>
      {computed === action.request_hash ? (
        <p class="fits">✓ computed in this browser from the data on this page</p>
      ) : (
        <p class="notice bad" role="alert">
          The data on this page has a different hash (<code>{computed}</code>). Do not vote; report this to the
          service's operator.
        </p>
      )}
    </div>
  );
}

/** Returns true if the data has another hash than the one that a vote is bound to. */
export function hasWrongHash(action: Shown): boolean {
  return !action.erased_at && action.request_hash !== null && hashOf(action) !== action.request_hash;
}

function hashOf(action: Shown): string {
  try {
    return encodeRequest(action as Parameters<typeof encodeRequest>[0]).hash;
  } catch (error) {
    return error instanceof Error ? error.message : "cannot be computed";
  }
}
