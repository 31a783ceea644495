/** The notice to the approver of an action that someone flagged. */
import { type EntryBody, type NoticeKind, renderText } from "../../src/plugin.ts";
import { type Flag, FLAG_ENTRY } from "./schemas.ts";

/** Maximum lengths of a name and of the reason in the message. */
const [MAX_NAME, MAX_REASON] = [80, 500];
type FlagEntry = Extract<EntryBody, { data: object }>;
const flagOf = (entry: EntryBody): Flag => (entry as FlagEntry).data as Flag;

export const flagNotice: NoticeKind = {
  name: "action_flagged",
  entry: FLAG_ENTRY,
  isDue: (entry) => flagOf(entry).approver !== (entry as FlagEntry).by?.principal,
  person: (entry) => flagOf(entry).approver,
  render(entry, nameOf) {
    const { action_id, agent_id, by } = entry as FlagEntry;
    const agent = renderText(agent_id ?? "", MAX_NAME);
    const reason = renderText(flagOf(entry).reason, MAX_REASON);
    const from = by === null ? "" : nameOf(by.principal);
    return {
      title: `An action of ${agent} that you approved was flagged`,
      opening: `${from} says that it should not have been approved. If it has not started, you can still withdraw your approval.`,
      facts: [
        ["Reason", reason],
        ["Agent", agent],
        ["From", from],
        ["Action", action_id ?? ""],
      ],
      topic: `flag:${action_id}`,
      page: `#/actions/${action_id}`,
      data: { flag: { ...flagOf(entry), by: by?.principal ?? null }, agent_id, action_id },
    };
  },
};
