/** Elements that both the list of agents and the page of one agent use. */
import { OneLine, renderPlain } from "../../console/app/kit.ts";
import type { Agent } from "./api-types.ts";
import type { AgentChange } from "./agent-dialogs.tsx";
import { TEXTS } from "./strings.ts";

export function AllowedTools({ tools }: { tools: readonly string[] | null }) {
  if (tools === null || (tools.length === 1 && tools[0] === "*")) return <span class="quiet">{TEXTS.allTools}</span>;
  return tools.length === 0 ? <span class="quiet">{TEXTS.noTools}</span> : <OneLine text={tools.join(", ")} short />;
}

/** The buttons that change, suspend and resume an agent. */
export function AgentButtons({ agent, onChange }: { agent: Agent; onChange(change: AgentChange): void }) {
  const isActive = agent.status === "active";
  const verb = isActive ? "Suspend" : "Resume";
  return (
    <div class="row">
      <button
        type="button"
        class="small"
        aria-label={`Change ${renderPlain(agent.id)}`}
        onClick={() => onChange({ kind: "change", agent })}
      >
        Change…
      </button>
      <button
        type="button"
        class={isActive ? "small danger" : "small"}
        aria-label={`${verb} ${renderPlain(agent.id)}`}
        onClick={() => onChange({ kind: isActive ? "suspend" : "resume", agent })}
      >
        {verb}…
      </button>
    </div>
  );
}
