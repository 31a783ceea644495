/** Tables of a pack for spreadsheets: votes, people, and keys. They are derived from the entries. */
import { voteMethod } from "../../src/browser.ts";
import {
  type ApiKeyEntry,
  type ApprovalEntry,
  type Decision,
  type DecisionEntry,
  decodeEntry,
  type RedecisionEntry,
  renderCsvCell,
  type UserEntry,
  userOfPrincipal,
} from "../../src/core.ts";
import type { EntryRow } from "../../src/storage/index.ts";
import type { PackStore } from "./pack-store.ts";
import { readEntries } from "./entries.ts";
import { readActionEntries } from "./opened-actions.ts";

type Person = UserEntry["user"];
type Key = ApiKeyEntry["key"] & { created_at: string; ended_at: string | null };

interface UsersAndKeys {
  users: ReadonlyMap<string, Person>;
  keys: ReadonlyMap<string, Key>;
}

/** Computes the users and keys from entries, which must be in ledger order. */
export async function computePeople(rows: AsyncIterable<Pick<EntryRow, "type" | "bytes">>): Promise<UsersAndKeys> {
  const users = new Map<string, Person>();
  const keys = new Map<string, Key>();
  for await (const { type, bytes } of rows) {
    if (type === "user") {
      const { user } = decodeEntry<UserEntry>(bytes);
      users.set(user.id, user);
    } else if (type === "api_key") {
      const { key, change, at } = decodeEntry<ApiKeyEntry>(bytes);
      const before = keys.get(key.id);
      keys.set(key.id, { ...key, created_at: before?.created_at ?? at, ended_at: change === "revoked" ? at : null });
    }
  }
  return { users, keys };
}

export function* renderPeople({ users, keys }: UsersAndKeys): Iterable<string> {
  yield renderRow(["kind", "id", "name", "roles", "groups", "scopes", "agent_id", "created_at", "ended_at"]);
  for (const { id, name, roles, groups, created_at, ended_at } of users.values())
    yield renderRow(["user", id, name, roles.join(" "), groups.join(" "), "", "", created_at, ended_at ?? ""]);
  for (const { id, name, scopes, agent_id, created_at, ended_at, expires_at } of keys.values())
    yield renderRow([
      "key",
      id,
      name,
      "",
      "",
      scopes.join(" "),
      agent_id ?? "",
      created_at,
      ended_at ?? expires_at ?? "",
    ]);
}

const VOTE_COLUMNS = [
  "at",
  "verdict",
  "approver",
  "name",
  "agent_id",
  "tool",
  "operation",
  "policy",
  "rule",
  "reason",
  "comment",
  "method",
  "on_behalf_of",
  "break_glass",
  "action_id",
  "entry",
];

/** Yields one row for each vote in the window. */
export async function* renderVotes(
  store: PackStore,
  { first, end }: { first: number; end: number },
  { users, keys }: UsersAndKeys,
): AsyncIterable<string> {
  yield renderRow(VOTE_COLUMNS);
  for await (const { type, bytes } of readEntries(store, first, end)) {
    if (type !== "approval") continue;
    const vote = decodeEntry<ApprovalEntry>(bytes);
    if (vote.by === null || (vote.verdict !== "approve" && vote.verdict !== "deny")) continue;
    const action = await store.action(vote.action_id);
    const decision = await readDecision(store, vote.action_id, vote.seq);
    const { principal, key_id } = vote.by;
    const name = users.get(userOfPrincipal(principal) ?? "")?.name ?? keys.get(key_id)?.name ?? "";
    yield renderRow([
      vote.at,
      vote.verdict,
      principal,
      name,
      vote.agent_id,
      action?.tool ?? "",
      action?.operation ?? "",
      decision?.policy ?? "",
      decision?.rule ?? "",
      decision?.reason ?? "",
      vote.comment ?? "",
      voteMethod({ ...vote, by: vote.by }),
      vote.delegation?.from ?? "",
      vote.break_glass ? "yes" : "no",
      vote.action_id,
      String(vote.seq),
    ]);
  }
}

/** Returns the newest decision about an action before the entry `end`; the action's row can have a later decision. */
async function readDecision(store: PackStore, actionId: string, end: number): Promise<Decision | null> {
  const rows = await readActionEntries(store, actionId, end);
  const row = rows.findLast(({ type }) => type === "decision" || type === "redecision");
  return row === undefined ? null : decodeEntry<DecisionEntry | RedecisionEntry>(row.bytes).decision;
}

function renderRow(cells: readonly string[]): string {
  return `${cells.map(renderCsvCell).join(",")}\r\n`;
}
