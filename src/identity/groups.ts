/** The configured groups and rotas: their members, and the actions that members can see and approve. */
import type { Groups } from "../contract/core-host.ts";
import {
  type GroupDefinition,
  type GroupLimits,
  groupLimits,
  principalOfMember,
  isWithinLimits,
} from "../domain/groups.ts";
import { shiftAt, type Rota } from "../domain/rota.ts";
import type { GroupVisibility } from "../domain/visibility.ts";

/** @param definitions the groups, keyed by name */
export function createGroupService(
  definitions: Readonly<Record<string, GroupDefinition>>,
  rotas: ReadonlyMap<string, Rota> = new Map(),
): Groups {
  const limits = new Map<string, GroupLimits>();
  const byPrincipal = new Map<string, string[]>();
  for (const [name, definition] of Object.entries(definitions)) {
    const limited = groupLimits(definition);
    if (limited !== null) limits.set(name, limited);
    for (const principal of new Set(definition.members.map(principalOfMember)))
      byPrincipal.set(principal, [...(byPrincipal.get(principal) ?? []), name].sort());
  }
  return {
    rotas,
    onCall: (principal, at) =>
      [...rotas].flatMap(([name, rota]) => (shiftAt(rota, at)?.member === principal ? [name] : [])).sort(),
    of: (principal) => byPrincipal.get(principal) ?? [],
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
