/** The dialog that creates a user with a one-time enrolment link. */
import {
  type Api,
  Checklist,
  Dialog,
  ErrorNotice,
  Field,
  FormButtons,
  readFormValues,
  request,
  useSubmit,
} from "../../console/app/kit.ts";

type Role = NonNullable<Api["POST /v1/users"]["body"]["roles"]>[number];

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
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { name = "", groups = "" } = readFormValues(form);
    const roles = new FormData(form).getAll("roles") as Role[];
    const named = groups
      .split(",")
      .map((group) => group.trim())
      .filter((group) => group !== "");
    onDone(await request("POST /v1/users", { body: { name, roles, groups: [...new Set(named)] } }));
  });
  return (
    <Dialog title="Add a user" onClose={onClose}>
      <form onSubmit={submit}>
        <Field name="name" label="Name" error={error} required maxLength={100} />
        <Checklist legend="Roles" name="roles" options={ROLES} />
        <Field name="groups" label="Groups" help="Separated by commas; optional." error={error} />
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          Add the user
        </FormButtons>
      </form>
    </Dialog>
  );
}
