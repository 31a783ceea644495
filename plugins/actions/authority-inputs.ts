/**
 * Reads what a decision under an authority needs: the authority, the facts about each of its delegators, and how much of
 * it is used up.
 */
import {
  type ActionRequest,
  type AuthorityLink,
  authorityUsageFacts,
  authorityUsePolicy,
  type CoreHost,
  type CountedDecision,
  decodeAuthority,
  type EffectFact,
  type Evaluation,
  type Facts,
  type LedgerTransaction,
  type LimitFact,
  listCountedLinks,
  principalOfUser,
  resolveObligations,
  type RightsReader,
  type Rights,
  sameName,
  usageOf,
} from "../../src/core.ts";
import { parseRfc3339, type StatesReader } from "../../src/plugin.ts";
import type { ActionRow, StorageReader } from "../../src/storage/index.ts";
import { raiseToReports } from "./limit-usage.ts";

/** Returns the authority that a request names, as the member of its facts. An authority that no step knows is faulty. */
export function findAuthority(
  { steps }: Pick<CoreHost, "steps">,
  states: StatesReader,
  id: string | null,
  agentId: string,
): Pick<Facts, "authority"> {
  if (id === null) return {};
  for (const step of steps) {
    const authority = step.resolveAuthority?.(states, id, agentId) ?? null;
    if (authority !== null) return { authority };
  }
  const reason = "the service has no feature that knows authorities";
  return { authority: { id, fault: { code: "AUTHORITY_UNKNOWN", reason }, links: [] } };
}

/** Returns true if the action was submitted under this authority, or under none if the id is null. */
export const isUnderAuthority = ({ authority }: Pick<ActionRow, "authority">, id: string | null): boolean =>
  (decodeAuthority(authority)?.id ?? null) === id;

interface Subject {
  request: ActionRequest;
  facts: Facts;
  counted: CountedDecision | null;
}

interface RuleInputs {
  evaluation: Evaluation;
  facts: Facts;
}

/**
 * Returns the inputs of a decision, extended with the facts about each delegator.
 * @param agentInputs the inputs for the agent itself
 * @param read reads the inputs for a delegator, as if the request were its own
 */
export async function readAuthorityInputs<Of extends Subject, Inputs extends RuleInputs>(
  host: CoreHost,
  reader: RightsReader & Pick<LedgerTransaction, "agentFacts"> & Pick<StorageReader, "limitUsed">,
  subject: Of,
  agentInputs: Inputs,
  read: (subject: Of) => Promise<RuleInputs>,
): Promise<Inputs> {
  const { authority } = subject.facts;
  if (authority === undefined || authority.fault !== null) return agentInputs;
  const { request } = resolveObligations(agentInputs.evaluation).evaluation;
  const delegators: Facts[] = [];
  for (const [i, link] of authority.links.entries()) {
    const delegatorFacts = await readDelegatorFacts(host, reader, link);
    const counted = subject.counted && {
      ...subject.counted,
      facts: subject.counted.facts.delegators?.[i] ?? delegatorFacts,
    };
    const { evaluation, facts } = await read({
      ...subject,
      request: { ...request, agent_id: link.agent_id },
      facts: delegatorFacts,
      counted,
    });
    const { attributes, effects, ...others } = facts;
    delegators.push({
      ...others,
      ...(effects === undefined ? {} : { effects: effects.map(hideBlockingAction) }),
      ...(attributes !== undefined && evaluation.readsAttributes() ? { attributes } : {}),
    });
  }
  const limits = [...(agentInputs.facts.limits ?? []), ...(await readUsage(reader, subject))];
  const facts = { ...agentInputs.facts, delegators, ...(limits.length === 0 ? {} : { limits }) };
  return { ...agentInputs, facts, evaluation: agentInputs.evaluation.withFacts(facts) };
}

/** The reason of a denial names only actions that its reader can see. The agent that acts reads it, not the delegator. */
function hideBlockingAction(effect: EffectFact): EffectFact {
  const { blocked_by } = effect;
  return blocked_by === null ? effect : { ...effect, blocked_by: { ...blocked_by, own: false } };
}

/** Returns the facts about the agent and the key that gave an authority, as they are now. */
async function readDelegatorFacts(
  host: CoreHost,
  reader: RightsReader & Pick<LedgerTransaction, "agentFacts">,
  link: AuthorityLink,
): Promise<Facts> {
  const rights = await host.keys.rightsOf(reader, link.key_id);
  const { attributes, ...agent } = await reader.agentFacts(link.agent_id);
  return {
    principal: { agent_id: link.agent_id, key_id: link.key_id, name: rights?.key.name ?? "", owner: link.owner },
    final_request: true,
    ...(link.session === null ? {} : { session: link.session }),
    ...agent,
    attributes: { ...attributes, groups: [...(rights?.groups ?? [])], roles: [...(rights?.roles ?? [])] },
    ...(mayStillSubmit(rights, link) ? {} : { key_ended: true }),
  };
}

function mayStillSubmit(rights: Rights | null, { agent_id, key_id }: AuthorityLink): boolean {
  if (rights === null) return false;
  // The agent used a token of its user. Then `key_id` is the user, who is not bound to an agent.
  if (rights.principal === principalOfUser(key_id)) return true;
  const bound = rights.key.agent_id;
  return bound !== null && sameName(bound, agent_id) && rights.hasScope("actions:submit");
}

/**
 * Returns the usage of each counted link. For an open action, this is the usage in its decision, because the current
 * usage includes the action.
 */
async function readUsage(reader: Pick<StorageReader, "limitUsed">, { facts, counted }: Subject): Promise<LimitFact[]> {
  const usage: LimitFact[] = [];
  for (const link of listCountedLinks(facts)) {
    const [policy, limit, since] = [authorityUsePolicy(link.id), "uses", parseRfc3339(link.created_at) ?? 0];
    const recorded = (name: string): number | undefined =>
      counted?.facts.limits?.find((fact) => fact.policy === policy && fact.limit === name)?.used;
    const [count, sum] = [recorded("count"), recorded("sum")];
    const uses = { policy, limit, subject: "", since, ...usageOf(link.sum) };
    const used =
      count === undefined || sum === undefined
        ? await reader.limitUsed(policy, limit, "", since)
        : { count, sum: await raiseToReports(reader, uses, sum, counted) };
    usage.push(...authorityUsageFacts(link, used));
  }
  return usage;
}
