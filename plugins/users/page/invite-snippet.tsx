/** The command that adds a user. Pages display it if they have nothing else to display before someone has a role. */
import { Snippet } from "../../console/app/kit.ts";

/** @param props.role the role that the user gets */
export function InviteSnippet({ role }: { role: "approver" | "break_glass" }) {
  const user = JSON.stringify({ name: "Ada Lovelace", roles: [role] });
  return (
    <Snippet
      label={`Add a user with the role ${role}`}
      text={`curl -s ${location.origin}/v1/users -H "Authorization: Bearer $ADMIN_KEY" -H "Content-Type: application/json" \\
  -d '${user}'`}
    />
  );
}
