/** The notice to the approver to whom a request was handed. */
import { type EntryBody, formatTime, type NoticeKind, parseRfc3339, renderText } from "../../src/plugin.ts";
import { CLAIM_ENTRY, type ClaimChange, type ClaimOptions } from "./schemas.ts";

const MAX_NAME = 80;
type ClaimEntry = Extract<EntryBody, { data: object }>;
const changeOf = (entry: EntryBody): ClaimChange => (entry as ClaimEntry).data as ClaimChange;

export const claimNotice: NoticeKind<typeof ClaimOptions> = {
  name: "request_handed_over",
  entry: CLAIM_ENTRY,
  isDue: (entry) => changeOf(entry).change === "handed_over",
  person: (entry) => changeOf(entry).holder,
  obsoleteReason: (entry, now) =>
    (parseRfc3339(changeOf(entry).until ?? "") ?? 0) <= now ? "the claim is over" : null,
  render(entry, nameOf) {
    const { action_id, agent_id, by } = entry as ClaimEntry;
    const { holder, until } = changeOf(entry);
    const agent = renderText(agent_id ?? "", MAX_NAME);
    const from = by === null ? "" : nameOf(by.principal);
    return {
      title: `A request of ${agent} was handed to you`,
      opening: `${from} asks you to look at it. The claim ends at ${formatTime(until ?? "")}, and others can still vote.`,
      facts: [
        ["Agent", agent],
        ["From", from],
        ["Action", action_id ?? ""],
      ],
      topic: `claim:${action_id}`,
      page: `#/approvals/${action_id}`,
      data: { claim: { holder, until, by: by?.principal ?? null }, agent_id, action_id },
    };
  },
};
