/** Which actions, and which entries about them, a credential may see. */
export type Visibility = { all: true } | { agent_id: string } | { key_id: string };

/** `agent_id` and `submitted_by` are null for entries that are about no action: those are for who sees everything. */
export function canSee(
  visibility: Visibility,
  subject: { agent_id: string | null; submitted_by: string | null },
): boolean {
  if ("all" in visibility) return true;
  return "agent_id" in visibility
    ? visibility.agent_id === subject.agent_id
    : visibility.key_id === subject.submitted_by;
}
