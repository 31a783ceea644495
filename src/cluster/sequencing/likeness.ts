/** Whether two processes would decide alike: only then does one decide for the other. */
import type { Config } from "../../config/index.ts";
import type { LedgerCommand } from "../../contract/commands.ts";
import type { Vault } from "../../contract/host.ts";
import { canonicalText } from "../../domain/canonical.ts";
import { toHex, utf8 } from "../../domain/hash.ts";
import type { JsonValue } from "../../domain/json.ts";
import { VERSION } from "../../version.ts";

/** Keyed, because the options of plugins can hold secrets. */
export function likenessOf(vault: Pick<Vault, "mac">, config: Config, commands: readonly LedgerCommand[]): string {
  const { agents, approvals, channels, permits, plugins, require_registered_agents, retention, stop } = config;
  const all = {
    version: VERSION,
    decides: {
      agents,
      approvals,
      channels,
      permits: permits.valid_seconds,
      plugins,
      require_registered_agents,
      retention,
      stop,
    },
    commands: commands.map(({ name, scope, payload, answer }) => ({ name, scope, payload, answer })),
  };
  return toHex(vault.mac("peer-likeness", utf8(canonicalText(JSON.parse(JSON.stringify(all)) as JsonValue))));
}
