/**
 * Delegations: who approves on whose behalf. Users create their own. Admins and the two users of a delegation can
 * revoke it.
 */
import { useState } from "preact/hooks";
import {
  Ago,
  Badge,
  Dialog,
  EmptyState,
  ErrorNotice,
  Field,
  FormButtons,
  hasScope,
  MarkedValue,
  Notice,
  OneLine,
  Page,
  PagedList,
  personAddress,
  readFormValues,
  renderPlain,
  request,
  ResultNotice,
  RowMenu,
  signedInUserId,
  Snippet,
  Table,
  Day,
  TimeLeft,
  useAddressedForm,
  usePaged,
  userSignInAddress,
  useSubmit,
} from "../../console/app/kit.ts";
import type { Delegation } from "./api-types.ts";
import { DelegateDialog } from "./delegate-dialog.tsx";

const TEXTS = {
  title: "Delegations",
  intro:
    "A delegation lets another approver vote in someone's place for a time. Both count as one person, and neither can approve what the other must not approve.",
  none: { current: "No delegation is active or scheduled.", ended: "No delegation has ended yet." },
  next: {
    current: "Before you are away, let another approver vote on your behalf: choose “Delegate…” above.",
    other:
      "An approver who will be away signs in as a user and delegates here. The command line lists and revokes delegations:",
    ended:
      "A delegation appears here when it is revoked, when its time is over, or when one of its users is deactivated.",
  },
  command: "List delegations, and revoke one",
  signIn: "Only a signed-in user can delegate, and only their own approvals.",
} as const;

const COMMANDS = `assent delegations --all
assent delegations --revoke ID --comment "back early"`;

type Shown = "current" | "ended";

