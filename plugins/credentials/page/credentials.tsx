/** Credentials for actions: their card on the page about the service, and their entries in timelines. */
import { Card, LedgerTimeline, MarkedValue, type PartTexts, Time } from "../../console/app/kit.ts";

/** The reasons why a credential ended. */
const CREDENTIAL_ENDS: Readonly<Record<string, string>> = {
  result: "the action has ended",
  expired: "it expired",
  stopped: "the action was stopped",
  access_lost: "its agent or key has lost access",
  not_started: "the action was not started",
};

const TYPES = "actions:credential_issued,actions:credential_ended";
const TEXTS = {
  credentials: "Credentials for actions",
  credentialsHelp: "Short-lived credentials that tools received for one action, and how they ended.",
} as const;

export function Credentials() {
  return (
    <Card id="credentials" title={TEXTS.credentials}>
      <p class="quiet">{TEXTS.credentialsHelp}</p>
      <LedgerTimeline label={TEXTS.credentials} filters={{ type: TYPES }} />
    </Card>
  );
}

export const texts: PartTexts = {
  entries: {
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
