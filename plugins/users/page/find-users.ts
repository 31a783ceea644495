/** Finds users for the command palette. */
import { type FoundObject, personAddress, renderPlain, request } from "../../console/app/kit.ts";

/** Returns the users whose name contains the text. */
export async function findUsers(text: string, signal: AbortSignal): Promise<FoundObject[]> {
  const { users } = await request("GET /v1/users", { query: { limit: 1000 }, signal });
  return users
    .filter(({ name }) => name.toLowerCase().includes(text))
    .map(({ name, principal, ended_at }) => ({
      address: (personAddress(principal) ?? "").replace(/^\//, ""),
      title: renderPlain(name),
      kind: ended_at === null ? "user" : "deactivated user",
    }));
}
