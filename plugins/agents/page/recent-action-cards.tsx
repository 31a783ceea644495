/** Cards that are computed from an agent's newest actions: the latest, and typical parameters. */
import {
  type Action,
  Age,
  Badge,
  buildUrl,
  Card,
  EmptyState,
  encodeSegment,
  LoadedCard,
  MarkedValue,
  request,
  RequestHeadline,
  SubmitSnippet,
  Table,
  useLoad,
} from "../../console/app/kit.ts";
import { AGENT_TEXTS as TEXTS } from "./strings.ts";
import { findTypicalParameters, type TypicalAction } from "./typical-parameters.ts";

/**
 * Maximum number of the agent's actions that the cards read. The service compares an action with the same number of
 * earlier actions.
 */
const MAX_ACTIONS = 300;
const MAX_LATEST = 8;
/** Maximum number of kinds of action whose parameters are described. */
const MAX_KINDS = 5;
/** Minimum number of actions of a kind: one action does not show what is typical. */
const MIN_COUNT = 2;

type RecentActions = ReturnType<typeof useRecentActions>;

/** Loads the agent's newest actions once for all cards. */
export function useRecentActions(id: string) {
  return useLoad(
    async (signal) => {
      const query = { agent_id: id, limit: MAX_ACTIONS };
      return (await request("GET /v1/actions", { query, signal })).actions;
    },
    [id],
  );
}

export function RecentActionCards({ id, recentActions }: { id: string; recentActions: RecentActions }) {
  return (
    <>
      <LoadedCard
        id="latest"
        title={TEXTS.latest}
        what="actions"
        loaded={recentActions}
        side={<a href={buildUrl("#/actions", { agent_id: id })}>{TEXTS.allActions}</a>}
      >
        {(actions) => (actions.length === 0 ? <NoActions id={id} /> : <Latest actions={actions} />)}
      </LoadedCard>
      {recentActions.data === null || recentActions.data.length === 0 ? null : <Typical actions={recentActions.data} />}
    </>
  );
}

function NoActions({ id }: { id: string }) {
  return (
    <EmptyState text={TEXTS.noActions}>
      <SubmitSnippet agent={id} />
    </EmptyState>
  );
}

function Latest({ actions }: { actions: readonly Action[] }) {
  return (
    <Table label={TEXTS.newest} head={["Action", "Status", "Age"]}>
      {actions.slice(0, MAX_LATEST).map((action) => (
        <tr key={action.id}>
          <td>
            <a href={`#/actions/${encodeSegment(action.id)}`}>
              <RequestHeadline action={action} />
            </a>
          </td>
          <td>
            <Badge value={action.status} />
          </td>
          <td>
            <Age at={action.created_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Typical({ actions }: { actions: readonly Action[] }) {
  const kinds = findTypicalParameters(actions.filter(({ erased_at }) => erased_at === null))
    .filter(({ count, members }) => count >= MIN_COUNT && members.length > 0)
    .slice(0, MAX_KINDS);
  return (
    <Card id="typical" title={TEXTS.typical}>
      {kinds.length === 0 ? (
        <p class="quiet">{TEXTS.noTypical}</p>
      ) : (
        <>
          <p class="quiet">{TEXTS.typicalHelp(actions.length)}</p>
          {kinds.map((kind) => (
            <Kind key={`${kind.tool} ${kind.operation}`} kind={kind} />
          ))}
        </>
      )}
    </Card>
  );
}

function Kind({ kind: { tool, operation, count, members } }: { kind: TypicalAction }) {
  const name = `${tool} ${operation}`;
  return (
    <>
      <h3>
        <MarkedValue value={name} /> <span class="quiet">×{count}</span>
      </h3>
      <dl class="facts typical">
        {members.map((member) => (
          <div key={member.name}>
            <dt>
              <MarkedValue value={member.name} />
              {member.count === count ? null : ` (in ${member.count})`}
            </dt>
            <dd>
              <Member member={member} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function Member({ member }: { member: TypicalAction["members"][number] }) {
  if (member.kind === "number") {
    const { low, middle, high } = member;
    if (low === high) return <>{low.toLocaleString()}</>;
    return (
      <>
        {low.toLocaleString()} – <strong>{middle.toLocaleString()}</strong> – {high.toLocaleString()}
      </>
    );
  }
  const { values, distinct } = member;
  if (values.length === 0) return <span class="quiet">different each time</span>;
  return (
    <>
      {values.map(({ text, count }) => (
        <div key={text}>
          <MarkedValue value={text.replaceAll(/\s+/g, " ")} /> <span class="quiet">×{count}</span>
        </div>
      ))}
      {distinct > values.length ? (
        <div class="quiet">and {(distinct - values.length).toLocaleString()} others</div>
      ) : null}
    </>
  );
}