export function Delegations({ query }: { query: URLSearchParams }) {
  const [shown, setShown] = useState<Shown>("current");
  const [isCreating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Delegation | null>(null);
  const [done, setDone] = useState("");
  useAddressedForm(query, () => setCreating(true));
  const list = usePaged((cursor, signal) => loadDelegations(shown, cursor, signal), [shown]);
  const finish = (text: string): void => {
    setCreating(false);
    setRevoking(null);
    setDone(text);
    list.reload();
  };
  const user = signedInUserId();
  const canDelegate = user !== null && hasScope("approvals:decide");
  const delegate = canDelegate ? (
    <button type="button" class="primary" onClick={() => setCreating(true)}>
      Delegate…
    </button>
  ) : undefined;
  return (
    <>
      <Page title={TEXTS.title} side={delegate}>
        <p class="quiet">{TEXTS.intro}</p>
        {user === null ? (
          <Notice>
            {TEXTS.signIn} <a href={userSignInAddress()}>Sign in as a user</a>
          </Notice>
        ) : null}
        <ResultNotice text={done} />
        <div class="tabs" role="group" aria-label="Which delegations">
          {(["current", "ended"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={shown === each} onClick={() => setShown(each)}>
              {each === "current" ? "Active and scheduled" : "Ended"}
            </button>
          ))}
        </div>
        <PagedList list={list} what="delegations" empty={<NoDelegations shown={shown} canDelegate={canDelegate} />}>
          {(rows) => <DelegationTable rows={rows} onRevoke={setRevoking} />}
        </PagedList>
      </Page>
      {isCreating && user !== null ? (
        <DelegateDialog user={user} onClose={() => setCreating(false)} onDone={finish} />
      ) : null}
      {revoking === null ? null : (
        <RevokeDialog delegation={revoking} onClose={() => setRevoking(null)} onDone={finish} />
      )}
    </>
  );
}

function NoDelegations({ shown, canDelegate }: { shown: Shown; canDelegate: boolean }) {
  return (
    <EmptyState text={TEXTS.none[shown]}>
      <p>{shown === "ended" ? TEXTS.next.ended : canDelegate ? TEXTS.next.current : TEXTS.next.other}</p>
      <Snippet label={TEXTS.command} text={COMMANDS} />
    </EmptyState>
  );
}

/**
 * Loads one page of delegations. The first page of current delegations also contains at most 200 scheduled delegations.
 * Further scheduled delegations are not displayed. Only large services have them, because each user can have created at
 * most 20 open delegations.
 */
async function loadDelegations(shown: Shown, cursor: string | undefined, signal: AbortSignal | undefined) {
  const page = async (status: Delegation["status"]) => {
    const query = { status, limit: 200, ...(cursor === undefined ? {} : { cursor }) };
    const { delegations, next_cursor } = await request("GET /v1/delegations", { query, signal });
    return { rows: delegations, next_cursor };
  };
  if (shown === "ended") return page("ended");
  const active = await page("active");
  if (cursor !== undefined) return active;
  const scheduled = await page("scheduled");
  return { rows: [...scheduled.rows, ...active.rows], next_cursor: active.next_cursor };
}

/** Renders delegations. The table has no buttons if `onRevoke` is absent. */
export function DelegationTable({
  rows,
  onRevoke,
}: {
  rows: readonly Delegation[];
  onRevoke?: (row: Delegation) => void;
}) {
  return (
    <Table
      label={TEXTS.title}
      head={["Who", "Comment", "Status", "Covers", "Time", ...(onRevoke === undefined ? [] : [""])]}
    >
      {rows.map((row) => (
        <tr key={row.id}>
          <td>
            <Party {...row.to} /> <span class="quiet">for</span> <Party {...row.from} />
          </td>
          <td class="part-line">
            <OneLine text={row.comment ?? ""} />
          </td>
          <td>
            <Badge value={row.status} />
            <Ended delegation={row} />
          </td>
          <td data-label="Covers">
            <Covers delegation={row} />
          </td>
          <td data-label="Time">
            <Period delegation={row} />
          </td>
          {onRevoke === undefined ? null : (
            <td>
              {row.status !== "ended" && mayRevoke(row) ? (
                <RowMenu
                  of={row.to.name}
                  commands={[
                    {
                      text: "Revoke…",
                      label: `Revoke the delegation from ${renderPlain(row.from.name)} to ${renderPlain(row.to.name)}, ${row.id.slice(-6)}`,
                      onChoose: () => onRevoke(row),
                    },
                  ]}
                />
              ) : null}
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

function mayRevoke({ from, to }: Delegation): boolean {
  const user = signedInUserId();
  return user === from.id || user === to.id || hasScope("users:manage");
}

function Party({ id, name }: Delegation["from"]) {
  return (
    <strong title={`user ${id}`}>
      <a href={personAddress(`user:${id}`) ?? ""}>
        <MarkedValue value={name} />
      </a>
      {id === signedInUserId() ? " (you)" : ""}
    </strong>
  );
}

function Covers({ delegation: { groups, agents, tools } }: { delegation: Delegation }) {
  const parts = [
    ["groups", groups],
    ["agents", agents],
    ["tools", tools],
  ] as const;
  const limits = parts.filter(([, names]) => names !== null);
  if (limits.length === 0) return <span class="quiet">everything</span>;
  return (
    <>
      {limits.map(([name, names]) => (
        <div key={name}>
          <span class="quiet">{name}</span> <MarkedValue value={(names ?? []).join(", ")} />
        </div>
      ))}
    </>
  );
}

const CAUSES = { revoked: "revoked", user_ended: "a user was deactivated" } as const;

function Period({ delegation: { status, starts_at, until } }: { delegation: Delegation }) {
  if (status === "active") return <TimeLeft at={until} />;
  return (
    <>
      <Day at={starts_at} /> <span class="quiet">until</span> <Day at={until} />
    </>
  );
}

function Ended({ delegation: { ended } }: { delegation: Delegation }) {
  if (ended === null) return null;
  return (
    <div class="quiet">
      {CAUSES[ended.cause]}, <Ago at={ended.at} />
      {ended.comment === null || ended.cause === "user_ended" ? null : (
        <>
          : <MarkedValue value={ended.comment} />
        </>
      )}
    </div>
  );
}

interface DialogProps {
  delegation: Delegation;
  onClose(): void;
  onDone(text: string): void;
}

function RevokeDialog({ delegation: { id, from, to }, onClose, onDone }: DialogProps) {
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { comment = "" } = readFormValues(form);
    await request("POST /v1/delegations/{id}/revoke", { path: [id], body: comment === "" ? {} : { comment } });
    onDone(`${to.name} no longer approves on behalf of ${from.name}.`);
  });
  return (
    <Dialog title="Revoke this delegation?" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <MarkedValue value={to.name} /> can no longer approve on behalf of <MarkedValue value={from.name} />, from now
          on and in every process. Votes that are already recorded are kept.
        </p>
        <Field name="comment" label="Comment" help="Recorded in the ledger; optional." error={error} maxLength={1000} />
        <ErrorNotice error={error} />
        <FormButtons look="danger" isDisabled={isBusy} onClose={onClose}>
          Revoke
        </FormButtons>
      </form>
    </Dialog>
  );
}
