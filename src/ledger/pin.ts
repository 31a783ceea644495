import { uuidv7 } from "uuidv7";
import type { Vault } from "../contract/host.ts";
import type { Storage } from "../contract/storage.ts";
import { formatVkey } from "../domain/checkpoint.ts";

/** The log's name and key are kept with it: another key would start a second history under the same entries. */
export async function pinLog(
  storage: Storage,
  configured: string | null,
  vault: Pick<Vault, "publicKey">,
): Promise<string> {
  const first = async (): Promise<void> => {
    const name = configured ?? `assent.local/${uuidv7().slice(-12)}`;
    // Looked at again under the lock: several processes may start on one empty store.
    await storage.write(async (tx) => {
      if ((await tx.meta("log_vkey")) !== null) return;
      await tx.putMeta("log_origin", name);
      await tx.putMeta("log_vkey", formatVkey(name, vault.publicKey));
    });
  };
  if ((await storage.meta("log_vkey")) === null) await first();
  const origin = configured ?? (await storage.meta("log_origin")) ?? "";
  const pinned = await storage.meta("log_vkey");
  const vkey = formatVkey(origin, vault.publicKey);
  if (pinned === vkey) return origin;
  throw new Error(
    `the store belongs to the log with the key ${pinned ?? ""}, and the configured key is ${vkey}: put the log key (data folder, or ASSENT_LOG_KEY) and ASSENT_LOG_ORIGIN back that this store was started with`,
  );
}
