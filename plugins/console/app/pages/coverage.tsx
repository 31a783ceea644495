/**
 * The page of coverage statements, newest first: how far the ledger agrees with the effects that other systems logged.
 */
import { useState } from "preact/hooks";
import { encodeSegment, request } from "../core/api.ts";
import type { Api } from "../core/api-types.ts";
import { Empty, Hash, Notice, Page, Table, MarkedValue, Time } from "../ui/elements.tsx";
import { PagedList } from "../ui/paged-list.tsx";
import { usePaged } from "../ui/paged.ts";
import { Snippet } from "../ui/snippet.tsx";

type Statement = Api["GET /v1/coverage"]["response"]["statements"][number];

const PAGE = 50;

const TEXTS = {
  title: "Coverage",
  empty: "No log was compared with the ledger.",
  emptyHelp:
    "Compare the log of a system that agents act on: a plugin such as effects-cloudtrail has its source in assent.yaml.",
  emptySnippet: "Compare a day of a log",
  command: "assent reconcile production trail/*.json.gz --from 2026-01-31 --to 2026-02-01",
  gap: (sources: readonly string[]) =>
    `The newest comparison of ${sources.join(", ")} has effects that no action explains, or successes without effect.`,
  unmatched: "Effects that no action explains",
  missing: "Successes without effect",
  skipped: ({ outside, unmapped, other_actors, duplicates, no_effect }: Statement["skipped"]) =>
    `Skipped: ${outside} outside the window, ${unmapped} of other kinds, ${other_actors} of other identities, ${duplicates} duplicates, ${no_effect} without effect.`,
};

const REASONS: Readonly<Record<Statement["unmatched"][number]["reason"], string>> = {
  unknown_action: "names an action that was not started",
  other_operation: "names an action of another operation",
  parameters_differ: "has other parameters than its action",
  outside_action: "outside the time of its action",
  already_matched: "names an action that already has its effect",
  no_action: "no action has these parameters at this time",
};

const hasGap = ({ effects, actions }: Statement): boolean => effects.unmatched > 0 || actions.missing > 0;

export function Coverage() {
  const list = usePaged(async (cursor, signal) => {
    const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const { statements, next_cursor } = await request("GET /v1/coverage", { query, signal });
    return { rows: statements.map((statement) => ({ ...statement, id: String(statement.seq) })), next_cursor };
  }, []);
  const newest = new Map<string, Statement>();
  for (const statement of list.rows ?? []) if (!newest.has(statement.source)) newest.set(statement.source, statement);
  const gaps = [...newest.values()].filter(hasGap).map(({ source }) => source);
  return (
    <Page title={TEXTS.title}>
      {gaps.length === 0 ? null : <Notice kind="bad">{TEXTS.gap(gaps)}</Notice>}
      <PagedList list={list} what="coverage statements" empty={<NoStatements />}>
        {(statements) => (
          <Table label={TEXTS.title} head={["Source", "Window", "Effects", "Actions", "Recorded"]}>
            {statements.map((statement) => (
              <Row key={statement.seq} statement={statement} />
            ))}
          </Table>
        )}
      </PagedList>
    </Page>
  );
}

function NoStatements() {
  return (
    <Empty text={TEXTS.empty}>
      <p>{TEXTS.emptyHelp}</p>
      <Snippet label={TEXTS.emptySnippet} text={TEXTS.command} />
    </Empty>
  );
}

function Row({ statement }: { statement: Statement }) {
  const { source, format, from, to, effects, actions, seq, hash, by, at: recorded } = statement;
  return (
    <tr>
      <td>
        <strong>
          <MarkedValue value={source} />
        </strong>
        <br />
        <span class="quiet">
          <MarkedValue value={format} />
        </span>
        <Details statement={statement} />
      </td>
      <td data-label="Window">
        <Time at={from} /> – <Time at={to} />
      </td>
      <td data-label="Effects">
        {effects.matched} matched
        <br />
        <Count value={effects.unmatched} label="unmatched" />
        <br />
        {effects.unknown} unknown
      </td>
      <td data-label="Actions">
        {actions.matched} matched
        <br />
        <Count value={actions.missing} label="missing" />
        <br />
        {actions.unknown} unknown
      </td>
      <td data-label="Recorded">
        <Time at={recorded} />
        <br />
        <a href={`#/provenance/${encodeSegment(hash)}`}>entry {seq}</a>
        <br />
        <span class="quiet">
          <MarkedValue value={by} />
        </span>
      </td>
    </tr>
  );
}

function Count({ value, label }: { value: number; label: string }) {
  return value === 0 ? (
    <>
      {value} {label}
    </>
  ) : (
    <strong>
      {value} {label}
    </strong>
  );
}

function Details({ statement }: { statement: Statement }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Details</summary>
      {isOpen ? <DetailLists statement={statement} /> : null}
    </details>
  );
}

function DetailLists({ statement }: { statement: Statement }) {
  const { unmatched, missing, cannot_see, skipped, files } = statement;
  return (
    <>
      {unmatched.length === 0 ? null : (
        <>
          <h3>{TEXTS.unmatched}</h3>
          <ul>
            {unmatched.map(({ id, at: time, event, actor, reason, action_id }) => (
              <li key={id}>
                <Time at={time} /> <MarkedValue value={event} /> by <MarkedValue value={actor} />: {REASONS[reason]}
                {action_id === null || reason === "unknown_action" ? null : (
                  <>
                    {" "}
                    (<a href={`#/actions/${encodeSegment(action_id)}`}>action</a>)
                  </>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
      {missing.length === 0 ? null : (
        <>
          <h3>{TEXTS.missing}</h3>
          <ul>
            {missing.map(({ id, at: time }) => (
              <li key={id}>
                <a href={`#/actions/${encodeSegment(id)}`}>
                  <MarkedValue value={id} />
                </a>{" "}
                <Time at={time} />
              </li>
            ))}
          </ul>
        </>
      )}
      <p>{TEXTS.skipped(skipped)}</p>
      <h3>What the source cannot see</h3>
      <ul>
        {cannot_see.map((sentence) => (
          <li key={sentence}>
            <MarkedValue value={sentence} />
          </li>
        ))}
      </ul>
      <h3>Files</h3>
      <ul>
        {files.map(({ name, sha256, records }) => (
          <li key={sha256}>
            <MarkedValue value={name} />, {records} records, <Hash value={sha256} />
          </li>
        ))}
      </ul>
    </>
  );
}
