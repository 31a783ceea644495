/** Proposed rules. They exist only as ledger entries: nothing applies a proposal, and a person writes the rule. */
import {
  canSee,
  confirmCredential,
  type CoreHost,
  type LedgerTransaction,
  parseStoredRequest,
  readParameter,
  sameName,
  toActor,
} from "../../src/core.ts";
import {
  type Credential,
  type ErrorKind,
  type Fold,
  parsePolicies,
  PersistentMap,
  Refusal,
  toRfc3339,
} from "../../src/plugin.ts";
import type { ProposalEntry } from "./entry.ts";

/** Maximum number of open proposals of one key, so that it cannot flood the people who review them. */
const MAX_OPEN = 5;
/** Number of the agent's newest actions that the evidence counts. */
const MAX_COUNTED = 100;

export const ERRORS = {
  notFound: { code: "PROPOSAL_NOT_FOUND", status: 404, title: "There is no such proposal" },
  tooMany: { code: "TOO_MANY_PROPOSALS", status: 409, title: "The key has reached its limit of open proposals" },
} satisfies Record<string, ErrorKind>;

export interface Proposal extends Pick<ProposalEntry, "agent_id" | "evidence"> {
  id: string;
  /** The key that proposed the rule. */
  key_id: string;
  terms: ProposalEntry["proposal"];
  proposed_at: string;
  dismissed: { at: string; by: string; comment: string | null } | null;
}

/** All proposals, keyed by id. */
export const proposalState: Fold<PersistentMap<string, Proposal>> = {
  name: "rule_proposals",
  initial: PersistentMap.of(),
  on: { rule_proposal: applyProposal },
};

/** Applies an entry. Throws RangeError if it contradicts earlier entries. */
export function applyProposal(
  all: PersistentMap<string, Proposal>,
  { at, agent_id, change, comment, evidence, proposal: terms, by }: ProposalEntry,
): PersistentMap<string, Proposal> {
  const { id } = terms;
  const before = all.get(id);
  if (change === "proposed") {
    if (before !== undefined) throw new RangeError(`the rule ${id} is proposed twice`);
    return all.with(id, { id, agent_id, key_id: by.key_id, terms, evidence, proposed_at: at, dismissed: null });
  }
  if (before === undefined || before.dismissed !== null) throw new RangeError(`there is no proposal ${id} to dismiss`);
  return all.with(id, { ...before, dismissed: { at, by: by.principal, comment } });
}

export type NewProposal = Omit<ProposalEntry["proposal"], "id">;

/** Records a proposal of the caller's agent. An open proposal of the key for the same rule is returned instead. */
export async function propose(
  host: CoreHost,
  credential: Credential,
  agentId: string,
  terms: NewProposal,
): Promise<{ proposal: Proposal; isNew: boolean }> {
  const id = host.newId();
  assertExactRule({ id, agent_id: agentId, terms });
  const findSame = (all: PersistentMap<string, Proposal>): Proposal | undefined => {
    const open = [...all.values()].filter(
      (candidate) => candidate.key_id === credential.key.id && candidate.dismissed === null,
    );
    const same = open.find(
      (candidate) => candidate.agent_id === agentId && describeTerms(candidate.terms) === describeTerms(terms),
    );
    if (same === undefined && open.length >= MAX_OPEN)
      throw new Refusal(
        ERRORS.tooMany,
        `${MAX_OPEN} proposals of the key "${credential.key.name}" are open, which is the limit; wait until someone has read them`,
      );
    return same;
  };
  // Check before the evidence is read, because that reads many actions.
  const open = findSame(await host.state(proposalState));
  const evidence = open?.evidence ?? (await countEarlierActions(host, credential, agentId, terms));
  return host.ledger.transact(async (tx) => {
    const caller = await tx.confirm(credential);
    const same = findSame(tx.state(proposalState)) ?? open;
    if (same !== undefined) return { proposal: same, isNew: false };
    record(tx, { change: "proposed", agent_id: agentId, proposal: { id, ...terms }, evidence, comment: null }, caller);
    return { proposal: findProposal(tx.state(proposalState), id), isNew: true };
  });
}

/** Throws VALIDATION_FAILED if the rule would be wider than the proposal, or would not be a valid policy. */
function assertExactRule(proposal: RenderedProposal): void {
  // A key can be bound to an agent with a wildcard in its name.
  const [fault] = /[*?]/.test(proposal.agent_id)
    ? ["the name of the agent contains a wildcard, so that the rule would cover other agents"]
    : parsePolicies(renderRule(proposal), "proposal.yaml").faults.map(({ message }) => message);
  if (fault !== undefined) throw new Refusal("VALIDATION_FAILED", `the proposed rule is not valid: ${fault}`);
}

