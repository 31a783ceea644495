/** Texts of legal holds and credentials on pages of other features. */
import { type EntryOf, MarkedValue, type PartTexts, Time } from "../../console/app/kit.ts";

/** The reasons why a credential ended. */
const CREDENTIAL_ENDS: Readonly<Record<string, string>> = {
  result: "the action has ended",
  expired: "it expired",
  stopped: "the action was stopped",
  access_lost: "its agent or key has lost access",
  not_started: "the action was not started",
};

export const texts: PartTexts = {
  entries: {
    legal_hold: {
      summarize(entry) {
        const { hold, change } = entry as unknown as EntryOf<"legal_hold">;
        return <MarkedValue value={`legal hold ${change.replaceAll("_", " ")}: ${hold.reason}`} />;
      },
      describe: (entry) => <MarkedValue value={`(${(entry as unknown as EntryOf<"legal_hold">).hold.reason})`} />,
    },
    "actions:credential_issued": {
      summarize: () => null,
      describe(entry) {
        const { issuer, expires_at } = entry["data"] as { issuer: string; expires_at: string };
        return (
          <>
            (<MarkedValue value={issuer} />, valid until <Time at={expires_at} />) for
          </>
        );
      },
    },
    "actions:credential_ended": {
      summarize: () => null,
      describe(entry) {
        const { issuer, cause, revoked } = entry["data"] as { issuer: string; cause: string; revoked: boolean };
        return (
          <>
            (<MarkedValue value={issuer} />: {CREDENTIAL_ENDS[cause] ?? cause}, {revoked ? "revoked" : "not revoked"})
            for
          </>
        );
      },
    },
  },
};
