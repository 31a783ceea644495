/**
 * The page about one agent, registered or not: its status, its actions, the rules and limits that govern it, and its
 * history.
 */
import { useState } from "preact/hooks";
import {
  Ago,
  PageLink,
  ApiError,
  Badge,
  Card,
  CommandButton,
  EmptyState,
  FactList,
  hasScope,
  LedgerTimeline,
  LoadedPage,
  MarkedValue,
  Panels,
  request,
  ResultNotice,
  SubmitSnippet,
  useLoad,
} from "../../console/app/kit.ts";
import type { Agent } from "./api-types.ts";
import { type AgentChange, AgentDialogs } from "./agent-dialogs.tsx";
import { agentCommands, AllowedTools } from "./agent-parts.tsx";
import { RecentActionCards, useRecentActions } from "./recent-action-cards.tsx";
import { AGENT_TEXTS as TEXTS, TEXTS as LIST_TEXTS } from "./strings.ts";

const MAY_READ_ACTIONS = ["actions:read", "actions:read_own"];

export function AgentPage({ id }: { id: string }) {
  const [change, setChange] = useState<AgentChange | null>(null);
  const [done, setDone] = useState("");
  const loaded = useLoad((signal) => readAgent(id, signal), [id]);
  const finish = (text: string): void => {
    setChange(null);
    setDone(text);
    loaded.reload();
  };
  return (
    <>
      <LoadedPage
        title={loaded.data?.agent?.name ?? id}
        what="the agent"
        loaded={loaded}
        back={{ href: "#/agents", text: LIST_TEXTS.title }}
        side={<Panels place="agent-title" agent={id} />}
      >
        {({ agent }) => (
          <>
            <ResultNotice text={done} />
            <Status id={id} agent={agent} onChange={setChange} />
            <Parts id={id} isRegistered={agent !== null} />
          </>
        )}
      </LoadedPage>
      <AgentDialogs change={change} onClose={() => setChange(null)} onDone={finish} />
    </>
  );
}

/** Resolves to the agent, or to `{ agent: null }` if it is not registered. */
async function readAgent(id: string, signal: AbortSignal): Promise<{ agent: Agent | null }> {
  try {
    return { agent: await request("GET /v1/agents/{id}", { path: [id], signal }) };
  } catch (error) {
    if (error instanceof ApiError && error.code === "AGENT_NOT_FOUND") return { agent: null };
    throw error;
  }
}

interface StatusProps {
  id: string;
  agent: Agent | null;
  onChange(change: AgentChange): void;
}

function Status({ id, agent, onChange }: StatusProps) {
  if (agent === null)
    return (
      <section class="card" aria-label="Status">
        <p class="row">
          <Badge value="inactive" label={TEXTS.unregistered} />
          {hasScope("agents:write") ? (
            <button type="button" class="small" onClick={() => onChange({ kind: "register", id })}>
              {LIST_TEXTS.register}
            </button>
          ) : null}
        </p>
        <p class="quiet">{TEXTS.unregisteredHelp}</p>
      </section>
    );
  return (
    <section class="card" aria-label="Status">
      <div class="row">
        <Badge value={agent.status} />
        {hasScope("agents:write")
          ? agentCommands(agent, onChange).map((command) => <CommandButton key={command.text} {...command} />)
          : null}
      </div>
      {agent.description === null ? null : (
        <p>
          <MarkedValue value={agent.description} />
        </p>
      )}
      <FactList
        rows={[
          ["Id", agent.id],
          ["Tools", <AllowedTools tools={agent.allowed_tools} />],
          ["Registered", <Ago at={agent.created_at} />],
          ["Suspended", agent.suspended_at === null ? null : <Ago at={agent.suspended_at} />],
          ["Reason", agent.suspended_reason],
        ]}
      />
    </section>
  );
}

function Parts({ id, isRegistered }: { id: string; isRegistered: boolean }) {
  return MAY_READ_ACTIONS.some(hasScope) ? (
    <ActiveParts id={id} isRegistered={isRegistered} />
  ) : (
    <>
      <Panels place="agent" agent={id} actions={[]} />
      <History id={id} />
    </>
  );
}

function ActiveParts({ id, isRegistered }: { id: string; isRegistered: boolean }) {
  const recentActions = useRecentActions(id);
  if (!isRegistered && recentActions.data?.length === 0)
    return (
      <EmptyState text={TEXTS.unseen}>
        <p>{TEXTS.unseenHelp}</p>
        {hasScope("keys:manage") ? (
          <p>
            <PageLink href="#/keys">{TEXTS.newKey}</PageLink>
          </p>
        ) : null}
        <SubmitSnippet agent={id} />
      </EmptyState>
    );
  return (
    <>
      <Panels place="agent-summary" agent={id} />
      <RecentActionCards id={id} recentActions={recentActions} />
      <Panels place="agent" agent={id} actions={recentActions.data ?? []} />
      <History id={id} />
    </>
  );
}

function History({ id }: { id: string }) {
  return (
    <Card id="timeline" title={TEXTS.timeline}>
      <LedgerTimeline label={TEXTS.timeline} filters={{ agent_id: id }} />
    </Card>
  );
}
