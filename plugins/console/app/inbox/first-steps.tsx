/** The content of an empty inbox: how to submit the first request, with the address and the key filled in. */
import { useState } from "preact/hooks";
import type { Action } from "../core/api-types.ts";
import { encodeSegment } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { EmptyState, Notice, ErrorNotice, MarkedValue } from "../ui/elements.tsx";
import { Snippet } from "../ui/snippet.tsx";
import { FIRST_STEPS as TEXTS } from "./first-steps-texts.ts";
import { exampleAction, KEY_PLACEHOLDER, formatSubmitCommand } from "./submit-snippet.tsx";
import { createAgentKey, POLICY_YAML, readAgentKey, sendTestRequest, storeAgentKey } from "./test-request.ts";

export function FirstSteps({ text }: { text: string }) {
  const [agentKey, setAgentKey] = useState(readAgentKey());
  return (
    <div class="first-steps">
      <EmptyState text={text}>
        <p class="quiet">{TEXTS.help}</p>
        {hasScope("approvals:decide") ? <TestRequest agentKey={agentKey} /> : null}
      </EmptyState>
      <AgentKey value={agentKey} onChange={setAgentKey} />
      {waysIn(location.origin, agentKey === "" ? KEY_PLACEHOLDER : agentKey).map(({ label, lines }) => (
        <Snippet key={label} label={label} text={lines} />
      ))}
      <p>
        <a href="#/actions">{TEXTS.allActions}</a>
      </p>
    </div>
  );
}

function AgentKey({ value, onChange }: { value: string; onChange(key: string): void }) {
  const [error, setError] = useState<unknown>(null);
  const create = async (): Promise<void> => {
    try {
      setError(null);
      onChange(await createAgentKey());
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <div class="row agent-key">
      <label for="agent-key">{TEXTS.key}</label>
      <input
        id="agent-key"
        autocomplete="off"
        spellcheck={false}
        placeholder="assent_…"
        value={value}
        onInput={(event) => {
          const typed = event.currentTarget.value.trim();
          storeAgentKey(typed);
          onChange(typed);
        }}
      />
      {hasScope("keys:manage") ? (
        <button type="button" onClick={() => void create()}>
          {TEXTS.createKey}
        </button>
      ) : null}
      <span class="quiet">{TEXTS.keyHelp}</span>
      <ErrorNotice error={error} />
    </div>
  );
}

function TestRequest({ agentKey }: { agentKey: string }) {
  const [error, setError] = useState<unknown>(null);
  const [denied, setDenied] = useState<Action | null>(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    setDenied(null);
    try {
      const action = await sendTestRequest(agentKey);
      if (action.status === "pending_approval") location.hash = `#/approvals/${encodeSegment(action.id)}`;
      else setDenied(action);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <p>
        <button type="button" class="primary" disabled={isBusy || agentKey === ""} onClick={() => void send()}>
          {isBusy ? TEXTS.sending : TEXTS.send}
        </button>
      </p>
      <p class="quiet">{agentKey === "" ? TEXTS.keyFirst : TEXTS.sendHelp}</p>
      <ErrorNotice error={error} />
      {denied === null ? null : (
        <>
          <Notice kind="busy">
            {TEXTS.denied} <MarkedValue value={denied.reason} />
          </Notice>
          <Snippet label={TEXTS.addPolicy} text={POLICY_YAML} />
        </>
      )}
    </>
  );
}

/** Returns three ways to submit a request that the example policies send to an approver. */
function waysIn(origin: string, key: string): { label: string; lines: string }[] {
  return [
    { label: TEXTS.curl, lines: formatSubmitCommand(origin, key, "support-bot") },
    {
      label: TEXTS.typescript,
      lines: `import { createAssent } from "assent/client";

const assent = createAssent({ url: "${origin}", apiKey: "${key}" });
const action = await assent.submit(${JSON.stringify(exampleAction("support-bot"), null, 2)});
console.log(action.status);`,
    },
    {
      label: TEXTS.codingAgent,
      lines: `export ASSENT_URL=${origin}
ASSENT_API_KEY=… assent hook setup --host claude-code  # a key that may create keys and policies`,
    },
  ];
}
