/** The notice of a gap in coverage. */
import type { PluginEntry } from "../../src/core.ts";
import { formatTime, type NoticeKind, renderText } from "../../src/plugin.ts";
import { COVERAGE_ENTRY, type CoverageStatement, hasGap } from "./coverage-statement.ts";
import type { CoverageOptions } from "./options.ts";

const MAX_NAME = 80;
/** Maximum number of unmatched effects, and of actions without an effect, that a message contains. */
const MAX_NAMED = 5;

export const gapNotice: NoticeKind<typeof CoverageOptions> = {
  name: "coverage_gap",
  entry: COVERAGE_ENTRY,
  isDue: (entry) => hasGap((entry as PluginEntry).data as unknown as CoverageStatement),
  channels: ({ notify }) => notify,
  render(entry, nameOf) {
    const { data, by, seq } = entry as PluginEntry & { seq: number };
    const { source, from, to, effects, actions, ...rest } = data as unknown as CoverageStatement;
    const unmatched = rest.unmatched.slice(0, MAX_NAMED).map(({ at, event, actor }) => ({ at, event, actor }));
    const missing = rest.missing.slice(0, MAX_NAMED).map(({ id }) => id);
    const author = by?.principal ?? "";
    return {
      title: `Gap in coverage: ${renderText(source, MAX_NAME)}, ${effects.unmatched} unmatched and ${actions.missing} missing`,
      opening: `The log of this source has ${effects.unmatched} effects that no action explains, and lacks the effects of ${actions.missing} actions that reported success. Someone may have acted without a decision, or a tool may have reported what it did not do.`,
      facts: [
        ["Window", `${formatTime(from)} to ${formatTime(to)}`],
        ...unmatched.map(({ at, event, actor }, i): [string, string] => [
          `Effect ${i + 1}`,
          `${renderText(event, MAX_NAME)} by ${renderText(actor, MAX_NAME)} at ${formatTime(at)}`,
        ]),
        ...missing.map((id, i): [string, string] => [`Action without effect ${i + 1}`, renderText(id, MAX_NAME)]),
        ["Compared by", nameOf(author)],
        ["Ledger entry", String(seq)],
      ],
      topic: `coverage:${seq}`,
      page: "#/coverage",
      data: {
        coverage: {
          seq,
          source,
          from,
          to,
          unmatched: effects.unmatched,
          missing: actions.missing,
          first_unmatched: unmatched,
          first_missing: missing,
          by: author,
        },
      },
    };
  },
};
