/** The access review: who can approve what, who approved, and which keys and users are unused. */
import { useMemo, useState } from "preact/hooks";
import {
  Age,
  PageLink,
  type Api,
  Badge,
  Day,
  buildUrl,
  downloadText,
  EmptyState,
  ErrorNotice,
  fetchText,
  formatCounted,
  formatDuration,
  formatPatterns,
  Loading,
  MarkedValue,
  Notice,
  OneLine,
  Page,
  personAddress,
  request,
  RowPages,
  Table,
  useLoad,
} from "../../console/app/kit.ts";
import { InviteSnippet } from "./invite-snippet.tsx";

type Review = Api["GET /v1/access-review"]["response"];
type Row = Review["rows"][number];

const TEXTS = {
  title: "Access review",
  intro: "Who can approve what, who did in the period, and what is unused. Counted from the ledger's entries.",
  none: {
    approvers: "No user and no key can approve.",
    unused: "Everything was used.",
    all: "There are no people or keys yet.",
  },
  next: "Give a user the role approver, or create a key with the preset approver.",
} as const;

const FILTERS = [
  { name: "approvers", title: "Approvers and voters" },
  { name: "unused", title: "Unused" },
  { name: "all", title: "All" },
] as const;
type Filter = (typeof FILTERS)[number]["name"];

const PERIODS = [30, 90, 180, 366];

export function AccessReview({ query }: { query: URLSearchParams }) {
  const requestedDays = Number(query.get("days"));
  const days = Number.isInteger(requestedDays) && requestedDays >= 1 && requestedDays <= 366 ? requestedDays : 90;
  const { data, error, loading, reload } = useLoad(
    (signal) => request("GET /v1/access-review", { query: { days }, signal }),
    [days],
  );
  return (
    <Page title={TEXTS.title} side={<Downloads days={days} />}>
      <div class="row">
        <span class="quiet">{TEXTS.intro}</span>
        <label for="days">Period</label>
        <select
          id="days"
          value={String(days)}
          onChange={(event) => (location.hash = buildUrl("#/access-review", { days: event.currentTarget.value }))}
        >
          {[...new Set([...PERIODS, days])]
            .sort((a, b) => a - b)
            .map((each) => (
              <option key={each} value={each}>
                {formatCounted(each, "day")}
              </option>
            ))}
        </select>
      </div>
      <ErrorNotice error={error} onRetry={reload} />
      {data === null ? (
        error === null ? (
          <Loading what="the access review" />
        ) : null
      ) : (
        <div aria-busy={loading}>
          <ReviewTable review={data} days={days} />
        </div>
      )}
    </Page>
  );
}

