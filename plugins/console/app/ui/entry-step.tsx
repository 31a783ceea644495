/** Renders a ledger entry as a step of a timeline that is not about a single action. */
import type { ComponentChildren } from "preact";
import type { Event } from "../core/api-types.ts";
import { nameOfAction } from "../core/action-names.ts";
import { encodeSegment } from "../core/api.ts";
import { entryTextsOf } from "../core/parts.ts";
import { describeActionEntry, kindOfEntry } from "./action-history.tsx";
import { MarkedValue } from "./elements.tsx";
import { nameOfType } from "./entry-texts.ts";
import { renderPlain, shortenIds } from "./format.ts";
import { PersonLink } from "./person.tsx";
import type { TimelineStep } from "./timeline.tsx";
import { PreviewText } from "./preview-text.tsx";
import { PageLink } from "./page-link.tsx";

/** The members of entries that the steps read. */
interface Entry {
  tool?: string;
  operation?: string;
  agent_id?: string;
  change?: string;
  comment?: string | null;
  reason?: string | null;
  related_action?: string | null;
  data?: { change?: string };
  by?: { principal: string } | null;
}

const OF_ACTIONS = new Set(["decision", "approval", "redecision", "execution", "erasure", "part_erasure"]);

/** Returns the step of an entry, with links to its action and to the entry. Requires `loadTexts`. */
export function toEntryStep(event: Event): TimelineStep {
  const { seq, hash, at: time, type } = event;
  const entry = event.entry as Entry;
  const action = event.action_id ?? entry.related_action ?? null;
  return {
    key: seq,
    at: time,
    kind: OF_ACTIONS.has(type) ? kindOfEntry(event.entry) : kindOfChange(type, entry),
    content: (
      <>
        {OF_ACTIONS.has(type) ? (
          <>
            <Subject entry={entry} action={action} /> {describeActionEntry(event)}
          </>
        ) : (
          <>
            <Change type={type} entry={entry} />
            {action === null ? null : (
              <>
                {" "}
                <a href={`#/actions/${encodeSegment(action)}`}>
                  <ActionName id={action} />
                </a>
              </>
            )}
          </>
        )}{" "}
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

/** Renders a link to the action of an entry. Only the decision entry contains the tool and the operation. */
function Subject({ entry: { tool, operation }, action }: { entry: Entry; action: string | null }) {
  if (action === null) return null;
  return (
    <a href={`#/actions/${encodeSegment(action)}`}>
      {tool === undefined ? <ActionName id={action} /> : <MarkedValue value={`${tool} ${operation ?? ""}`} />}
    </a>
  );
}

/** Renders what an action does, or its name; the end of its id while the name is unknown. */
export function ActionName({ id }: { id: string }) {
  const name = nameOfAction(id);
  return name === null ? <>action …{id.slice(-6)}</> : <PreviewText text={name} />;
}

const KINDS: Readonly<Record<string, TimelineStep["kind"]>> = {
  suspended: "bad",
  placed: "bad",
  revoked: "bad",
  reverted: "bad",
  refused: "bad",
  used: "bad",
  resumed: "good",
  granted: "good",
  restored: "good",
  reviewed: "good",
};

function kindOfChange(type: string, { change, data }: Entry): TimelineStep["kind"] {
  const word = change ?? data?.change ?? "";
  return entryTextsOf(type)?.marks?.[word] ?? KINDS[word];
}

function Change({ type, entry }: { type: string; entry: Entry }) {
  const { change = entry.data?.change ?? "", by, comment, reason } = entry;
  const words = (comment ?? reason ?? "") || null;
  return (
    <>
      {nameOfType(type)} {subjectOf(type, entry)} {change.replaceAll("_", " ")}
      {by == null ? null : (
        <>
          {" "}
          by <PersonLink principal={by.principal} />
        </>
      )}
      {words === null ? null : (
        <>
          : <MarkedValue value={shortenIds(words)} />
        </>
      )}
    </>
  );
}

/** Returns the subject of an entry, which follows the name of its type. */
function subjectOf(type: string, entry: Entry): ComponentChildren {
  const texts = entryTextsOf(type);
  if (texts !== undefined) return texts.describe({ ...entry });
  return entry.agent_id === undefined ? null : (
    <>
      of <MarkedValue value={entry.agent_id} />
    </>
  );
}
