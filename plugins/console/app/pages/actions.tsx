/** All actions: a list that follows the ledger, with filters, a search, saved views and exports. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { encodeSegment, buildUrl } from "../core/api.ts";
import { useShortcuts } from "../core/shortcuts.ts";
import { SubmitSnippet } from "../inbox/submit-snippet.tsx";
import {
  Age,
  Badge,
  EmptyState,
  StreamStatus,
  Loading,
  Page,
  ErrorNotice,
  Table,
  MarkedValue,
} from "../ui/elements.tsx";
import { renderPlain } from "../ui/format.ts";
import { readFormValues } from "../ui/forms.tsx";
import { describeRequest, RequestHeadline, RiskBadge } from "../ui/request-view.tsx";
import { RowPages } from "../ui/row-pages.tsx";
import { ActionDetail } from "./action.tsx";
import { ActionViews } from "./action-views.tsx";
import { ExportActions } from "./export-actions.tsx";
import { type ActionFilters, FILTERS, STATUSES, useActions } from "./action-list.ts";
import { PageLink } from "../ui/page-link.tsx";
import { PersonLink } from "../ui/person.tsx";

const TEXTS = {
  title: "Actions",
  any: "any",
  search: "Search",
  searchKey: "Search all actions",
  filter: "Filter",
  more: "More…",
  fewer: "Fewer…",
  all: "All",
  none: "No action matches.",
  noneYet: "No action was submitted yet.",
  firstSteps: "Submit the first one",
  decisions: { allow: "allowed", require_approval: "required approval", deny: "denied" },
  rules: { false: "no rule matched", true: "a rule or limit decided" },
  answers: { any: "answered", approved: "approved", rejected: "rejected" },
  fields: {
    status: "Status",
    decision: "Decision",
    has_rule: "Rule",
    answer: "Answer of approvers",
    agent_id: "Agent",
    tool: "Tool",
    operation: "Operation",
    grant_id: "Grant",
    policy: "Policy",
    rule: "Rule",
    since: "From",
    until: "Until",
  },
} as const;

interface Props {
  id: string | null;
  query: URLSearchParams;
}

export function Actions({ id, query }: Props) {
  return id === null ? <List key={query.toString()} query={query} /> : <ActionDetail key={id} id={id} />;
}

/** Renders the list. The filters are in the address, so that a view can be bookmarked and shared. */
function List({ query }: { query: URLSearchParams }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""])) as ActionFilters;
  const { rows, error, loading, live, hasMore, isBusy, older, reload } = useActions(filters);
  const isFiltered = FILTERS.some((name) => filters[name] !== "");
  useShortcuts("page", [
    { keys: "/", text: TEXTS.searchKey, on: { "/": () => document.getElementById("f-q")?.focus() } },
  ]);
  return (
    <Page title={TEXTS.title} side={<StreamStatus {...live} />}>
      <ActionViews filters={filters} />
      <FilterForm filters={filters} isFiltered={isFiltered} />
      <ErrorNotice error={error} onRetry={reload} />
      {rows.length === 0 && loading ? <Loading what="actions" /> : null}
      {rows.length === 0 && !loading && error === null && !hasMore ? <NoActions isFiltered={isFiltered} /> : null}
      {rows.length === 0 && !hasMore ? null : (
        <>
          <RowPages rows={rows} keyOf={({ id }) => id} what="actions" hasMore={hasMore} isBusy={isBusy} onMore={older}>
            {(shown) => <ActionTable rows={shown} />}
          </RowPages>
          <div class="row">
            <ExportActions filters={filters} />
          </div>
        </>
      )}
    </Page>
  );
}

function NoActions({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState text={TEXTS.none}>
        <a href="#/actions">{TEXTS.all}</a>
      </EmptyState>
    );
  return (
    <EmptyState text={TEXTS.noneYet}>
      <a href="#/approvals">{TEXTS.firstSteps}</a>
      <SubmitSnippet />
    </EmptyState>
  );
}

/** Returns the text filters that the form shows. Policy and rule appear only if a link has set them. */
function shownFields(filters: ActionFilters) {
  const rare = (["policy", "rule"] as const).filter((name) => filters[name] !== "");
  return ["agent_id", "tool", "operation", "grant_id", ...rare] as const;
}

type ChoiceName = "status" | "decision" | "has_rule" | "answer";

