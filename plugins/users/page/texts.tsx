/** Texts of users, their sessions and delegations on pages of other features. */
import {
  type EntryOf,
  encodeSegment,
  MarkedValue,
  type PartTexts,
  PersonLink,
  PrincipalName,
} from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    user: {
      summarize(entry) {
        const { user, change } = entry as unknown as EntryOf<"user">;
        return <MarkedValue value={`user ${user.name}: ${change.replaceAll("_", " ")}`} />;
      },
      describe(entry) {
        const { user } = entry as unknown as EntryOf<"user">;
        return (
          <a href={`#/people/${encodeSegment(user.id)}`}>
            <MarkedValue value={user.name} />
          </a>
        );
      },
    },
    delegation: {
      summarize(entry) {
        const { delegation, change } = entry as unknown as EntryOf<"delegation">;
        return (
          <>
            delegation {change}: from <PrincipalName principal={`user:${delegation.from}`} /> to{" "}
            <PrincipalName principal={`user:${delegation.to}`} />
          </>
        );
      },
      describe(entry) {
        const { delegation } = entry as unknown as EntryOf<"delegation">;
        return (
          <>
            from <PersonLink principal={`user:${delegation.from}`} /> to{" "}
            <PersonLink principal={`user:${delegation.to}`} />
          </>
        );
      },
    },
    "users:session": {
      summarize(entry) {
        const { user_id, change } = (entry["data"] ?? {}) as { user_id?: string; change?: string };
        return user_id === undefined ? null : (
          <>
            session of <PrincipalName principal={`user:${user_id}`} /> {change?.replaceAll("_", " ")}
          </>
        );
      },
      describe(entry) {
        const { user_id } = (entry["data"] ?? {}) as { user_id?: string };
        return user_id === undefined ? null : (
          <>
            of <PersonLink principal={`user:${user_id}`} />
          </>
        );
      },
    },
  },
  scopes: {
    "users:read": "see users and their sessions",
    "users:manage": "create, change and deactivate users",
    "users:provision": "create, change and deactivate users through SCIM",
  },
};
