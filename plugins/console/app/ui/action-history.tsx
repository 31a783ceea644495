/** The timeline of an action, from its ledger entries. */
import type { ComponentChildren } from "preact";
import type { Api, ApprovalEntry, RedecisionEntry } from "../core/api-types.ts";
import { encodeSegment } from "../core/api.ts";
import { entryTextsOf, loadTexts } from "../core/parts.ts";
import { Badge, MarkedValue } from "./elements.tsx";
import { OCCASIONS, VERDICTS } from "./entry-texts.ts";
import { renderPlain } from "./format.ts";
import { useLoad } from "./hooks.ts";
import { PersonLink } from "./person.tsx";
import { VoteMethod, type GivenVote } from "./vote-method.tsx";
import { Timeline, type TimelineStep } from "./timeline.tsx";
import { PageLink } from "./page-link.tsx";

export type ActionEvent = Api["GET /v1/actions/{id}/events"]["response"]["events"][number];

/** The members of an action's entries that the history reads. */
interface Entry {
  decision?: { effect: string; reason: string };
  verdict?: ApprovalEntry["verdict"];
  status?: string;
  by?: { principal: string; key_id?: string } | null;
  approvals?: number;
  quorum?: number;
  comment?: string | null;
  part?: string;
  reason?: string;
  self_approval?: boolean;
  break_glass?: boolean;
  reviewer?: string;
  answer?: string | null;
  occasion?: RedecisionEntry["occasion"];
  phase?: string;
  permit?: string | null;
}

export function ActionHistory({ events }: { events: readonly ActionEvent[] }) {
  // Until the texts of features' entries are loaded, or if they cannot be loaded, display the types.
  useLoad(loadTexts, []);
  return <Timeline label="History" steps={events.map(toStep)} hasExactTimes />;
}

function toStep(event: ActionEvent): TimelineStep {
  const { seq, hash, at: time } = event;
  return {
    key: seq,
    at: time,
    kind: kindOfEntry(event.entry),
    content: (
      <>
        {describeActionEntry(event)}{" "}
        <PageLink
          class="quiet"
          href={`#/provenance/${encodeSegment(hash)}`}
          aria-label={renderPlain(`entry ${seq} in the ledger`)}
        >
          #{seq}
        </PageLink>
      </>
    ),
  };
}

/** Returns the kind of the timeline step for an entry, which determines its colour. */
export function kindOfEntry({ decision, verdict, status }: Entry): TimelineStep["kind"] {
  const effects: Readonly<Record<string, TimelineStep["kind"]>> = {
    allow: "good",
    deny: "bad",
    require_approval: "busy",
  };
  const statuses: Readonly<Record<string, TimelineStep["kind"]>> = {
    approved: "good",
    succeeded: "good",
    denied: "bad",
    failed: "bad",
    unknown: "bad",
    executing: "busy",
  };
  return effects[decision?.effect ?? ""] ?? (verdict === "approve" ? "good" : statuses[status ?? ""]);
}

/** Describes an entry about an action, without the id of the action. */
export function describeActionEntry(event: Pick<ActionEvent, "type" | "entry">): ComponentChildren {
  const entry: Entry = event.entry;
  switch (event.type) {
    case "decision":
      return (
        <>
          <Badge value={entry.decision?.effect ?? ""} /> <MarkedValue value={entry.decision?.reason ?? ""} />
        </>
      );
    case "approval":
      return <VoteStep entry={entry} />;
    case "review":
      return (
        <>
          <Badge value={entry.answer ?? "unknown"} label="machine review" /> the reviewer{" "}
          <MarkedValue value={entry.reviewer ?? ""} /> answered {entry.answer ?? "nothing"}
          <Comment entry={entry} />
        </>
      );
    case "redecision":
      return <RedecisionStep entry={entry} />;
    case "erasure":
    case "part_erasure":
      return (
        <>
          <Badge value="erasure" label={entry.part === undefined ? "erased" : `${entry.part} erased`} />{" "}
          <By entry={entry} none="by retention" />: <MarkedValue value={entry.reason ?? ""} />
        </>
      );
    case "execution":
      return <ExecutionStep entry={entry} />;
    default:
      return entryTextsOf(event.type)?.describe(event.entry) ?? <MarkedValue value={event.type.replaceAll("_", " ")} />;
  }
}

function By({ entry: { by }, none }: { entry: Entry; none: string }) {
  if (by === null || by === undefined) return <>{none}</>;
  return (
    <>
      by <PersonLink principal={by.principal} />
    </>
  );
}

function Comment({ entry: { comment } }: { entry: Entry }) {
  if (!comment) return null;
  return (
    <>
      : <MarkedValue value={comment} />
    </>
  );
}

function VoteStep({ entry }: { entry: Entry }) {
  const { verdict } = entry;
  const label = verdict === undefined ? "" : (VERDICTS[verdict] ?? verdict);
  return (
    <>
      {entry.break_glass === true ? <Badge value="critical" label={`emergency: ${label}`} /> : <Badge value={label} />}{" "}
      <By entry={entry} none="at the deadline" />
      {verdict === "approve" || verdict === "deny" ? <VoteMethod vote={entry as GivenVote} /> : null}
      {entry.break_glass === true ? null : ` (${entry.approvals} of ${entry.quorum})`}
      <Comment entry={entry} />
    </>
  );
}

function RedecisionStep({ entry }: { entry: Entry }) {
  return (
    <>
      <Badge value={entry.status ?? ""} /> decided again {entry.occasion === undefined ? "" : OCCASIONS[entry.occasion]}{" "}
      <By entry={entry} none="" />
      {entry.status === "pending_approval" ? ` (${entry.quorum} have to approve)` : ""}:{" "}
      <MarkedValue value={entry.decision?.reason ?? ""} />
    </>
  );
}

function ExecutionStep({ entry }: { entry: Entry }) {
  const { phase, permit, comment, by } = entry;
  const reported = comment ? "settled" : "reported";
  const verb = phase === "start" ? (permit === null ? "started" : "started with a permit") : reported;
  return (
    <>
      <Badge value={entry.status ?? ""} />{" "}
      {by === null || by === undefined ? (
        "no result was reported in time"
      ) : (
        <>
          {verb} <By entry={entry} none="" />
        </>
      )}
      <Comment entry={entry} />
    </>
  );
}
