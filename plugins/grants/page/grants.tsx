/** The page of grants: each grant's scope, grantor, expiry, and number of uses. */
import { useState } from "preact/hooks";
import {
  Ago,
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
  OneLine,
  Page,
  PagedList,
  PersonLink,
  readFormValues,
  renderPlain,
  request,
  ResultNotice,
  RowMenu,
  Snippet,
  Table,
  TimeLeft,
  usePaged,
  useSubmit,
} from "../../console/app/kit.ts";
import { describeFreeMembers } from "../scope-words.ts";
import { TEXTS } from "./strings.ts";

type Grant = Api["GET /v1/grants"]["response"]["grants"][number];

const COMMAND = "assent grants --suggest ID";
const HEAD = ["Covers", "Scope", "Leaves free", "Used", "Granted by", "Until", ""];

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
      <div class="tabs" role="group" aria-label="Which grants">
        {[true, false].map((each) => (
          <button key={String(each)} type="button" aria-pressed={isActive === each} onClick={() => setActive(each)}>
            {each ? "Active" : "Ended"}
          </button>
        ))}
      </div>
      <PagedList list={list} what="grants" empty={<NoGrants isActive={isActive} />}>
        {(grants) => (
          <Table label={TEXTS.title} head={HEAD} numbers={["Used"]}>
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
      <td class="nowrap">
        <strong>
          <MarkedValue value={`${tool} ${operation}`} />
        </strong>{" "}
        <span class="quiet">
          by <MarkedValue value={agent_id} />
        </span>
      </td>
      <td data-label="Scope" class="part-line">
        {scope === null ? (
          <span class="quiet">every request</span>
        ) : (
          <code class="one-line" title={renderPlain(scope)}>
            <MarkedValue value={scope} />
          </code>
        )}
      </td>
      <td data-label="Leaves free" class="part-line">
        <OneLine text={describeFreeMembers(free)} />
      </td>
      <td data-label="Used" class="number">
        <Uses grant={grant} />
      </td>
      <td data-label="Granted by">
        <span class="badge-line" {...(comment === null ? {} : { title: renderPlain(comment) })}>
          <PersonLink principal={granted_by} /> <Ago at={granted_at} />
        </span>
      </td>
      <td>
        {ended === null ? (
          <TimeLeft at={until} short />
        ) : (
          <span class="badge-line">
            <Badge value={status} label={status.replace("_", " ")} /> <End ended={ended} />
          </span>
        )}
      </td>
      <td>
        {ended === null && hasScope("grants:write") ? (
          <RowMenu
            of={nameOf(grant)}
            commands={[
              { text: "Revoke…", label: `Revoke the grant ${nameOf(grant)}, ${id.slice(-6)}`, onChoose: onRevoke },
            ]}
          />
        ) : null}
      </td>
    </tr>
  );
}

/** Renders the used and the remaining amount of a grant, with a link to its uses. */
function Uses({ grant: { id, count, used, sum } }: { grant: Grant }) {
  const href = `#/actions?grant_id=${encodeSegment(id)}`;
  if (used === null) return <a href={href}>uses</a>;
  return (
    <>
      <a href={href}>
        {used.count} of {count}
      </a>
      {sum === null ? null : (
        <span class="quiet" title={renderPlain(sum.of)}>
          , sum {used.sum ?? 0} of {sum.at_most}
        </span>
      )}
    </>
  );
}

function End({ ended: { at, cause, by, comment } }: { ended: NonNullable<Grant["ended"]> }) {
  return (
    <span class="quiet nowrap" {...(comment ? { title: renderPlain(comment) } : {})}>
      {cause}
      {by === null ? null : (
        <>
          {" "}
          by <PersonLink principal={by} />
        </>
      )}
      , <Ago at={at} />
      {comment ? (
        <>
          : “<MarkedValue value={comment} />”
        </>
      ) : null}
    </span>
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
