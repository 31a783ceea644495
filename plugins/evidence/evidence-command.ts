/** `assent evidence` writes a pack that lets an auditor verify a time window of the ledger offline. */
import {
  createProgressReporter,
  EXIT_CODES,
  parseArguments,
  parseTimeWindow,
  printJson,
  readCheckpointFlag,
  readStore,
  usageError,
  type Command,
} from "../../src/command.ts";
import { createPackWriter } from "./pack-writer.ts";
import { renderVerificationPage } from "./page.ts";
import { writePack } from "./write-pack.ts";

export const evidence: Command = {
  help: `usage: assent evidence --from TIME --to TIME --out FOLDER [--checkpoint FILE] [--config FILE] [--json]

Writes the decisions, approvals with their signatures, policies, people, grants, delegations, stops, reviews and coverage
statements of a window, with proofs, into a new folder. Open verify.html in it to verify and read them. Only reads the store,
and can run while the service runs. The pack contains parameters of actions in clear, unless they were erased.

  --from, --to       the window: dates such as 2026-01-31, or RFC 3339 times. The end is exclusive
  --out FOLDER       where the pack goes
  --checkpoint FILE  checkpoint.txt of an earlier pack, to make the same pack again. Default: the newest one, or the
                     newest that witnesses cosigned
  --config FILE      configuration file that names the store
  --json             print the result as JSON

examples:
  assent evidence --from 2026-01-01 --to 2026-04-01 --out evidence-2026-q1
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      from: { type: "string" },
      to: { type: "string" },
      out: { type: "string" },
      checkpoint: { type: "string" },
      config: { type: "string" },
      json: { type: "boolean" },
    });
    if (positionals.length > 0) throw usageError("assent evidence takes no arguments, only flags");
    const { out } = values;
    if (out === undefined) throw usageError("--out is required");
    const { from, to } = parseTimeWindow(values);
    const checkpoint = values.checkpoint === undefined ? null : readCheckpointFlag(values.checkpoint);
    const report = createProgressReporter(io);
    const { manifest, digest, actions } = await readStore(values.config, (storage, optionsOf) =>
      writePack(storage, {
        writer: createPackWriter(out),
        from,
        to,
        checkpoint,
        witnesses: readWitnessKeys(optionsOf("witness")),
        page: renderVerificationPage(),
        progress: (done, total) => report("entries", done, total),
      }),
    );
    const { first, end } = manifest;
    if (values.json === true) printJson(io, { digest, first, end, actions, files: manifest.files });
    else {
      io.out(`${end - first} entries and ${actions} actions are in ${out}`);
      io.out(`digest of the pack: ${digest}`);
      io.out("open verify.html in a browser to verify and read it");
    }
    return EXIT_CODES.ok;
  },
};

/** Returns the verifier keys of the witnesses in the options of the feature `witness`. */
function readWitnessKeys(options: unknown): string[] {
  const { witnesses = [] } = (options ?? {}) as { witnesses?: { vkey: string }[] };
  return witnesses.map(({ vkey }) => vkey);
}
