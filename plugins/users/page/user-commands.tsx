/** The commands for one user, with their dialogs and what they return, such as an enrolment link. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import {
  type Api,
  CopyButton,
  currentMe,
  ErrorNotice,
  Hash,
  hasScope,
  MarkedValue,
  renderPlain,
  request,
  ResultNotice,
  RowMenu,
  TimeUntil,
} from "../../console/app/kit.ts";
import type { UserDetails } from "./api-types.ts";
import { DeactivateUserDialog, ReactivateUserDialog } from "./deactivate-user.tsx";
import { AddUserDialog, EditUserDialog } from "./user-form.tsx";
import { UserSessionsDialog } from "./user-sessions.tsx";

type InviteResult = Api["POST /v1/users"]["response"];
type Open = { kind: "add" } | { kind: "edit" | "sessions" | "end" | "resume"; user: UserDetails };

interface UserCommands {
  add(): void;
  /** Renders the menu of one user. */
  menu(user: UserDetails): ComponentChildren;
  /** The enrolment link, and the result of the last command. */
  results: ComponentChildren;
  /** The open dialog. */
  dialog: ComponentChildren;
}

/** @param onChanged called after a command has changed a user */
export function useUserCommands(onChanged: () => void): UserCommands {
  const [open, setOpen] = useState<Open | null>(null);
  const [invited, setInvited] = useState<InviteResult | null>(null);
  const [done, setDone] = useState("");
  const [linkError, setLinkError] = useState<unknown>(null);
  const close = (): void => setOpen(null);
  const finish = (text: string): void => {
    close();
    setDone(text);
    onChanged();
  };
  const createLink = async (user: UserDetails): Promise<void> => {
    setLinkError(null);
    try {
      setInvited(await request("POST /v1/users/{id}/link", { path: [user.id] }));
      onChanged();
    } catch (error) {
      setLinkError(error);
    }
  };
  return {
    add: () => setOpen({ kind: "add" }),
    menu: (user) => <Commands user={user} onOpen={setOpen} onLink={() => void createLink(user)} />,
    results: (
      <>
        {invited === null ? null : <EnrolmentLink invited={invited} onDone={() => setInvited(null)} />}
        <ResultNotice text={done} />
        <ErrorNotice error={linkError} />
      </>
    ),
    dialog: (
      <>
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
    ),
  };
}

function EnrolmentLink({ invited: { user, link }, onDone }: { invited: InviteResult; onDone(): void }) {
  return (
    <section class="card made" aria-labelledby="made">
      <h2 id="made">
        Link for <MarkedValue value={user.name} />
      </h2>
      <p>
        Send it only to this person: whoever opens it first can sign in as them. It is displayed once, replaces an
        earlier link, and ends <TimeUntil at={link.expires_at} />.
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

interface CommandsProps {
  user: UserDetails;
  onOpen(open: Open): void;
  onLink(): void;
}

function Commands({ user, onOpen, onLink }: CommandsProps) {
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
          ? { text: "New link", label: `New link for ${name}`, onChoose: onLink }
          : null,
        isActive ? command("Sessions…", "Sessions of", "sessions") : null,
        isAdmin && isActive ? command("Deactivate…", "Deactivate", "end") : null,
        isAdmin && !isActive ? command("Reactivate…", "Reactivate", "resume") : null,
      ]}
    />
  );
}
