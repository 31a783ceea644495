/** The active legal holds on the page about the service. People place and release them on the command line. */
import {
  Age,
  type Api,
  Card,
  type EntryOf,
  ErrorNotice,
  MarkedValue,
  type PartTexts,
  PersonLink,
  request,
  Table,
  useLoad,
} from "../../console/app/kit.ts";

type LegalHold = Api["GET /v1/holds/{id}"]["response"];

const TEXTS = {
  holds: "Legal holds",
  holdsHelp: "Nothing that they cover is erased. To release one:",
  releaseCommand: "assent hold --release ID --reason TEXT",
  activeHolds: "Active legal holds",
} as const;

export function Holds() {
  const {
    data: holds,
    error,
    reload,
  } = useLoad(async (signal) => (await request("GET /v1/holds", { signal })).holds, []);
  if (error !== null) return <ErrorNotice error={error} onRetry={reload} />;
  if (holds === null || holds.length === 0) return null;
  return (
    <Card id="holds" title={TEXTS.holds}>
      <p>
        {TEXTS.holdsHelp} <code>{TEXTS.releaseCommand}</code>
      </p>
      <Table label={TEXTS.activeHolds} head={["Covers", "Reason", "Placed", "By", "Id"]}>
        {holds.map((hold) => (
          <tr key={hold.id}>
            <td>
              <MarkedValue value={describeCover(hold)} />
            </td>
            <td data-label="Reason">
              <MarkedValue value={hold.reason} />
            </td>
            <td data-label="Placed">
              <Age at={hold.placed_at} />
            </td>
            <td data-label="By">
              <PersonLink principal={hold.placed_by} />
            </td>
            <td data-label="Id">
              <code>
                <MarkedValue value={hold.id} />
              </code>
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** Returns a description such as "agent support-bot"; "subject" if the caller may not see the person. */
function describeCover(hold: LegalHold): string {
  const value = hold[hold.scope];
  return value === null ? hold.scope : `${hold.scope} ${value}`;
}

/** Texts of legal holds on pages of other features. */
export const texts: PartTexts = {
  entries: {
    legal_hold: {
      summarize(entry) {
        const { hold, change } = entry as unknown as EntryOf<"legal_hold">;
        return <MarkedValue value={`legal hold ${change.replaceAll("_", " ")}: ${hold.reason}`} />;
      },
      describe: (entry) => <MarkedValue value={`(${(entry as unknown as EntryOf<"legal_hold">).hold.reason})`} />,
    },
  },
};
