/** What each scope permits. Features describe their own scopes. */
import { type Api, loadTexts, scopeTexts, useLoad } from "../../console/app/kit.ts";

export type KeyScope = NonNullable<Api["POST /v1/api-keys"]["body"]["scopes"]>[number];

const SCOPES: Readonly<Partial<Record<KeyScope, string>>> = {
  admin: "everything, always",
  "actions:submit": "submit actions",
  "actions:read": "see all actions",
  "actions:read_own": "see its own actions",
  "actions:execute": "start what was allowed, and report results",
  "actions:erase": "erase requests for good",
  "actions:settle": "settle unknown outcomes",
  "credentials:receive": "receive credentials for actions that it starts",
  "approvals:decide": "approve and deny",
  "grants:write": "grant later actions, and revoke grants",
  "sessions:issue": "start and continue sessions of agents",
  "holds:write": "place and release legal holds, which prevent erasures",
  "events:read": "follow events",
  "metrics:read": "read metrics",
};

/** Returns what each scope permits, keyed by scope: `admin`, and then the others in alphabetical order. */
export function useScopes(): Readonly<Record<string, string>> {
  const { data } = useLoad(async () => {
    await loadTexts();
    return scopeTexts();
  }, []);
  const { admin = "", ...others } = { ...SCOPES, ...data };
  return { admin, ...Object.fromEntries(Object.entries(others).sort(([a], [b]) => (a < b ? -1 : 1))) };
}
