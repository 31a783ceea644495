/**
 * Returns the id under which the requests of a caller are counted against limits: the id of the key, or of the user in a
 * session. Agents that act for a user are counted apart from the user, so that an agent cannot use up the limits of its
 * approver.
 */
export function callerId({
  key,
  workload,
}: {
  key: { id: string; agent_id: string | null };
  workload?: { user_id: string | null };
}): string {
  return workload?.user_id == null ? key.id : `${key.id}/${key.agent_id}`;
}