/** Renders the filter for a member that has only a few possible values. */
function Choice({ name, filters, options }: { name: ChoiceName; filters: ActionFilters; options: readonly Option[] }) {
  return (
    <div class="field">
      <label for={`f-${name}`}>{TEXTS.fields[name]}</label>
      <select id={`f-${name}`} name={name}>
        <option value="">{TEXTS.any}</option>
        {options.map(([value, label]) => (
          <option key={value} value={value} selected={value === filters[name]}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

type Option = readonly [value: string, label: string];

function FilterForm({ filters, isFiltered }: { filters: ActionFilters; isFiltered: boolean }) {
  const apply = (event: SubmitEvent & { currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    location.hash = buildUrl("#/actions", readFormValues(event.currentTarget));
  };
  // The form shows only the search and the status until the person opens it, or if a link has set another filter.
  const [isOpen, setOpen] = useState(FILTERS.some((name) => !["q", "status"].includes(name) && filters[name] !== ""));
  return (
    <form class={isOpen ? "filters" : "filters short"} onSubmit={apply}>
      <div class="field">
        <label for="f-q">{TEXTS.search}</label>
        <input id="f-q" name="q" type="search" defaultValue={filters.q} maxLength={200} autocomplete="off" />
      </div>
      <Choice name="status" filters={filters} options={STATUSES.map((status) => [status, status.replace("_", " ")])} />
      <Choice name="decision" filters={filters} options={Object.entries(TEXTS.decisions)} />
      {filters.has_rule === "" ? null : (
        <Choice name="has_rule" filters={filters} options={Object.entries(TEXTS.rules)} />
      )}
      {filters.answer === "" ? null : (
        <Choice name="answer" filters={filters} options={Object.entries(TEXTS.answers)} />
      )}
      {shownFields(filters).map((name) => (
        <div class="field" key={name}>
          <label for={`f-${name}`}>{TEXTS.fields[name]}</label>
          <input id={`f-${name}`} name={name} defaultValue={filters[name]} autocomplete="off" spellcheck={false} />
        </div>
      ))}
      {(["since", "until"] as const).map((name) => (
        <div class="field moment" key={name}>
          <label for={`f-${name}`}>{TEXTS.fields[name]}</label>
          <input id={`f-${name}`} name={name} type="datetime-local" defaultValue={filters[name]} />
        </div>
      ))}
      <button type="submit" class="primary">
        {TEXTS.filter}
      </button>
      <button type="button" class="more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? TEXTS.fewer : TEXTS.more}
      </button>
      {isFiltered ? (
        <a class="button" href="#/actions">
          {TEXTS.all}
        </a>
      ) : null}
    </form>
  );
}

/** Renders the actions, each with its sentence as the title. */
function ActionTable({ rows }: { rows: readonly Action[] }) {
  const hasRisk = new Set(rows.map(({ risk_level }) => risk_level)).size > 1;
  const head = ["Action", "Agent", "Status", ...(hasRisk ? ["Risk"] : []), "Why", "Age"];
  return (
    <Table label="Actions" head={head}>
      {rows.map((row) => (
        <tr key={row.id}>
          <td class="part-line">
            <a href={`#/actions/${encodeSegment(row.id)}`}>
              <span class="one-line" title={renderPlain(`${describeRequest(row)} (${row.tool} ${row.operation})`)}>
                <RequestHeadline action={row} />
              </span>
            </a>
          </td>
          <td data-label="Agent" class="nowrap">
            <PageLink href={`#/agents/${encodeSegment(row.agent_id)}`}>
              <MarkedValue value={row.agent_id} />
            </PageLink>
          </td>
          <td>
            <Badge value={row.status} />
          </td>
          {hasRisk ? (
            <td>
              <RiskBadge risk={row.risk_level} />
            </td>
          ) : null}
          <td class="why">
            <Why action={row} />
          </td>
          <td data-label="Age">
            <Age at={row.created_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Renders who voted, with their comments. Without a vote, renders the reason of the decision. */
function Why({ action: { approvals, reason } }: { action: Action }) {
  const comments = approvals.flatMap((vote) => vote.reason ?? []);
  return (
    <span class="one-line" title={renderPlain([reason, ...comments].join(" · "))}>
      {approvals.length === 0 ? <MarkedValue value={reason} /> : null}
      {approvals.map(({ approver, approve, reason: comment }, i) => (
        <Fragment key={i}>
          {i === 0 ? "" : ", "}
          <PersonLink principal={approver} /> {approve ? "approved" : "denied"}
          {comment === null ? null : (
            <>
              {" "}
              <MarkedValue value={`“${comment}”`} />
            </>
          )}
        </Fragment>
      ))}
    </span>
  );
}
