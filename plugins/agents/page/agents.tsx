/** Agents: the list of the registered agents, and the page about one agent. */
import { useState } from "preact/hooks";
import {
  Age,
  Badge,
  EmptyState,
  encodeSegment,
  hasScope,
  LoadedPage,
  MarkedValue,
  OneLine,
  request,
  ResultNotice,
  RowMenu,
  RowPages,
  Snippet,
  Table,
  useLoad,
} from "../../console/app/kit.ts";
import type { Agent } from "./api-types.ts";
import { type AgentChange, AgentDialogs } from "./agent-dialogs.tsx";
import { agentCommands, AllowedTools } from "./agent-parts.tsx";
import { AgentPage } from "./agent.tsx";
import { TEXTS } from "./strings.ts";

/** Maximum number of agents that the list loads. */
const MAX_AGENTS = 1000;
const HEAD = ["Agent", "Description", "Status", "Tools", "Changed", ""];

export function Agents({ id }: { id: string | null }) {
  return id === null ? <AgentList /> : <AgentPage key={id} id={id} />;
}

function AgentList() {
  const [change, setChange] = useState<AgentChange | null>(null);
  const [done, setDone] = useState("");
  const loaded = useLoad((signal) => request("GET /v1/agents", { query: { limit: MAX_AGENTS }, signal }), []);
  const register = hasScope("agents:write") ? (
    <button type="button" class="primary" onClick={() => setChange({ kind: "register" })}>
      {TEXTS.register}
    </button>
  ) : null;
  return (
    <>
      <LoadedPage title={TEXTS.title} what="agents" loaded={loaded} side={register}>
        {({ agents, next_cursor }) => (
          <>
            <ResultNotice text={done} />
            {agents.length === 0 ? (
              <EmptyState text={TEXTS.none}>
                <p>{TEXTS.noneHelp}</p>
                <Snippet label="Register an agent" text={TEXTS.command(location.origin)} />
              </EmptyState>
            ) : (
              <RowPages rows={agents} keyOf={({ id }) => id} what="agents">
                {(agents) => (
                  <Table label={TEXTS.title} head={HEAD}>
                    {agents.map((agent) => (
                      <Row key={agent.id} agent={agent} onChange={setChange} />
                    ))}
                  </Table>
                )}
              </RowPages>
            )}
            {next_cursor === null ? null : <p class="quiet">{TEXTS.cut}</p>}
          </>
        )}
      </LoadedPage>
      <AgentDialogs
        change={change}
        onClose={() => setChange(null)}
        onDone={(text) => {
          setChange(null);
          setDone(text);
          loaded.reload();
        }}
      />
    </>
  );
}

function Row({ agent, onChange }: { agent: Agent; onChange(change: AgentChange): void }) {
  const { id, name, description, status, suspended_reason, updated_at } = agent;
  return (
    <tr>
      <td class="nowrap">
        <a href={`#/agents/${encodeSegment(id)}`}>
          <strong>
            <MarkedValue value={name} />
          </strong>
        </a>
        {name === id ? null : (
          <>
            {" "}
            <code class="quiet">
              <MarkedValue value={id} />
            </code>
          </>
        )}
      </td>
      <td class="part-line">
        <OneLine text={description ?? ""} />
      </td>
      <td>
        <span class="badge-line">
          <Badge value={status} /> {suspended_reason === null ? null : <OneLine text={suspended_reason} short />}
        </span>
      </td>
      <td data-label="Tools">
        <AllowedTools tools={agent.allowed_tools} />
      </td>
      <td data-label="Changed">
        <Age at={updated_at} />
      </td>
      <td>{hasScope("agents:write") ? <RowMenu of={name} commands={agentCommands(agent, onChange)} /> : null}</td>
    </tr>
  );
}
