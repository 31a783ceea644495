/** Users: their state, roles, groups, sign-in methods and sessions. Admins add, deactivate and reactivate them. */
import { useState } from "preact/hooks";
import {
  Age,
  type Api,
  Badge,
  CopyButton,
  currentMe,
  EmptyState,
  ErrorNotice,
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
  RowMenu,
  Table,
  Time,
  TimeLeft,
  usePaged,
} from "../../console/app/kit.ts";
import type { UserDetails } from "./api-types.ts";
import { DeactivateUserDialog, ReactivateUserDialog } from "./deactivate-user.tsx";
import { InviteSnippet } from "./invite-snippet.tsx";
import { AddUserDialog, EditUserDialog } from "./user-form.tsx";
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

type Open = { kind: "add" } | { kind: "edit" | "sessions" | "end" | "resume"; user: UserDetails };

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
  const [linkError, setLinkError] = useState<unknown>(null);
  const close = (): void => setOpen(null);
  const finish = (text: string): void => {
    close();
    setDone(text);
    list.reload();
  };
  const createLink = async (user: UserDetails): Promise<void> => {
    setLinkError(null);
    try {
      setInvited(await request("POST /v1/users/{id}/link", { path: [user.id] }));
      list.reload();
    } catch (error) {
      setLinkError(error);
    }
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
        <ErrorNotice error={linkError} />
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
          {(rows) => <UserTable users={rows} onOpen={setOpen} onLink={(user) => void createLink(user)} />}
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
      {open?.kind === "edit" ? <EditUserDialog user={open.user} onClose={close} onDone={finish} /> : null}
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
        Send it only to this person: whoever opens it first can sign in as them. It is displayed once, replaces an
        earlier link, and ends <Time at={link.expires_at} />.
      </p>
      <p>
        <Hash value={link.url} />
      </p>
      <div class="row">
        <CopyButton value={link.url} label="Copy the link" />
        <button type="button" class="small" onClick={onDone}>
          I have it
        </button>
      </div>
    </section>
  );
}

interface TableProps {
  onOpen(open: Open): void;
  onLink(user: UserDetails): void;
}

function UserTable({ users, onOpen, onLink }: TableProps & { users: readonly UserDetails[] }) {
  return (
    <Table label={TEXTS.title} head={["User", "Roles", "Groups", "Signs in with", "Last sign-in", ""]}>
      {users.map((user) => (
        <tr key={user.id}>
          <td>
            <a href={personAddress(user.principal) ?? ""}>
              <strong title={user.principal}>
                <MarkedValue value={user.name} />
              </strong>
            </a>{" "}
            {user.ended_at === null ? null : (
              <span class="badge-line">
                <Badge value="revoked" label="deactivated" /> <Age at={user.ended_at} />
              </span>
            )}
          </td>
          <td data-label="Roles">
            <Badges values={user.roles} none="no role" />
          </td>
          <td data-label="Groups">
            <Badges values={[...user.groups, ...user.configured_groups]} none="none" />
          </td>
          <td data-label="Signs in with">
            <SignInMethods user={user} />
          </td>
          <td data-label="Last sign-in">
            {user.last_sign_in_at === null ? <span class="quiet">never</span> : <Age at={user.last_sign_in_at} />}
          </td>
          <td>
            <Commands user={user} onOpen={onOpen} onLink={onLink} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Badges({ values, none }: { values: readonly string[]; none: string }) {
  if (values.length === 0) return <span class="quiet">{none}</span>;
  return (
    <span class="badges">
      {values.map((value) => (
        <Badge key={value} value="inactive" label={value} />
      ))}
    </span>
  );
}

function SignInMethods({ user: { passkeys, identities, managed_by, link_expires_at } }: { user: UserDetails }) {
  const providers =
    identities.length === 0 && managed_by !== null ? [managed_by] : identities.map(({ issuer }) => issuer);
  return (
    <span class="badge-line">
      {passkeys.length === 0 ? null : (
        <span title={passkeys.map(({ name }) => renderPlain(name)).join(", ")}>
          {formatCounted(passkeys.length, "passkey")}
        </span>
      )}
      {providers.map((provider) => (
        <MarkedValue key={provider} value={provider} />
      ))}
      {link_expires_at === null ? (
        passkeys.length + providers.length === 0 ? (
          <Badge value="failed" label="cannot sign in yet" />
        ) : null
      ) : (
        <>
          <Badge value="pending_approval" label="invited" /> <TimeLeft at={link_expires_at} short />
        </>
      )}
    </span>
  );
}

function Commands({ user, onOpen, onLink }: TableProps & { user: UserDetails }) {
  const name = renderPlain(user.name);
  const isAdmin = hasScope("users:manage");
  const isActive = user.ended_at === null;
  // A provider manages the names, roles and groups of its users, and how they sign in.
  const isOwn = isAdmin && isActive && user.managed_by === null;
  const command = (text: string, label: string, kind: "edit" | "sessions" | "end" | "resume") => ({
    text,
    label: `${label} ${name}`,
    isDanger: kind === "end",
    onChoose: () => onOpen({ kind, user }),
  });
  return (
    <RowMenu
      of={user.name}
      commands={[
        isOwn ? command("Change…", "Change", "edit") : null,
        isOwn && currentMe()?.principal !== user.principal
          ? { text: "New link", label: `New link for ${name}`, onChoose: () => onLink(user) }
          : null,
        isActive ? command("Sessions…", "Sessions of", "sessions") : null,
        isAdmin && isActive ? command("Deactivate…", "Deactivate", "end") : null,
        isAdmin && !isActive ? command("Reactivate…", "Reactivate", "resume") : null,
      ]}
    />
  );
}
