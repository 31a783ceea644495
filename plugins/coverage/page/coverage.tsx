/**
 * The page of coverage statements, newest first: how far the ledger agrees with the effects that other systems logged.
 */
import { useState } from "preact/hooks";
import {
  PageLink,
  type Api,
  EmptyState,
  encodeSegment,
  Hash,
  MarkedValue,
  Notice,
  Page,
  PagedList,
  request,
  Snippet,
  Table,
  Ago,
  ActionName,
  Time,
  usePaged,
} from "../../console/app/kit.ts";

type Statement = Api["GET /v1/coverage"]["response"]["statements"][number];

const PAGE_SIZE = 50;

const TEXTS = {
  title: "Coverage",
  empty: "No log has been compared with the ledger yet.",
  emptyHelp:
    "Compare the log of a system that agents act on, such as AWS CloudTrail, to find effects without a decision. Configure the log as a source in assent.yaml; docs/reconcile.md begins with an example that you can run.",
  emptySnippet: "Compare a day of a log",
  command: "assent reconcile production trail/*.json.gz --from 2026-01-31 --to 2026-02-01",
  gap: (sources: readonly string[]) =>
    `The newest comparison of ${sources.join(", ")} has effects that no action explains, or successes without effect. Its details say what to do.`,
  noEffects: (sources: readonly string[]) =>
    `The newest comparison of ${sources.join(", ")} found no effect to compare, so it does not show that nothing bypassed Assent. Check that its files cover the window, and check the mappings and actors of the source.`,
  unmatched: "Effects that no action explains",
  unmatchedHelp:
    "Find each event in the log by its ID. If an agent caused it, stop the agent and remove the credentials that it acted with. If a person or another program caused it, limit the actors of the source to the identities of agents. If the action is the right one, correct the mapping or tolerance_seconds of the source.",
  missing: "Successes without effect",
  missingHelp:
    "Check in the other system whether these effects exist. If they do, the files do not cover the whole run of the action, or the mapping is wrong. If they do not, the agent reported a success that did not happen.",
  unknown: "Unknown pairs",
  unknownHelp:
    "These effects have no ID of an action, or the parameters of their action were erased. Each fits an action, but the match is only a guess. Credentials that Assent issues attach the ID.",
  more: (count: number) => `${count} more. To list all of them, repeat the comparison with --report FILE.`,
  compared: "What was compared",
  tolerance: (seconds: number) => `Times can differ by ${seconds} seconds`,
  skipped: ({ outside, unmapped, other_actors, duplicates, no_effect }: Statement["skipped"]) =>
    `Skipped: ${outside} outside the window, ${unmapped} of other kinds, ${other_actors} of other identities, ${duplicates} duplicates, ${no_effect} without effect.`,
};

const REASONS: Readonly<Record<Statement["unmatched"][number]["reason"], string>> = {
  unknown_action: "names an action that was not started",
  other_operation: "names an action of another operation",
  parameters_differ: "has other parameters than its action",
  outside_action: "happened before its action started or after it ended",
  already_matched: "names an action that already has its effect",
  erased: "names or resembles an action whose parameters were erased",
  not_read: "names an action that started before the window; also give the log files since its start",
  no_action: "no action has these parameters at this time",
};

const hasGap = ({ effects, actions }: Statement): boolean => effects.unmatched > 0 || actions.missing > 0;

