/** Shows the active legal holds. People place and release them on the command line. */
import type { LegalHold } from "../core/api-types.ts";
import { request } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { Age, ErrorNotice, Table, MarkedValue } from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";
import { PersonLink } from "../ui/person.tsx";
import { Card } from "../ui/section.tsx";
import { TEXTS } from "./strings.ts";

const READ_SCOPES = ["holds:write", "actions:erase", "provenance:read"];

export function Holds() {
  const {
    data: holds,
    error,
    reload,
  } = useLoad(
    async (signal) => (READ_SCOPES.some(hasScope) ? (await request("GET /v1/holds", { signal })).holds : []),
    [],
  );
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
