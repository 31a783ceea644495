/** The access review: who can approve what, who approved, and which keys and users are unused. */
import {
  userState,
  canSee,
  canSeeAgent,
  type CoreHost,
  parseRfc3339,
  principalOfUser,
  readPrincipalNames,
  type Rights,
  type User,
  type Visibility,
  type GroupLimits,
  rightsReader,
} from "../../../src/core.ts";
import { type Credential, toRfc3339 } from "../../../src/plugin.ts";
import type { KeyRow } from "../../../src/storage/index.ts";
import type { Sessions } from "../sessions.ts";
import { readVotingActivity, type Votes } from "./votes.ts";

const DAY = 24 * 3_600_000;

/** Glob patterns of agents and tools; null for all. */
interface Patterns {
  agents: string[] | null;
  tools: string[] | null;
}

/**
 * A limit on the agents and tools of actions. An action must also match `also`, such as the limits of a delegation or
 * of a key's creator.
 */
type ReviewLimit = Patterns & { also: Patterns[] };

/** A user, a live key, or another principal that voted, such as a revoked key without an owner. */
export interface ReviewRow {
  kind: "user" | "key" | "voter";
  id: string | null;
  name: string;
  principal: string;
  roles: string[];
  groups: string[];
  may_approve: boolean;
  /**
   * An action must match at least one of these limits. Null if the user or key can approve all actions, or none (see
   * `may_approve`).
   */
  limits: ReviewLimit[] | null;
  /** The agent that the key is bound to. */
  agent_id: string | null;
  approvals: number;
  rejections: number;
  /** Number of emergency approvals. */
  break_glass: number;
  /** Principals of the users on whose behalf a user can approve now. */
  delegators: string[];
  /** Approvals divided by votes; null if there are no votes. */
  approval_rate: number | null;
  /** Median number of seconds from submission to vote; null if there are no votes. */
  median_seconds: number | null;
  last_used_at: string | null;
  /** Whether the user or key is active, was created before the period and was not used in it. */
  unused: boolean;
  ended_at: string | null;
}

export interface AccessReview {
  since: string;
  until: string;
  /** Ids of emergency approvals that no one has reviewed yet, of any age. Oldest first. */
  open_reviews: string[];
  rows: ReviewRow[];
}

/** Reviews the last `days` days. Counts only votes on actions that the credential sees. */
export async function reviewAccess(
  host: CoreHost,
  sessions: Sessions,
  days: number,
  credential: Credential,
): Promise<AccessReview> {
  const { visibility } = credential;
  const now = host.clock();
  const since = now - days * DAY;
  const snapshot = await host.snapshot();
  const users = snapshot.state(userState);
  const reader = { ...rightsReader(host, snapshot), now };
  const { votes, users: activity } = await readVotingActivity(host, since, visibility);
  const rows: ReviewRow[] = [];
  for (const user of users.values()) {
    const used = await lastUse(sessions, user, activity.get(user.id) ?? 0);
    rows.push({
      ...describeRights(await host.keys.rightsOf(reader, user.id)),
      ...describeVotes(votes.get(principalOfUser(user.id))),
      ...describeUse(used, parseRfc3339(user.created_at) ?? 0, since, user.ended_at),
      kind: "user",
      id: user.id,
      name: user.name,
      principal: principalOfUser(user.id),
      roles: [...user.roles],
      delegators: await listDelegators(host, user.id),
      agent_id: null,
    });
  }
  for (const key of await host.storage.keys()) {
    if (key.agent_id !== null && !canSeeAgent(credential, key.agent_id)) continue;
    const rights = await host.keys.rightsOf(reader, key.id);
    if (rights !== null) rows.push(describeKey(key, rights, votes.get(rights.principal), since));
  }
  const unreviewed = host.soleApproval?.listUnreviewed(snapshot) ?? [];
  const open_reviews = unreviewed
    .filter(({ agent_id, tool }) => canSee(visibility, { agent_id, tool, submitted_by: null }))
    .map(({ id }) => id);
  const period = { since: toRfc3339(since), until: toRfc3339(now) };
  return { ...period, open_reviews, rows: [...rows, ...(await otherVoters(host, rows, votes))] };
}

/** Returns the principals of the users on whose behalf a user can approve now, without duplicates. */
export async function listDelegators(host: CoreHost, id: string): Promise<string[]> {
  const delegators = await host.users.delegatorsOf(id);
  return [...new Set(delegators.map(({ user }) => principalOfUser(user.id)))];
}

