/** Renders the one-line summaries of ledger entries in the list of events. */
import type { ComponentChildren } from "preact";
import { encodeSegment } from "../core/api.ts";
import type { EntryBody } from "../core/api-types.ts";
import { entryTextsOf } from "../core/parts.ts";
import type { LedgerEvent } from "../core/live-events.ts";
import { Badge, MarkedValue } from "../ui/elements.tsx";
import { OCCASIONS, VERDICTS } from "../ui/entry-texts.ts";
import { PrincipalName } from "../ui/person.tsx";

/** Renders the line of an event. Renders nothing for a type that no feature describes. Requires `loadTexts`. */
export function EventSummary({ event }: { event: LedgerEvent }) {
  const texts = entryTextsOf(event.type);
  return <span>{texts?.summarize(event.entry) ?? summarize(event.entry as unknown as EntryBody)}</span>;
}

function summarize(entry: EntryBody): ComponentChildren {
  switch (entry.type) {
    case "decision":
      return (
        <>
          <Badge value={entry.decision.effect} />{" "}
          <a href={`#/actions/${encodeSegment(entry.action_id)}`}>
            <MarkedValue value={entry.tool} /> <MarkedValue value={entry.operation} />
          </a>{" "}
          by <MarkedValue value={entry.agent_id} />
        </>
      );
    case "approval":
      return (
        <>
          <Badge value={VERDICTS[entry.verdict] ?? entry.verdict} />{" "}
          {entry.by === null ? (
            "by the service"
          ) : (
            <>
              by <PrincipalName principal={entry.by.principal} />
            </>
          )}
        </>
      );
    case "redecision":
      return (
        <>
          <Badge value={entry.status} /> decided again {OCCASIONS[entry.occasion]}, for{" "}
          <MarkedValue value={entry.agent_id} />
        </>
      );
    case "execution":
      return (
        <>
          <Badge value={entry.status} /> by <MarkedValue value={entry.agent_id} />
        </>
      );
    case "erasure":
      return (
        <>
          a request of <MarkedValue value={entry.agent_id} /> was erased: <MarkedValue value={entry.reason} />
        </>
      );
    case "review":
      return (
        <>
          <MarkedValue value={entry.reviewer} /> {entry.answer ?? `gave no answer (${entry.fault ?? "error"})`}
        </>
      );
    case "question":
      return <MarkedValue value={`${entry.phase === "ask" ? "question" : "answer"}: ${entry.text}`} />;
    case "part_erasure":
      return <MarkedValue value={`${entry.part} of ${entry.agent_id} erased: ${entry.reason}`} />;
    default:
      return null;
  }
}
