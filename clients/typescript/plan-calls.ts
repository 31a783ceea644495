/** The client's methods for plans. `plans.ts` implements them and is loaded on first use. */
import type { ApiCalls } from "./api-calls.ts";
import type {
  ActionRequest,
  CallOptions,
  PlanQuery,
  PlanRecord,
  PlanSummary,
  PlanVoteOptions,
  SubmitPlanOptions,
  VoteOptions,
} from "./action-types.ts";

const plans = () => import("./plans.ts");

/** Returns the methods that submit plans and vote on them. */
export function planCalls({ transport, listOf, sessionHeader, authorityMember }: ApiCalls) {
  return {
    /** Submits several requests of one agent as a plan, which people approve as one list. */
    submitPlan: async (requests: readonly ActionRequest[], options: SubmitPlanOptions = {}): Promise<PlanRecord> =>
      (await plans()).submitPlan(transport, requests, options, {
        headers: await sessionHeader(options.signal),
        ...authorityMember(options.authority),
      }),
    /** Reads a plan. Requires a key that can read all of its actions. */
    plan: async (id: string, { signal }: CallOptions = {}): Promise<PlanRecord> =>
      (await plans()).readPlanRecord(transport, id, signal),
    /**
     * Votes on a plan. If `approve` is true, rejects the actions in `strikes` and approves the other pending actions.
     * Otherwise rejects all pending actions. Actions that need further votes stay pending.
     */
    votePlan: async (id: string, approve: boolean, options: PlanVoteOptions = {}): Promise<PlanRecord> =>
      (await plans()).votePlan(transport, id, approve, options),
    /** Yields all matching plans, newest first. Reads pages as needed. */
    plans: (query: PlanQuery = {}, options?: CallOptions) => listOf<PlanSummary>("/v1/plans", query, options, "plans"),
    /**
     * Cancels the pending actions of a plan. With an admin key, also cancels allowed and approved actions that have not
     * started.
     */
    cancelPlan: async (id: string, options: VoteOptions = {}): Promise<PlanRecord> =>
      (await plans()).cancelPlan(transport, id, options),
  };
}
