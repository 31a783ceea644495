/** The cards with the live keys of an agent, and of a user. */
import type { ComponentChildren } from "preact";
import { type Api, LoadedCard, request, useLoad } from "../../console/app/kit.ts";
import { KeyTable } from "./keys.tsx";

/** Renders the keys that are bound to an agent. */
export function AgentKeys({ agent }: { agent: string }) {
  return (
    <LiveKeys filter={{ agent_id: agent }} none="No live key is bound to it." side={<a href="#/keys">All keys</a>} />
  );
}

/** Renders the keys whose votes count as a user's. */
export function PersonKeys({ user }: { user: string }) {
  return <LiveKeys filter={{ principal: `user:${user}` }} none="No live key belongs to this person." />;
}

interface Props {
  filter: Api["GET /v1/api-keys"]["query"];
  /** Text to show if no key matches. */
  none: string;
  side?: ComponentChildren;
}

function LiveKeys({ filter, none, side }: Props) {
  const loaded = useLoad(
    (signal) => request("GET /v1/api-keys", { query: { ...filter, status: "live", limit: 100 }, signal }),
    [JSON.stringify(filter)],
  );
  return (
    <LoadedCard id="keys" title="Keys" what="keys" loaded={loaded} side={side}>
      {({ api_keys: keys }) => (keys.length === 0 ? <p class="quiet">{none}</p> : <KeyTable keys={keys} />)}
    </LoadedCard>
  );
}
