/** The dialogs that create a user with a one-time enrolment link, and change a user's name, roles and groups. */
import {
  type Api,
  Checklist,
  Dialog,
  ErrorNotice,
  fetchJson,
  Field,
  FormButtons,
  Loading,
  readFormValues,
  request,
  useLoad,
  useSubmit,
} from "../../console/app/kit.ts";
import type { UserDetails } from "./api-types.ts";

type Role = NonNullable<Api["POST /v1/users"]["body"]["roles"]>[number];
interface Body {
  name: string;
  roles: Role[];
  groups: string[];
}

const ROLES: Readonly<Record<Role, string>> = {
  viewer: "reads actions, policies, agents and events",
  approver: "votes on actions",
  break_glass: "votes, and approves in an emergency without other approvers",
  policy_author: "writes and activates policies",
  key_manager: "creates agents and their keys",
  auditor: "reads everything, and replays decisions",
  admin: "everything",
};

export function AddUserDialog({
  onClose,
  onDone,
}: {
  onClose(): void;
  onDone(answer: Api["POST /v1/users"]["response"]): void;
}) {
  return (
    <UserForm
      title="Add a user"
      button="Add the user"
      user={{ name: "", roles: [], groups: [] }}
      onClose={onClose}
      send={async (body) => onDone(await request("POST /v1/users", { body }))}
    />
  );
}

export function EditUserDialog({
  user,
  onClose,
  onDone,
}: {
  user: UserDetails;
  onClose(): void;
  onDone(text: string): void;
}) {
  return (
    <UserForm
      title="Change this user"
      button="Save"
      user={{ name: user.name, roles: user.roles as Role[], groups: user.groups }}
      onClose={onClose}
      send={async (body) => {
        await request("PATCH /v1/users/{id}", { path: [user.id], body });
        onDone(`${body.name} was changed.`);
      }}
    />
  );
}

interface FormProps {
  title: string;
  button: string;
  user: Body;
  onClose(): void;
  send(body: Body): Promise<void>;
}

function UserForm({ title, button, user, onClose, send }: FormProps) {
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { name = "", group = "" } = readFormValues(form);
    const data = new FormData(form);
    const groups = [...data.getAll("groups"), group].filter(
      (each): each is string => typeof each === "string" && each !== "",
    );
    await send({ name, roles: data.getAll("roles") as Role[], groups: [...new Set(groups)] });
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        <Field name="name" label="Name" error={error} required maxLength={100} defaultValue={user.name} />
        <Checklist legend="Roles" name="roles" options={ROLES} checked={user.roles} />
        <GroupChoice chosen={user.groups} error={error} />
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          {button}
        </FormButtons>
      </form>
    </Dialog>
  );
}

/** Renders the groups that exist as checkboxes, and a field for a new group. */
function GroupChoice({ chosen, error }: { chosen: readonly string[]; error: unknown }) {
  const { data } = useLoad((signal) => readGroupNames(signal), []);
  if (data === null) return <Loading what="groups" />;
  const names = [...new Set([...data, ...chosen])].sort();
  return (
    <>
      {names.length === 0 ? null : (
        <Checklist
          legend="Groups"
          name="groups"
          options={Object.fromEntries(names.map((name) => [name, ""]))}
          checked={chosen}
        />
      )}
      <Field
        name="group"
        label="New group"
        help="Optional. Rules can name it as approver."
        error={error}
        maxLength={64}
      />
    </>
  );
}

/** Returns the names of all groups; none if the service does not list groups. */
async function readGroupNames(signal: AbortSignal): Promise<string[]> {
  try {
    const { groups } = (await fetchJson("/v1/groups", { signal })) as { groups: readonly { name: string }[] };
    return groups.map(({ name }) => name);
  } catch {
    return [];
  }
}
