/** The card with the live keys that are bound to an agent. */
import { LoadedCard, request, useLoad } from "../../console/app/kit.ts";
import { KeyTable } from "./keys.tsx";

const TEXTS = {
  keys: "Keys",
  noKeys: "No live key is bound to it.",
} as const;

export function AgentKeys({ agent }: { agent: string }) {
  const loaded = useLoad(
    (signal) => request("GET /v1/api-keys", { query: { agent_id: agent, status: "live", limit: 100 }, signal }),
    [agent],
  );
  return (
    <LoadedCard id="keys" title={TEXTS.keys} what="keys" loaded={loaded} side={<a href="#/keys">All keys</a>}>
      {({ api_keys: keys }) => (keys.length === 0 ? <p class="quiet">{TEXTS.noKeys}</p> : <KeyTable keys={keys} />)}
    </LoadedCard>
  );
}
