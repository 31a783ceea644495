import type { EntryCheck } from "../../../../src/command.ts";

export default {
  options: ["enrolment"],
  help: `  --enrolment FILE  proof of the approver's newest user entry before a signed vote. With it, the passkey's signature is
                  checked. Whether the passkey was removed in between, only assent audit can tell
`,
  async check(verified, { enrolment }, verifyFile) {
    const { checkSignedVote } = await import("../../check-signed-vote.ts");
    return { signature: await checkSignedVote(verified, enrolment as string | undefined, verifyFile) };
  },
} satisfies EntryCheck;
