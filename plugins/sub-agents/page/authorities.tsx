/** The authorities that an agent has or gave, the chain of an action, and the line of an authority in timelines. */
import {
  type Api,
  Card,
  encodeSegment,
  type EntryOf,
  formatCounted,
  MarkedValue,
  type PartTexts,
  Permission,
  PermissionsCard,
  PersonLink,
  type Places,
  request,
  TimeLeft,
} from "../../console/app/kit.ts";

type Authority = Api["GET /v1/authorities"]["response"]["authorities"][number];

const TEXTS = {
  title: "Sub-agents",
  help: "Under an authority, an agent acts for another. The policies must allow each action for every agent of the chain.",
  end: "End it and its descendants",
  chain: "Acts for other agents",
} as const;

export function AgentAuthorities({ agent }: { agent: string }) {
  return (
    <PermissionsCard
      id="sub-agents"
      title={TEXTS.title}
      what="authorities"
      help={TEXTS.help}
      agent={agent}
      load={readAuthorities}
    >
      {(authorities, reload) =>
        authorities.map((authority) => <ActiveAuthority key={authority.id} authority={authority} onEnded={reload} />)
      }
    </PermissionsCard>
  );
}

async function readAuthorities(agent: string, signal: AbortSignal): Promise<Authority[]> {
  const query = { agent_id: agent, active: true, limit: 100 };
  return (await request("GET /v1/authorities", { query, signal })).authorities;
}

function ActiveAuthority({ authority, onEnded }: { authority: Authority; onEnded(): void }) {
  const { id, agent_id, chain, tools, operations, condition, limits, until } = authority;
  const end = async (): Promise<void> => {
    await request("DELETE /v1/authorities/{id}", { path: [encodeSegment(id)] });
    onEnded();
  };
  return (
    <Permission
      title={
        <>
          <Chain agents={[...chain.map((link) => link.agent_id), agent_id]} />, <TimeLeft at={until} />
        </>
      }
      scope="admin"
      label={TEXTS.end}
      end={end}
    >
      <ul>
        <li>
          <MarkedValue value={`${tools.join(", ")}: ${operations.join(", ")}`} />
        </li>
        {condition === null ? null : (
          <li>
            <code>
              <MarkedValue value={condition} />
            </code>
          </li>
        )}
        {limits.count === null ? null : <li>at most {formatCounted(limits.count, "action")}</li>}
        {limits.sum === null ? null : (
          <li>
            <MarkedValue value={`${limits.sum.of} at most ${limits.sum.at_most}`} />
          </li>
        )}
      </ul>
    </Permission>
  );
}

/** The agents of a chain, root first, each with a link to its page. */
function Chain({ agents }: { agents: readonly string[] }) {
  return (
    <>
      {agents.map((name, i) => (
        <span key={i}>
          {i === 0 ? null : " → "}
          <a href={`#/agents/${encodeSegment(name)}`}>
            <MarkedValue value={name} />
          </a>
        </span>
      ))}
    </>
  );
}

/** On the page about an action: the agents for which the agent acts, and the person behind the first of them. */
export function ActionChain({ action: { agent_id, chain } }: Places["action"]) {
  const [root] = chain?.links ?? [];
  if (chain === undefined || root === undefined) return null;
  return (
    <Card id="chain" title={TEXTS.chain}>
      <p>
        <Chain agents={[...chain.links.map((link) => link.agent_id), agent_id]} />
      </p>
      <p class="quiet">
        The key of the first agent belongs to <PersonLink principal={root.principal} />. The policies must allow the
        action for each agent.
      </p>
    </Card>
  );
}

const describeAuthority = (entry: Record<string, unknown>) => {
  const { change, agent_id, authority, cause } = entry as unknown as EntryOf<"authority">;
  const end = cause === null ? "" : ` (${cause})`;
  return <MarkedValue value={`authority ${change}${end}: ${authority.from} to ${agent_id}`} />;
};

export const texts: PartTexts = {
  entries: { authority: { summarize: describeAuthority, describe: describeAuthority } },
};
