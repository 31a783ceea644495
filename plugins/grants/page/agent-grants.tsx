/** The card with the active grants of an agent. */
import {
  type Api,
  encodeSegment,
  MarkedValue,
  PermissionsCard,
  PersonLink,
  renderPlain,
  request,
  Table,
  TimeLeft,
} from "../../console/app/kit.ts";
import { describeFreeMembers } from "../scope-words.ts";

type Grant = Api["GET /v1/grants"]["response"]["grants"][number];

const TEXTS = {
  grants: "Grants in use",
  activeGrants: "Active grants",
  noGrants: "No grant is active: each action that requires approval needs a person's approval.",
} as const;

export function AgentGrants({ agent }: { agent: string }) {
  return (
    <PermissionsCard
      id="grants"
      title={TEXTS.grants}
      what="grants"
      side={<a href="#/grants">All grants</a>}
      agent={agent}
      load={readGrants}
      none={TEXTS.noGrants}
    >
      {(grants) => <Grants grants={grants} />}
    </PermissionsCard>
  );
}

async function readGrants(agent: string, signal: AbortSignal): Promise<Grant[]> {
  return (await request("GET /v1/grants", { query: { agent_id: agent, active: true, limit: 100 }, signal })).grants;
}

function Grants({ grants }: { grants: readonly Grant[] }) {
  return (
    <Table
      label={TEXTS.activeGrants}
      head={["Covers", "Scope", "Leaves free", "Used", "Granted by", "Until"]}
      numbers={["Used"]}
    >
      {grants.map(({ id, tool, operation, scope, free, count, used, granted_by, until }) => (
        <tr key={id}>
          <td>
            <strong>
              <MarkedValue value={`${tool} ${operation}`} />
            </strong>
          </td>
          <td data-label="Scope" class="part-line">
            <code class="one-line" title={renderPlain(scope ?? "every request")}>
              <MarkedValue value={scope ?? "every request"} />
            </code>
          </td>
          <td data-label="Leaves free" class="part-line">
            <span class="one-line" title={renderPlain(describeFreeMembers(free))}>
              <MarkedValue value={describeFreeMembers(free)} />
            </span>
          </td>
          <td data-label="Used" class="number">
            <a href={`#/actions?grant_id=${encodeSegment(id)}`}>
              {used === null ? "uses" : `${used.count} of ${count}`}
            </a>
          </td>
          <td data-label="Granted by">
            <PersonLink principal={granted_by} />
          </td>
          <td data-label="Until">
            <TimeLeft at={until} short />
          </td>
        </tr>
      ))}
    </Table>
  );
}
