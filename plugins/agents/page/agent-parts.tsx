/** Components that the list of agents and the page of one agent share. */
import { OneLine, renderPlain, type RowCommand } from "../../console/app/kit.ts";
import type { Agent } from "./api-types.ts";
import type { AgentChange } from "./agent-dialogs.tsx";
import { TEXTS } from "./strings.ts";

export function AllowedTools({ tools }: { tools: readonly string[] | null }) {
  if (tools === null || (tools.length === 1 && tools[0] === "*")) return <span class="quiet">{TEXTS.allTools}</span>;
  return tools.length === 0 ? <span class="quiet">{TEXTS.noTools}</span> : <OneLine text={tools.join(", ")} short />;
}

export function agentCommands(agent: Agent, onChange: (change: AgentChange) => void): RowCommand[] {
  const name = renderPlain(agent.id);
  const isActive = agent.status === "active";
  const verb = isActive ? "Suspend" : "Resume";
  return [
    { text: "Change…", label: `Change ${name}`, onChoose: () => onChange({ kind: "change", agent }) },
    {
      text: `${verb}…`,
      label: `${verb} ${name}`,
      isDanger: isActive,
      onChoose: () => onChange({ kind: isActive ? "suspend" : "resume", agent }),
    },
  ];
}
