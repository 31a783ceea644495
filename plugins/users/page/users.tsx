/** Users: their state, roles, groups, sign-in methods and sessions. Admins add, deactivate and reactivate them. */
import { useState } from "preact/hooks";
import {
  type Api,
  Badge,
  CopyButton,
  EmptyState,
  formatCounted,
  Hash,
  hasScope,
  MarkedValue,
  Page,
  PagedList,
  personAddress,
  renderPlain,
  request,
  ResultNotice,
  Table,
  Time,
  usePaged,
} from "../../console/app/kit.ts";
import type { UserDetails } from "./api-types.ts";
import { AddUserDialog } from "./add-user.tsx";
import { DeactivateUserDialog, ReactivateUserDialog } from "./deactivate-user.tsx";
import { InviteSnippet } from "./invite-snippet.tsx";
import { UserSessionsDialog } from "./user-sessions.tsx";

type InviteResult = Api["POST /v1/users"]["response"];

const TEXTS = {
  title: "Users",
  intro: "People who sign in. Deactivating a user immediately ends their sessions, keys, grants and delegations.",
  none: { live: "There are no users yet.", ended: "No user has been deactivated." },
  next: {
    live: "Add a user, or let people sign in at your identity provider. With an admin key and curl:",
    ended: "Users whom you deactivate appear here. You can reactivate them.",
  },
} as const;

type Status = "live" | "ended";

type Open = { kind: "add" } | { kind: "sessions" | "end" | "resume"; user: UserDetails };

export function Users() {
  const [status, setStatus] = useState<Status>("live");
  const [open, setOpen] = useState<Open | null>(null);
  const [invited, setInvited] = useState<InviteResult | null>(null);
  const [done, setDone] = useState("");
  const list = usePaged(
    async (cursor, signal) => {
      const query = { status, limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const { users: rows, next_cursor } = await request("GET /v1/users", { query, signal });
      return { rows, next_cursor };
    },
    [status],
  );
  const close = (): void => setOpen(null);
  const finish = (text: string): void => {
    close();
    setDone(text);
    list.reload();
  };
  const add = hasScope("users:manage") ? (
    <button type="button" class="primary" onClick={() => setOpen({ kind: "add" })}>
      Add a user…
    </button>
  ) : undefined;
  return (
    <>
      <Page title={TEXTS.title} side={add}>
        <p class="quiet">{TEXTS.intro}</p>
        {invited === null ? null : <EnrolmentLink invited={invited} onDone={() => setInvited(null)} />}
        <ResultNotice text={done} />
        <div class="tabs" role="group" aria-label="Which users">
          {(["live", "ended"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={status === each} onClick={() => setStatus(each)}>
              {each === "live" ? "Active" : "Deactivated"}
            </button>
          ))}
        </div>
        <PagedList
          list={list}
          what="users"
          empty={
            <EmptyState text={TEXTS.none[status]}>
              <p>{TEXTS.next[status]}</p>
              {status === "live" ? <InviteSnippet role="approver" /> : null}
            </EmptyState>
          }
        >
          {(rows) => <UserTable users={rows} onOpen={setOpen} />}
        </PagedList>
      </Page>
      {open?.kind === "add" ? (
        <AddUserDialog
          onClose={close}
          onDone={(answer) => {
            setInvited(answer);
            finish(`${answer.user.name} was added.`);
          }}
        />
      ) : null}
      {open?.kind === "sessions" ? <UserSessionsDialog user={open.user} onClose={close} /> : null}
      {open?.kind === "end" ? <DeactivateUserDialog user={open.user} onClose={close} onDone={finish} /> : null}
      {open?.kind === "resume" ? <ReactivateUserDialog user={open.user} onClose={close} onDone={finish} /> : null}
    </>
  );
}

function EnrolmentLink({ invited: { user, link }, onDone }: { invited: InviteResult; onDone(): void }) {
  return (
    <section class="card made" aria-labelledby="made">
      <h2 id="made">
        Link for <MarkedValue value={user.name} />
      </h2>
      <p>
        Send it only to this person: anyone who opens it first signs in as them. It is displayed once and ends{" "}
        <Time at={link.expires_at} />.
      </p>
      <p>
        <Hash value={link.url} />
      </p>
      <div class="row">
        <CopyButton value={link.url} label="Copy the link" />
        <button type="button" onClick={onDone}>
          I have it
        </button>
      </div>
    </section>
  );
}

function UserTable({ users, onOpen }: { users: readonly UserDetails[]; onOpen(open: Open): void }) {
  return (
    <Table label={TEXTS.title} head={["User", "Roles and groups", "Signs in with", "Last sign-in", ""]}>
      {users.map((user) => (
        <tr key={user.id}>
          <td>
            <a href={personAddress(user.principal) ?? ""}>
              <strong title={user.principal}>
                <MarkedValue value={user.name} />
              </strong>
            </a>{" "}
            <code class="quiet">…{user.id.slice(-6)}</code>
            {user.ended_at === null ? null : (
              <div>
                <Badge value="revoked" label="deactivated" /> <Time at={user.ended_at} />
              </div>
            )}
          </td>
          <td data-label="Roles and groups">
            <div>{user.roles.length === 0 ? <span class="quiet">no role</span> : user.roles.join(", ")}</div>
            {user.groups.length === 0 ? null : (
              <div class="quiet">
                <MarkedValue value={user.groups.join(", ")} />
              </div>
            )}
          </td>
          <td data-label="Signs in with">
            <SignInMethods user={user} />
          </td>
          <td data-label="Last sign-in">
            {user.last_sign_in_at === null ? <span class="quiet">never</span> : <Time at={user.last_sign_in_at} />}
          </td>
          <td>
            <Buttons user={user} onOpen={onOpen} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function SignInMethods({ user: { passkeys, identities, managed_by, link_expires_at } }: { user: UserDetails }) {
  return (
    <>
      {passkeys.length === 0 ? null : (
        <div>
          {formatCounted(passkeys.length, "passkey")}{" "}
          <span class="quiet">
            (<MarkedValue value={passkeys.map(({ name }) => name).join(", ")} />)
          </span>
        </div>
      )}
      {identities.map(({ issuer, subject }) => (
        <div key={`${issuer} ${subject}`}>
          <MarkedValue value={issuer} />
        </div>
      ))}
      {identities.length === 0 && managed_by !== null ? <MarkedValue value={managed_by} /> : null}
      {passkeys.length + identities.length === 0 ? <span class="quiet">cannot sign in yet</span> : null}
      {link_expires_at === null ? null : (
        <div class="quiet">
          enrolment link valid until <Time at={link_expires_at} />
        </div>
      )}
    </>
  );
}

function Buttons({ user, onOpen }: { user: UserDetails; onOpen(open: Open): void }) {
  const name = renderPlain(user.name);
  if (user.ended_at !== null)
    return hasScope("users:manage") ? (
      <button
        type="button"
        class="small"
        aria-label={`Reactivate ${name}`}
        onClick={() => onOpen({ kind: "resume", user })}
      >
        Reactivate…
      </button>
    ) : null;
  return (
    <div class="row">
      <button
        type="button"
        class="small"
        aria-label={`Sessions of ${name}`}
        onClick={() => onOpen({ kind: "sessions", user })}
      >
        Sessions…
      </button>
      {hasScope("users:manage") ? (
        <button
          type="button"
          class="small danger"
          aria-label={`Deactivate ${name}`}
          onClick={() => onOpen({ kind: "end", user })}
        >
          Deactivate…
        </button>
      ) : null}
    </div>
  );
}