function describeKey(key: KeyRow, rights: Rights, votes: Votes | undefined, since: number): ReviewRow {
  return {
    ...describeRights(rights),
    ...describeVotes(votes),
    ...describeUse(key.last_used_at ?? 0, key.created_at, since, null),
    kind: "key",
    id: key.id,
    name: key.name,
    principal: rights.principal,
    roles: [],
    delegators: [],
    agent_id: key.agent_id,
  };
}

/** Returns a row for each other principal that voted: neither a user nor a live key. */
async function otherVoters(
  host: CoreHost,
  rows: readonly ReviewRow[],
  votes: ReadonlyMap<string, Votes>,
): Promise<ReviewRow[]> {
  const listedPrincipals = new Set(rows.map(({ principal }) => principal));
  const others = [...votes].filter(([principal]) => !listedPrincipals.has(principal));
  const names = await readPrincipalNames(
    host.storage,
    await host.state(userState),
    others.map(([principal]) => principal),
  );
  return others.map(([principal, own]): ReviewRow => ({
    ...describeRights(null),
    ...describeVotes(own),
    ...describeUse(0, Infinity, 0, null),
    kind: "voter",
    id: null,
    name: names[principal] ?? principal,
    principal,
    roles: [],
    delegators: [],
    agent_id: null,
  }));
}

/**
 * Returns what a principal can approve.
 * @param rights null if the principal no longer has rights
 */
export function describeRights(rights: Rights | null): Pick<ReviewRow, "groups" | "may_approve" | "limits"> {
  const may_approve = rights !== null && rights.hasScope("approvals:decide");
  return {
    groups: [...(rights?.groups ?? [])],
    may_approve,
    limits: rights === null || !may_approve ? null : describeLimits(rights.visibility),
  };
}

function describeLimits(visibility: Visibility): ReviewRow["limits"] {
  if ("within" in visibility)
    return visibility.within.map((limits) => {
      const [first = { agents: null, tools: null }, ...also] = listPatterns(limits);
      return { ...first, also };
    });
  if ("agent_id" in visibility) return [{ agents: [visibility.agent_id], tools: null, also: [] }];
  // A user who sees only their own submissions cannot approve actions.
  return "key_id" in visibility ? [] : null;
}

/** Returns the patterns of a limit, without duplicates. An action must match all of them. */
function listPatterns({ agents, tools, agent_id, also }: GroupLimits): Patterns[] {
  const ownPatterns = { agents: agents === null ? null : [...agents], tools: tools === null ? null : [...tools] };
  const bound =
    agent_id === undefined ? [] : [{ agents: [agent_id], tools: agents === null ? ownPatterns.tools : null }];
  const rest = also === undefined ? [] : listPatterns(also);
  const all = [...bound, ...(bound.length > 0 && agents === null ? [] : [ownPatterns]), ...rest];
  const texts = all.map((patterns) => JSON.stringify(patterns));
  return all.filter(
    (patterns, i) => texts.indexOf(texts[i] as string) === i && (patterns.agents !== null || patterns.tools !== null),
  );
}

type VoteColumns = Pick<ReviewRow, "approvals" | "rejections" | "break_glass" | "approval_rate" | "median_seconds">;

function describeVotes(votes: Votes | undefined): VoteColumns {
  if (votes === undefined)
    return { approvals: 0, rejections: 0, break_glass: 0, approval_rate: null, median_seconds: null };
  const { approvals, rejections, break_glass, waits } = votes;
  const rate = approvals / (approvals + rejections);
  return {
    approvals,
    rejections,
    break_glass,
    approval_rate: Math.round(rate * 1000) / 1000,
    median_seconds: Math.round(median(waits) / 1000),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1] ?? 0, sorted[sorted.length >> 1] ?? 0];
  return (low + high) / 2;
}

function describeUse(
  used: number,
  created: number,
  since: number,
  ended_at: string | null,
): Pick<ReviewRow, "last_used_at" | "unused" | "ended_at"> {
  return {
    last_used_at: used === 0 ? null : toRfc3339(used),
    unused: ended_at === null && used < since && created < since,
    ended_at,
  };
}

/**
 * Returns the time of the user's newest entry or newest use of a session, whichever is later. Milliseconds; 0 if there
 * is neither.
 */
async function lastUse(sessions: Sessions, { id }: User, recorded: number): Promise<number> {
  const seen = (await sessions.list(id)).map(({ seen_at }) => seen_at);
  return Math.max(recorded, ...seen);
}