/** Buttons that download the review. They fetch the file, because a link would not send an API key. */
function Downloads({ days }: { days: number }) {
  const [error, setError] = useState<unknown>(null);
  const save = async (format: "csv" | "json"): Promise<void> => {
    setError(null);
    try {
      const content = await fetchText(buildUrl("/v1/access-review", { days, format }));
      downloadText(`access-review-${new Date().toISOString().slice(0, 10)}.${format}`, content);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <div class="row">
      <button type="button" onClick={() => void save("csv")}>
        Download CSV
      </button>
      <button type="button" onClick={() => void save("json")}>
        Download JSON
      </button>
      <ErrorNotice error={error} />
    </div>
  );
}

const keyOf = ({ id, principal }: Row): string => id ?? principal;

function matchesFilter(row: Row, filter: Filter): boolean {
  if (filter === "unused") return row.unused;
  return filter === "all" || row.may_approve || row.approvals + row.rejections > 0;
}

function ReviewTable({ review: { since, until, open_reviews, rows }, days }: { review: Review; days: number }) {
  const [filter, setFilter] = useState<Filter>("approvers");
  const names = useMemo(() => new Map(rows.map(({ principal, name }) => [principal, name])), [rows]);
  const matching = rows.filter((row) => matchesFilter(row, filter));
  return (
    <>
      {open_reviews.length === 0 ? null : (
        <Notice kind="bad">
          {formatCounted(open_reviews.length, "emergency approval")} without a review.{" "}
          <PageLink href="#/break-glass">Review {open_reviews.length === 1 ? "it" : "them"}</PageLink>
        </Notice>
      )}
      <div class="tabs" role="group" aria-label="Which rows">
        {FILTERS.map(({ name, title }) => (
          <button key={name} type="button" aria-pressed={filter === name} onClick={() => setFilter(name)}>
            {title} ({rows.filter((row) => matchesFilter(row, name)).length.toLocaleString("en")})
          </button>
        ))}
        <span class="quiet period">
          <Day at={since} /> to <Day at={until} />
        </span>
      </div>
      {matching.length === 0 ? (
        <EmptyState text={TEXTS.none[filter]}>
          {filter === "unused" ? (
            <p>Every user and key that is older than {formatCounted(days, "day")} was used in this time.</p>
          ) : (
            <>
              <p>{TEXTS.next}</p>
              <InviteSnippet role="approver" />
            </>
          )}
        </EmptyState>
      ) : (
        <RowPages key={filter} rows={matching} keyOf={keyOf} what="people" order="inOrder">
          {(shown) => (
            <Table
              label={TEXTS.title}
              head={["Who", "Roles", "Can approve", "Votes", "Median time", "Last used"]}
              numbers={["Median time"]}
            >
              {shown.map((row) => (
                <ReviewRow key={keyOf(row)} row={row} names={names} />
              ))}
            </Table>
          )}
        </RowPages>
      )}
    </>
  );
}

function ReviewRow({ row, names }: { row: Row; names: ReadonlyMap<string, string> }) {
  const { kind, roles, groups, approvals, rejections, break_glass, approval_rate, median_seconds } = row;
  const rolesAndGroups = [...roles, ...groups.map((group) => `group ${group}`)].join(", ");
  return (
    <tr>
      <td>
        <strong>
          <Name row={row} />
        </strong>{" "}
        <span class="quiet">{kind}</span>
      </td>
      <td class="part-line">
        <OneLine text={rolesAndGroups} />
      </td>
      <td data-label="Can approve">
        <Power row={row} names={names} />
      </td>
      <td data-label="Votes">
        {approval_rate === null ? (
          <span class="quiet">none</span>
        ) : (
          <>
            {Math.round(approval_rate * 100)} % approved{" "}
            <span class="quiet">
              ({approvals} of {approvals + rejections}
              {break_glass === 0 ? "" : `, ${formatCounted(break_glass, "emergency approval")}`})
            </span>
          </>
        )}
      </td>
      <td data-label="Median time" class="number">
        {median_seconds === null ? <span class="quiet">–</span> : formatDuration(median_seconds * 1000)}
      </td>
      <td data-label="Last used">
        {row.ended_at !== null ? (
          <>
            <Badge value="revoked" label="ended" /> <Age at={row.ended_at} />
          </>
        ) : (
          <>
            {row.unused ? <Badge value="pending_approval" label="unused" /> : null}{" "}
            {row.last_used_at === null ? <span class="quiet">never</span> : <Age at={row.last_used_at} />}
          </>
        )}
      </td>
    </tr>
  );
}

/** Renders the name, as a link if the person has a page. Keys without an owner have no page. */
function Name({ row: { principal, name } }: { row: Row }) {
  const address = personAddress(principal);
  return address === null ? (
    <MarkedValue value={name} />
  ) : (
    <a href={address}>
      <MarkedValue value={name} />
    </a>
  );
}

function Power({ row, names }: { row: Row; names: ReadonlyMap<string, string> }) {
  const { may_approve, limits, delegators } = row;
  if (!may_approve) return <span class="quiet">nothing</span>;
  return (
    <>
      {limits === null ? "everything" : null}
      {limits?.length === 0 ? <span class="quiet">nothing</span> : null}
      {limits === null ? null : <MarkedValue value={limits.map(describeLimit).join("; ")} />}
      {delegators.length === 0 ? null : (
        <>
          , <span class="quiet">also for</span>{" "}
          <MarkedValue value={delegators.map((principal) => names.get(principal) ?? principal).join(", ")} />
        </>
      )}
    </>
  );
}

type Limit = NonNullable<Row["limits"]>[number];

/** Returns a description such as "agents support-* with tools stripe, but only agents support-1". */
export function describeLimit({ also, ...own }: Limit): string {
  return [own, ...also].map((patterns) => formatPatterns(patterns) || "everything").join(", but only ");
}