export function Coverage() {
  const list = usePaged(async (cursor, signal) => {
    const query = { limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
    const { statements, next_cursor } = await request("GET /v1/coverage", { query, signal });
    return { rows: statements.map((statement) => ({ ...statement, id: String(statement.seq) })), next_cursor };
  }, []);
  const newest = new Map<string, Statement>();
  for (const statement of list.rows ?? []) if (!newest.has(statement.source)) newest.set(statement.source, statement);
  const gaps = [...newest.values()].filter(hasGap).map(({ source }) => source);
  const withoutEffects = [...newest.values()].filter(({ effects }) => effects.total === 0).map(({ source }) => source);
  return (
    <Page title={TEXTS.title}>
      {gaps.length === 0 ? null : <Notice kind="bad">{TEXTS.gap(gaps)}</Notice>}
      {withoutEffects.length === 0 ? null : <Notice kind="busy">{TEXTS.noEffects(withoutEffects)}</Notice>}
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
    <EmptyState text={TEXTS.empty}>
      <p>{TEXTS.emptyHelp}</p>
      <Snippet label={TEXTS.emptySnippet} text={TEXTS.command} />
    </EmptyState>
  );
}

/** Renders a statement as two rows: its facts, and below them its details over the whole width. */
function Row({ statement }: { statement: Statement }) {
  const { source, format, from, to, effects, actions, seq, hash, by, at: recorded } = statement;
  return (
    <>
      <tr class="has-details">
        <td>
          <strong>
            <MarkedValue value={source} />
          </strong>
          <br />
          <span class="quiet">
            <MarkedValue value={format} />
          </span>
        </td>
        <td data-label="Window">
          <Time at={from} /> – <Time at={to} />
        </td>
        <td data-label="Effects">
          <Count value={effects.matched} label="matched" />
          <Count value={effects.unmatched} label="unmatched" isGap />
          <Count value={effects.unknown} label="unknown" />
        </td>
        <td data-label="Actions">
          <Count value={actions.matched} label="matched" />
          <Count value={actions.missing} label="missing" isGap />
          <Count value={actions.unknown} label="unknown" />
        </td>
        <td data-label="Recorded">
          <Ago at={recorded} />
          <br />
          <PageLink href={`#/provenance/${encodeSegment(hash)}`}>entry {seq}</PageLink>
          <br />
          <span class="quiet">
            <MarkedValue value={by} />
          </span>
        </td>
      </tr>
      <tr>
        <td class="details" colSpan={5}>
          <Details statement={statement} />
        </td>
      </tr>
    </>
  );
}

function Count({ value, label, isGap = false }: { value: number; label: string; isGap?: boolean }) {
  const text = `${value} ${label}`;
  return <div class="count">{isGap && value > 0 ? <strong>{text}</strong> : text}</div>;
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
  const { effects, cannot_see, skipped, files, operations, actors, tolerance_seconds } = statement;
  return (
    <>
      <UnmatchedEffects statement={statement} />
      <MissingEffects statement={statement} />
      {effects.unknown === 0 ? null : (
        <>
          <h3>{TEXTS.unknown}</h3>
          <p>{TEXTS.unknownHelp}</p>
        </>
      )}
      <h3>What the source cannot see</h3>
      <ul>
        {cannot_see.map((sentence) => (
          <li key={sentence}>
            <MarkedValue value={sentence} />
          </li>
        ))}
      </ul>
      <h3>{TEXTS.compared}</h3>
      <ul>
        {operations.map(({ tool, operation }) => (
          <li key={JSON.stringify([tool, operation])}>
            <MarkedValue value={`${tool} ${operation}`} />
          </li>
        ))}
        <li>
          {actors === null ? "Effects of all identities" : <MarkedValue value={`Effects of ${actors.join(", ")}`} />}
        </li>
        <li>{TEXTS.tolerance(tolerance_seconds)}</li>
        {files.map(({ name, sha256, records }) => (
          <li key={`${name} ${sha256}`}>
            <MarkedValue value={name} />, {records === 1 ? "1 record" : `${records} records`}, SHA-256{" "}
            <Hash value={sha256} />
          </li>
        ))}
      </ul>
      <p>{TEXTS.skipped(skipped)}</p>
    </>
  );
}

function UnmatchedEffects({ statement: { unmatched, effects } }: { statement: Statement }) {
  if (unmatched.length === 0) return null;
  return (
    <>
      <h3>{TEXTS.unmatched}</h3>
      <p>{TEXTS.unmatchedHelp}</p>
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
            , event <MarkedValue value={id} />
          </li>
        ))}
      </ul>
      <More count={effects.unmatched - unmatched.length} />
    </>
  );
}

function MissingEffects({ statement: { missing, actions } }: { statement: Statement }) {
  if (missing.length === 0) return null;
  return (
    <>
      <h3>{TEXTS.missing}</h3>
      <p>{TEXTS.missingHelp}</p>
      <ul>
        {missing.map(({ id, at: time }) => (
          <li key={id}>
            <a href={`#/actions/${encodeSegment(id)}`}>
              <ActionName id={id} />
            </a>{" "}
            <Time at={time} />
          </li>
        ))}
      </ul>
      <More count={actions.missing - missing.length} />
    </>
  );
}

function More({ count }: { count: number }) {
  return count <= 0 ? null : <p>{TEXTS.more(count)}</p>;
}
