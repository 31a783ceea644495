/** The page of grants: what is allowed in advance, by whom, until when, and how often each grant was used. */
import { useState } from "preact/hooks";
import {
  type Api,
  Badge,
  Dialog,
  EmptyState,
  encodeSegment,
  ErrorNotice,
  Field,
  FormButtons,
  hasScope,
  MarkedValue,
  Page,
  PagedList,
  PersonLink,
  readFormValues,
  renderPlain,
  request,
  ResultNotice,
  Snippet,
  Table,
  Time,
  usePaged,
  useSubmit,
} from "../../console/app/kit.ts";
import { describeFreeMembers } from "../scope-words.ts";
import { TEXTS } from "./strings.ts";

type Grant = Api["GET /v1/grants"]["response"]["grants"][number];

const COMMAND = "assent grants --suggest ID";
const HEAD = ["Covers", "Scope", "Used", "Granted by", "Until", "Status", ""];

export function Grants() {
  const [isActive, setActive] = useState(true);
  const [revoking, setRevoking] = useState<Grant | null>(null);
  const [result, setResult] = useState("");
  const list = usePaged(
    async (cursor, signal) => {
      const query = { active: isActive, limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const { grants: rows, next_cursor } = await request("GET /v1/grants", { query, signal });
      return { rows, next_cursor };
    },
    [isActive],
  );
  return (
    <Page title={TEXTS.title}>
      <ResultNotice text={result} />
      <div class="filters">
        <div class="field">
          <label for="grant-status">Show</label>
          <select
            id="grant-status"
            value={isActive ? "active" : "ended"}
            onChange={(event) => setActive(event.currentTarget.value === "active")}
          >
            <option value="active">active</option>
            <option value="ended">ended</option>
          </select>
        </div>
      </div>
      <PagedList list={list} what="grants" empty={<NoGrants isActive={isActive} />}>
        {(grants) => (
          <Table label={TEXTS.title} head={HEAD}>
            {grants.map((grant) => (
              <Row key={grant.id} grant={grant} onRevoke={() => setRevoking(grant)} />
            ))}
          </Table>
        )}
      </PagedList>
      {revoking === null ? null : (
        <Revoke
          grant={revoking}
          onClose={() => setRevoking(null)}
          onDone={() => {
            setRevoking(null);
            setResult(TEXTS.revoked(nameOf(revoking)));
            list.reload();
          }}
        />
      )}
    </Page>
  );
}

const nameOf = ({ agent_id, tool, operation }: Grant): string => renderPlain(`for ${agent_id}: ${tool} ${operation}`);

function NoGrants({ isActive }: { isActive: boolean }) {
  return (
    <EmptyState text={isActive ? TEXTS.empty : TEXTS.emptyAll}>
      <p>{TEXTS.emptyHelp}</p>
      <Snippet label="Suggest scopes for a pending action" text={COMMAND} />
      <p>
        <a href="#/approvals">Open the pending requests</a>
      </p>
    </EmptyState>
  );
}

function Row({ grant, onRevoke }: { grant: Grant; onRevoke(): void }) {
  const { id, agent_id, tool, operation, scope, free, until, granted_by, granted_at, status, ended, comment } = grant;
  return (
    <tr>
      <td>
        <strong>
          <MarkedValue value={`${tool} ${operation}`} />
        </strong>
        <br />
        <span class="quiet">
          by <MarkedValue value={agent_id} />
        </span>
      </td>
      <td data-label="Scope">
        {scope === null ? (
          <span class="quiet">every request</span>
        ) : (
          <code>
            <MarkedValue value={scope} />
          </code>
        )}
        <br />
        <span class="quiet">
          <MarkedValue value={TEXTS.free(describeFreeMembers(free))} />
        </span>
      </td>
      <td data-label="Used">
        <Uses grant={grant} />
      </td>
      <td data-label="Granted by">
        <PersonLink principal={granted_by} />
        <br />
        <span class="quiet">
          <Time at={granted_at} />
          {comment ? (
            <>
              : “<MarkedValue value={comment} />”
            </>
          ) : null}
        </span>
      </td>
      <td data-label="Until">
        <Time at={ended?.at ?? until} />
      </td>
      <td data-label="Status">
        <Badge value={status} label={status.replace("_", " ")} />
        {ended === null ? null : <End ended={ended} />}
      </td>
      <td>
        {ended === null && hasScope("grants:write") ? (
          <button
            type="button"
            class="danger small"
            aria-label={`Revoke the grant ${nameOf(grant)}, ${id.slice(-6)}`}
            onClick={onRevoke}
          >
            Revoke…
          </button>
        ) : null}
      </td>
    </tr>
  );
}

/** Renders the used and the remaining amount of a grant, with a link to its uses. */
function Uses({ grant: { id, count, used, sum } }: { grant: Grant }) {
  return (
    <>
      <a href={`#/actions?grant_id=${encodeSegment(id)}`}>{used === null ? "uses" : `${used.count} of ${count}`}</a>
      {used === null ? null : (
        <>
          <br />
          <span class="quiet">{Math.max(0, count - used.count)} left</span>
        </>
      )}
      {sum === null || used === null ? null : (
        <>
          <br />
          <span class="quiet">
            {used.sum ?? 0} of {sum.at_most} (<MarkedValue value={sum.of} />)
          </span>
        </>
      )}
    </>
  );
}

function End({ ended: { cause, by, comment } }: { ended: NonNullable<Grant["ended"]> }) {
  return (
    <>
      <br />
      <span class="quiet">
        {cause}
        {by === null ? null : (
          <>
            {" "}
            by <PersonLink principal={by} />
          </>
        )}
        {comment ? (
          <>
            : “<MarkedValue value={comment} />”
          </>
        ) : null}
      </span>
    </>
  );
}

function Revoke({ grant, onClose, onDone }: { grant: Grant; onClose(): void; onDone(): void }) {
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { reason = "" } = readFormValues(form);
    await request("POST /v1/grants/{id}/revoke", { path: [grant.id], body: reason === "" ? {} : { reason } });
    onDone();
  });
  return (
    <Dialog title="Revoke this grant?" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <strong>
            <MarkedValue value={`${grant.tool} ${grant.operation}`} />
          </strong>{" "}
          by <MarkedValue value={grant.agent_id} />
        </p>
        <p>{TEXTS.revokeHelp}</p>
        <Field name="reason" label="Reason" help="Recorded in the ledger; optional." error={error} maxLength={500} />
        <ErrorNotice error={error} />
        <FormButtons look="danger" isDisabled={isBusy} cancel="Keep it" onClose={onClose}>
          Revoke
        </FormButtons>
      </form>
    </Dialog>
  );
}
