/** `assent policy backtest`. Loads its modules when it runs, because the other verbs do not need a store. */
import type { Subcommand } from "../../../../src/command.ts";

const HELP = `usage: assent policy backtest [FOLDER] [--against URL|store] [--since TIME] [--until TIME] [--limit N]
                              [--examples N] [--format text|json|markdown] [--enforce] [--fail-on-flips] [--recursive] [--environment NAME] [--config FILE]

Replays past decisions with the policies of FOLDER (./policies) instead of those from files and git, each with its
recorded request, facts and clock, and prints which would flip, grouped by rule, with examples. Policies that came
through the API stay, unless FOLDER has one of the same name.

  --against URL     a running service, asked with ASSENT_API_KEY (scope replay:run); ASSENT_URL when absent
  --against store   the store that the configuration names; the service may be running
  --since TIME      such as 2026-01-31, or a duration ago such as 2h or 30d (7d)
  --until TIME      the same (now)
  --limit N         maximum number of decisions, newest first (10000)
  --examples N      number of examples for each kind of flip (3)
  --format FORMAT   text, json, or markdown for a pull request
  --json            the same as --format json
  --enforce         evaluate policies of FOLDER in shadow mode as if they were enforced
  --fail-on-flips   exit with 1 if any decision flips

examples:
  assent policy backtest --against store --since 30d
  assent policy backtest policies --against https://assent.example --format markdown > flips.md`;

export default {
  summary: "replay past decisions with the policies, and print which would flip",
  help: HELP,
  run: async (args, io) => (await import("../../cli/policy-backtest.ts")).policyBacktest(args, io),
} satisfies Subcommand;
