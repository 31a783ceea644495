/** The list of plans, newest first, with the status of their actions. */
import {
  Badge,
  EmptyState,
  encodeSegment,
  MarkedValue,
  Page,
  PagedList,
  request,
  Snippet,
  Table,
  Time,
  usePaged,
} from "../../console/app/kit.ts";
import { TEXTS } from "./plan-strings.ts";

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
          <Table label={TEXTS.listTitle} head={["Submitted", "Agent", "Actions", "Status"]}>
            {rows.map(({ id, agent_id, created_at, actions }) => (
              <tr key={id}>
                <td>
                  <a href={`#/plans/${encodeSegment(id)}`}>
                    <Time at={created_at} />
                  </a>
                </td>
                <td data-label="Agent">
                  <MarkedValue value={agent_id} />
                </td>
                <td data-label="Actions">{actions.length}</td>
                <td data-label="Status">
                  {[...countByStatus(actions)].map(([status, count]) => (
                    <span key={status}>
                      {count} <Badge value={status} />{" "}
                    </span>
                  ))}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </PagedList>
    </Page>
  );
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
