/** `assent policy backtest`: how it is called. What it needs is loaded when it runs: the other verbs need no store. */
import type { Verb } from "../command.ts";

const HELP = `usage: assent policy backtest [FOLDER] [--against URL|store] [--since TIME] [--until TIME] [--limit N]
                              [--examples N] [--format text|json|markdown] [--fail-on-flips] [--recursive] [--config FILE]

Makes past decisions again with the policies of FOLDER (./policies) alone, each with its own recorded request, facts and
clock, and tells which would flip: grouped by rule, with examples.

  --against URL     a running service, asked with ASSENT_API_KEY (scope replay:run); ASSENT_URL when absent
  --against store   the store that the configuration names, read beside a running service or without one
  --since TIME      RFC 3339, or an age such as 24h or 30d (7d)
  --until TIME      the same (now)
  --limit N         most decisions, newest first (10000)
  --examples N      of each kind of flip (3)
  --format FORMAT   text, json, or markdown for a pull request
  --fail-on-flips   exits with 1 when anything flips

examples:
  assent policy backtest --against store --since 30d
  assent policy backtest policies --against https://assent.example --format markdown > flips.md`;

export const backtest: Verb = {
  summary: "makes past decisions again with the policies, and tells which would flip",
  help: HELP,
  run: async (args, io) => (await import("./backtest-run.ts")).policyBacktest(args, io),
};
