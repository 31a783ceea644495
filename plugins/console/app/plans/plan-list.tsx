/** The list of plans, newest first, with the status of their actions. */
import { at, request } from "../core/api.ts";
import { Badge, Empty, Loading, Page, Problem, Table, Text, Time } from "../ui/elements.tsx";
import { usePaged } from "../ui/paged.ts";
import { TEXTS } from "./strings.ts";

export function PlanList() {
  const { rows, error, hasMore, isBusy, more, reload } = usePaged(async (cursor, signal) => {
    const { plans, next_cursor } = await request("GET /v1/plans", {
      query: cursor === undefined ? {} : { cursor },
      ...(signal === undefined ? {} : { signal }),
    });
    return { rows: plans, next_cursor };
  }, []);
  return (
    <Page title={TEXTS.listTitle}>
      <Problem error={error} again={reload} />
      {rows === null && error === null ? <Loading what="plans" /> : null}
      {rows?.length === 0 ? <Empty text={TEXTS.none} /> : null}
      {rows === null || rows.length === 0 ? null : (
        <Table label={TEXTS.listTitle} head={["Submitted", "Agent", "Actions", "Status"]}>
          {rows.map(({ id, agent_id, created_at, actions }) => (
            <tr key={id}>
              <td>
                <a href={`#/plans/${at(id)}`}>
                  <Time at={created_at} />
                </a>
              </td>
              <td data-label="Agent">
                <Text value={agent_id} />
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
      {hasMore ? (
        <button type="button" disabled={isBusy} onClick={more}>
          {TEXTS.older}
        </button>
      ) : null}
    </Page>
  );
}

function countByStatus(actions: readonly { status: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { status } of actions) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}
