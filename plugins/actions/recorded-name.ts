/** The name of a person or key that facts of a decision record. */
import { readPrincipalNames, toSingleLine, type Users } from "../../src/core.ts";
import type { StorageReader } from "../../src/storage/index.ts";

const MAX_NAME = 200;

/** Returns the name on one line; null if the principal has none. */
export async function readRecordedName(
  reader: Pick<StorageReader, "key">,
  users: Users,
  principal: string,
): Promise<string | null> {
  const names = await readPrincipalNames(reader, users, [principal]);
  return toSingleLine(names[principal] ?? "", MAX_NAME) || null;
}
