/** The actions and entries that a credential can see. */
export type Visibility = { all: true } | { agent_id: string } | { key_id: string };

/**
 * Whether the credential can see the subject. `agent_id` and `submitted_by` are null for entries about no action, which
 * only unrestricted credentials see.
 */
export function canSee(
  visibility: Visibility,
  subject: { agent_id: string | null; submitted_by: string | null },
): boolean {
  if ("all" in visibility) return true;
  return "agent_id" in visibility
    ? visibility.agent_id === subject.agent_id
    : visibility.key_id === subject.submitted_by;
}
