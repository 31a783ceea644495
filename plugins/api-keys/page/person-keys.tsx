/** The card with the live keys whose votes count as a user's. */
import { LoadedCard, request, useLoad } from "../../console/app/kit.ts";
import { KeyTable } from "./keys.tsx";

const TEXTS = {
  keys: "Keys",
  noKeys: "No live key belongs to this person.",
} as const;

export function PersonKeys({ user }: { user: string }) {
  const loaded = useLoad(
    (signal) =>
      request("GET /v1/api-keys", { query: { principal: `user:${user}`, status: "live", limit: 100 }, signal }),
    [user],
  );
  return (
    <LoadedCard id="keys" title={TEXTS.keys} what="keys" loaded={loaded}>
      {({ api_keys: keys }) => (keys.length === 0 ? <p class="quiet">{TEXTS.noKeys}</p> : <KeyTable keys={keys} />)}
    </LoadedCard>
  );
}