/**
 * Returns true if the credential can see actions of the proposal's agent and tool, because the evidence counts such
 * actions.
 */
export function canSeeProposal({ visibility, limits }: Credential, { agent_id, terms }: Proposal): boolean {
  const within = "key_id" in visibility ? limits : visibility;
  return canSee(within, { agent_id, tool: terms.tool, submitted_by: null });
}

/** Records that a person does not want the rule. */
export function dismiss(host: CoreHost, credential: Credential, id: string, comment: string | null): Promise<Proposal> {
  return host.ledger.transact(async (tx) => {
    const caller = await confirmCredential(tx, credential, "policies:write");
    const proposal = findProposal(tx.state(proposalState), id);
    const { agent_id, terms, evidence, dismissed } = proposal;
    if (!canSeeProposal(caller, proposal)) throw proposalNotFoundRefusal(id);
    if (dismissed === null) record(tx, { change: "dismissed", agent_id, proposal: terms, evidence, comment }, caller);
    return findProposal(tx.state(proposalState), id);
  });
}

function record(tx: LedgerTransaction, entry: Omit<ProposalEntry, "type" | "v" | "at" | "by">, by: Credential): void {
  tx.record({ type: "rule_proposal", v: 1, at: toRfc3339(tx.now), ...entry, by: toActor(by.key, by.principal) });
}

export function findProposal(all: PersistentMap<string, Proposal>, id: string): Proposal {
  const found = all.get(id);
  if (found === undefined) throw proposalNotFoundRefusal(id);
  return found;
}

function proposalNotFoundRefusal(id: string): Refusal {
  return new Refusal(ERRORS.notFound, `there is no proposal ${id} that this key may see`);
}

/** Returns the proposals: open ones first, and then the newest first. */
export function listProposals(all: PersistentMap<string, Proposal>): Proposal[] {
  const isEnded = ({ dismissed }: Proposal): number => (dismissed === null ? 0 : 1);
  return [...all.values()].sort((a, b) => isEnded(a) - isEnded(b) || (a.id < b.id ? 1 : -1));
}

type RenderedProposal = Pick<Proposal, "id" | "agent_id"> & { terms: NewProposal };

/** Returns the proposal as a policy in shadow mode, for a person to change, test and activate. */
export function renderRule({ id, agent_id, terms }: RenderedProposal): string {
  const { tool, operation } = terms;
  const when = conditionOf(terms);
  return [
    `policy: proposed-${id.slice(-12)}`,
    "mode: shadow",
    "rules:",
    "  - name: proposed by the agent",
    `    tool: ${JSON.stringify(tool)}`,
    `    operation: ${JSON.stringify(operation)}`,
    `    agent: ${JSON.stringify(agent_id)}`,
    ...(when === null ? [] : [`    when: ${when}`]),
    "    effect: allow",
    "",
  ].join("\n");
}

/** Returns the condition of the rule in CEL; null if it covers every request of the tool and the operation. */
export function conditionOf({ most }: Pick<NewProposal, "most">): string | null {
  return most === null ? null : `${most.path} <= ${most.value}`;
}

const describeTerms = ({ tool, operation, most }: NewProposal): string => JSON.stringify([tool, operation, most]);

/** Counts the agent's newest actions that the caller can see and the rule would cover. */
async function countEarlierActions(
  { storage }: CoreHost,
  { key, visibility: visible }: Credential,
  agentId: string,
  { tool, operation, most }: NewProposal,
): Promise<ProposalEntry["evidence"]> {
  // The store cannot filter by groups, so count only what the key itself submitted.
  const visibility = "within" in visible ? { key_id: key.id } : visible;
  const rows = await storage.actions({ visibility, agent_id: agentId, limit: MAX_COUNTED });
  const covered = rows.filter((row) => {
    if (!sameName(row.tool, tool) || !sameName(row.operation, operation)) return false;
    if (most === null) return true;
    const value = readParameter(parseStoredRequest(row)?.params ?? {}, most.path.split(".").slice(1));
    return typeof value === "number" && value <= most.value;
  });
  const count = (counts: (row: (typeof rows)[number]) => boolean): number => covered.filter(counts).length;
  return {
    compared: rows.length,
    allowed: count(({ decision }) => decision === "allow"),
    // An approver who withdraws an approval cancels the action.
    approved: count(
      ({ decision, approved_until, status }) =>
        decision === "require_approval" && approved_until !== null && status !== "cancelled",
    ),
    denied: count(({ status }) => status === "denied"),
    failed: count(({ status }) => status === "failed"),
  };
}
