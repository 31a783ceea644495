/** The configured groups and rotas: their members, and the actions that members can see and approve. */
import type { Groups } from "../contract/core-host.ts";
import { type GroupDefinition, type GroupLimits, groupLimits, isWithinLimits, memberKey } from "../domain/groups.ts";
import { listReferences } from "../domain/person-reference.ts";
import { userOfPrincipal } from "../domain/principals.ts";
import { shiftAt, type Rota } from "../domain/rota.ts";
import type { User, Users } from "../domain/users.ts";
import type { GroupVisibility } from "../domain/visibility.ts";

/** @param definitions the groups, keyed by name */
export function createGroupService(
  definitions: Readonly<Record<string, GroupDefinition>>,
  rotas: ReadonlyMap<string, Rota> = new Map(),
): Groups {
  const limits = new Map<string, GroupLimits>();
  const byMember = new Map<string, string[]>();
  for (const [name, definition] of Object.entries(definitions)) {
    const limited = groupLimits(definition);
    if (limited !== null) limits.set(name, limited);
    for (const member of new Set(definition.members.map(memberKey)))
      if (member !== null) byMember.set(member, [...(byMember.get(member) ?? []), name].sort());
  }
  const memberKeysOf = (principal: string, users: Users): readonly string[] => {
    const id = userOfPrincipal(principal);
    const user = id === null ? undefined : users.get(id);
    return id === null ? [principal] : user === undefined ? [] : listReferences(users, user);
  };
  return {
    definitions,
    rotas,
    onCall(principal, at, users) {
      const members = memberKeysOf(principal, users);
      const isOnCall = (rota: Rota): boolean => members.includes(memberKey(shiftAt(rota, at)?.member ?? "") ?? "");
      return [...rotas].flatMap(([name, rota]) => (isOnCall(rota) ? [name] : [])).sort();
    },
    of(principal, users) {
      const user = users.get(userOfPrincipal(principal) ?? "");
      const configured = memberKeysOf(principal, users).flatMap((member) => byMember.get(member) ?? []);
      return sortedUnique([...(user === undefined ? [] : ownGroups(user, rotas)), ...configured]);
    },
    covers(group, action) {
      const limited = limits.get(group);
      return limited === undefined || isWithinLimits(limited, action);
    },
    visibility(groups): GroupVisibility {
      const within = groups.flatMap((group) => limits.get(group) ?? []);
      return within.length === 0 ? { all: true } : { within };
    },
  };
}

/**
 * Returns the groups in the user's entry. Omits groups with the name of a rota, because only the rota determines who is
 * on call.
 */
const ownGroups = ({ groups }: User, rotas: ReadonlyMap<string, Rota>): string[] =>
  groups.filter((group) => !rotas.has(group));

const sortedUnique = (names: readonly string[]): string[] => [...new Set(names)].sort();
