/** Renders a one-line summary for each type of ledger entry. */
import type { ComponentChildren } from "preact";
import type { EntryBody, EntryOf } from "../core/api-types.ts";
import { entryTextsOf } from "../core/parts.ts";
import type { LedgerEvent } from "../core/live-events.ts";
import { Badge, MarkedValue } from "../ui/elements.tsx";
import { OCCASIONS, VERDICTS } from "../ui/entry-texts.ts";
import { PrincipalName } from "../ui/person.tsx";

type Entry = EntryBody;

const words = (name: string): string => name.replaceAll("_", " ");

/** Renders the line of an event. Renders nothing for a type that no feature describes. Requires `loadTexts`. */
export function EventSummary({ event }: { event: LedgerEvent }) {
  const texts = entryTextsOf(event.type);
  return <span>{texts?.summarize(event.entry) ?? summarize(event.entry as unknown as Entry)}</span>;
}

function summarize(entry: Entry): ComponentChildren {
  switch (entry.type) {
    case "decision":
      return (
        <>
          <Badge value={entry.decision.effect} /> <MarkedValue value={entry.tool} />{" "}
          <MarkedValue value={entry.operation} /> by <MarkedValue value={entry.agent_id} />
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
    default:
      return summarizeChange(entry);
  }
}

type ActionEntry = EntryOf<"approval" | "decision" | "erasure" | "execution" | "question" | "redecision" | "review">;

/** Summarizes the other types of entries, such as changes of keys and grants. */
function summarizeChange(entry: Exclude<Entry, ActionEntry>): ComponentChildren {
  switch (entry.type) {
    case "legal_hold":
      return <MarkedValue value={`legal hold ${words(entry.change)}: ${entry.hold.reason}`} />;
    case "part_erasure":
      return <MarkedValue value={`${entry.part} of ${entry.agent_id} erased: ${entry.reason}`} />;
    case "grant":
      return (
        <MarkedValue
          value={`grant ${entry.change}: ${entry.grant.tool} ${entry.grant.operation} by ${entry.agent_id}`}
        />
      );
    default:
      return null;
  }
}
