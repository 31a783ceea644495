/** The list of plans, newest first, with the status of their actions. */
import {
  Age,
  Badge,
  EmptyState,
  encodeSegment,
  formatCounted,
  MarkedValue,
  Page,
  PagedList,
  renderPlain,
  request,
  Snippet,
  Table,
  usePaged,
} from "../../console/app/kit.ts";
import { TEXTS } from "./strings.ts";

/** Maximum number of operations that the title of a plan names. */
const MAX_NAMES = 3;

export function PlanList() {
  const list = usePaged(async (cursor, signal) => {
    const { plans, next_cursor } = await request("GET /v1/plans", {
      query: cursor === undefined ? {} : { cursor },
      ...(signal === undefined ? {} : { signal }),
    });
    return { rows: plans, next_cursor };
  }, []);
  return (
    <Page title={TEXTS.listTitle}>
      <PagedList list={list} what="plans" empty={<NoPlans />}>
        {(rows) => (
          <Table label={TEXTS.listTitle} head={["Plan", "Agent", "Status", "Age"]}>
            {rows.map(({ id, agent_id, created_at, actions }) => (
              <tr key={id}>
                <td>
                  <a href={`#/plans/${encodeSegment(id)}`}>
                    <strong>{describePlan(actions)}</strong>
                  </a>
                </td>
                <td data-label="Agent">
                  <MarkedValue value={agent_id} />
                </td>
                <td data-label="Status">
                  {[...countByStatus(actions)].map(([status, count]) => (
                    <span key={status}>
                      {count} <Badge value={status} />{" "}
                    </span>
                  ))}
                </td>
                <td data-label="Age">
                  <Age at={created_at} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </PagedList>
    </Page>
  );
}

/** Returns "3 actions: ci deploy" or "5 actions: db backup, db drop and others". */
export function describePlan(actions: readonly { tool: string; operation: string }[]): string {
  const names = [...new Set(actions.map(({ tool, operation }) => renderPlain(`${tool} ${operation}`)))];
  const others = names.length > MAX_NAMES ? " and others" : "";
  return `${formatCounted(actions.length, "action")}: ${names.slice(0, MAX_NAMES).join(", ")}${others}`;
}

function NoPlans() {
  return (
    <EmptyState text={TEXTS.none}>
      <p>{TEXTS.noneHelp}</p>
      <Snippet label={TEXTS.snippet} text={TEXTS.command(location.origin)} />
    </EmptyState>
  );
}

function countByStatus(actions: readonly { status: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { status } of actions) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}
