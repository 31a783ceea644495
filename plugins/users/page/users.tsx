/** Users: their state, roles, groups, sign-in methods and sessions. Admins add, deactivate and reactivate them. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import {
  Age,
  Badge,
  EmptyState,
  formatCounted,
  formatManager,
  hasScope,
  MarkedValue,
  Page,
  PagedList,
  personAddress,
  renderPlain,
  request,
  Table,
  TimeLeft,
  useAddressedForm,
  usePaged,
} from "../../console/app/kit.ts";
import type { User, UserDetails } from "./api-types.ts";
import { InviteSnippet } from "./invite-snippet.tsx";
import { useUserCommands } from "./user-commands.tsx";

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

export function Users({ query }: { query: URLSearchParams }) {
  const [status, setStatus] = useState<Status>("live");
  const list = usePaged(
    async (cursor, signal) => {
      const query = { status, limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const { users: rows, next_cursor } = await request("GET /v1/users", { query, signal });
      return { rows, next_cursor };
    },
    [status],
  );
  const commands = useUserCommands(list.reload);
  useAddressedForm(query, commands.add);
  const add = hasScope("users:manage") ? (
    <button type="button" class="primary" onClick={commands.add}>
      Add a user…
    </button>
  ) : undefined;
  return (
    <>
      <Page title={TEXTS.title} side={add}>
        <p class="quiet">{TEXTS.intro}</p>
        {commands.results}
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
          {(rows) => <UserTable users={rows} menu={commands.menu} />}
        </PagedList>
      </Page>
      {commands.dialog}
    </>
  );
}

interface TableProps {
  users: readonly UserDetails[];
  menu(user: UserDetails): ComponentChildren;
}

function UserTable({ users, menu }: TableProps) {
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
          <td>{menu(user)}</td>
        </tr>
      ))}
    </Table>
  );
}

export function Badges({ values, none }: { values: readonly string[]; none: string }) {
  if (values.length === 0) return <span class="quiet">{none}</span>;
  return (
    <span class="badges">
      {values.map((value) => (
        <Badge key={value} value="inactive" label={value} />
      ))}
    </span>
  );
}

/** Renders the passkeys, the provider and the invitation with which the user signs in. */
export function SignInMethods({ user: { passkeys, identities, managed_by, link_expires_at } }: { user: User }) {
  const providers = managed_by === null ? identities.map(({ issuer }) => issuer) : [formatManager(managed_by)];
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
