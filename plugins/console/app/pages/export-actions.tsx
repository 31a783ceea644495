/** Saves the actions that match the filters as CSV or JSON. */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { request } from "../core/api.ts";
import { namesOfPrincipals } from "../core/me.ts";
import { downloadText, ErrorNotice } from "../ui/elements.tsx";
import { formatCounted } from "../ui/format.ts";
import { VOTE_METHODS } from "../ui/vote-method.tsx";
import { type ActionFilters, toActionQuery } from "./action-list.ts";
import { toCsv } from "./csv.ts";

const PAGE = 1000;
/** Maximum number of exported actions, because the file is built in memory. */
const MAX_ROWS = 20_000;

const TEXTS = {
  csv: "Export CSV",
  json: "Export JSON",
  reading: (count: number) => `${count.toLocaleString("en")} actions read…`,
  done: (count: number) => `${formatCounted(count, "action")} exported.`,
  cut: (count: number) =>
    `The newest ${count.toLocaleString("en")} actions are exported, not all. Narrow the filters to export the others.`,
} as const;

const COLUMNS = [
  "id",
  "created_at",
  "agent_id",
  "tool",
  "operation",
  "preview",
  "status",
  "decision",
  "risk_level",
  "policy",
  "rule",
  "reason",
  "votes",
  "params",
  "context",
] as const;

/** The states of an action that was approved. */
const APPROVED: ReadonlySet<string> = new Set(["approved", "executing", "unknown", "succeeded", "failed"]);

type Vote = Action["approvals"][number];

/** Returns the cells of the CSV file. One cell has all votes of an action: who gave them, for whom, how and why. */
async function describeRows(rows: readonly Action[]): Promise<unknown[][]> {
  const votes = rows.flatMap(({ approvals }) => approvals);
  const names = await namesOfPrincipals(
    votes.flatMap(({ approver, on_behalf_of }) => (on_behalf_of === null ? [approver] : [approver, on_behalf_of])),
  );
  return rows.map((row) => COLUMNS.map((column) => (column === "votes" ? describeVotes(row, names) : row[column])));
}

/** Returns the votes of people; if there are none, the decisions of machine reviewers. */
function describeVotes(row: Action, names: ReadonlyMap<string, string>): string {
  const { approvals, decision, rejection, denied_by, status } = row;
  if (approvals.length > 0) return approvals.map((vote) => describeVote(vote, names)).join("; ");
  if (denied_by === "reviewer" && rejection != null)
    return `denied by the reviewer ${rejection.approver.replace(/^reviewer:/, "")}: ${rejection.reason ?? ""}`;
  return decision === "require_approval" && APPROVED.has(status) ? "approved by machine reviewers" : "";
}

function describeVote(vote: Vote, names: ReadonlyMap<string, string>): string {
  const { approver, approve, reason, on_behalf_of, break_glass, self_approval, method, created_at } = vote;
  const parts = [
    `${approve ? "approved" : "denied"} by ${names.get(approver) ?? approver}`,
    ...(on_behalf_of === null ? [] : [`on behalf of ${names.get(on_behalf_of) ?? on_behalf_of}`]),
    ...(break_glass ? ["in an emergency"] : []),
    ...(self_approval ? ["as the person behind the agent"] : []),
    VOTE_METHODS[method],
    created_at,
  ];
  return `${parts.join(", ")}${reason === null ? "" : `: ${reason}`}`;
}

export function ExportActions({ filters }: { filters: ActionFilters }) {
  const [message, setMessage] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const save = async (format: "csv" | "json"): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const { rows, isCut } = await readAll(filters, (count) => setMessage(TEXTS.reading(count)));
      const text = format === "json" ? JSON.stringify(rows, null, 2) : toCsv(COLUMNS, await describeRows(rows));
      downloadText(`actions.${format}`, text);
      setMessage(isCut ? TEXTS.cut(rows.length) : TEXTS.done(rows.length));
    } catch (problem) {
      setMessage("");
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => void save("csv")}>
        {TEXTS.csv}
      </button>
      <button type="button" disabled={isBusy} onClick={() => void save("json")}>
        {TEXTS.json}
      </button>
      <span class="quiet" role="status">
        {message}
      </span>
      <ErrorNotice error={error} />
    </>
  );
}

async function readAll(
  filters: ActionFilters,
  onProgress: (count: number) => void,
): Promise<{ rows: Action[]; isCut: boolean }> {
  const rows: Action[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    if (rows.length >= MAX_ROWS) return { rows, isCut: true };
    const more: { cursor?: string } = cursor === "" ? {} : { cursor };
    const page: { actions: Action[]; next_cursor: string | null } = await request("GET /v1/actions", {
      query: { ...toActionQuery(filters), limit: PAGE, ...more },
    });
    rows.push(...page.actions);
    cursor = page.next_cursor;
    onProgress(rows.length);
  }
  return { rows, isCut: false };
}
