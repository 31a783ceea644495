/** Finds channels to which policies refer but which the configuration does not define. */
import { findSimilarName } from "../../similar-name.ts";
import type { ApprovalTerms, PolicyDocument } from "../policy-types.ts";

interface UnknownChannel {
  policy: string;
  channel: string;
  /** One sentence for display. */
  message: string;
}

/**
 * Returns one result per policy and unknown channel, in order of appearance.
 * @param channels the names of the configured channels
 */
export function findUnknownChannels(
  documents: readonly PolicyDocument[],
  channels: readonly string[],
): UnknownChannel[] {
  return documents.flatMap(({ policy, rules, limits = [] }) => {
    const named = new Map<string, string>();
    for (const { name, approval } of [...rules, ...limits])
      for (const channel of listChannels(approval)) if (!named.has(channel)) named.set(channel, name);
    return [...named]
      .filter(([channel]) => !channels.includes(channel))
      .map(([channel, rule]) => {
        const suggestion = findSimilarName(channel, channels);
        return {
          policy,
          channel,
          message: `"${rule}" of the policy "${policy}" notifies the channel "${channel}", which is not configured: no one is notified${suggestion === null ? "" : `; did you mean "${suggestion}"?`}`,
        };
      });
  });
}

/** Returns the channels in the terms for the request and for its stages. */
export function listChannels(terms: ApprovalTerms | undefined): string[] {
  return [...(terms?.notify ?? []), ...(terms?.stages ?? []).flatMap(({ notify = [] }) => notify)];
}
