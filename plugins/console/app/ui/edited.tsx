/** Renders what an approver changed in a request, and what the agent had proposed. */
import type { Action, LinkedAction } from "../core/api-types.ts";
import { Ago, Notice, MarkedValue } from "./elements.tsx";
import { PrincipalName } from "./person.tsx";

export function EditedParameters({
  action: { params, proposed },
}: {
  action: Pick<Action | LinkedAction, "params" | "proposed">;
}) {
  if (proposed === null) return null;
  const before = new Map(listLeaves(proposed.params, "params"));
  const changed = listLeaves(params, "params").filter(([path, value]) => before.get(path) !== value);
  return (
    <Notice kind="busy">
      <PrincipalName principal={proposed.edited_by} /> changed this request <Ago at={proposed.edited_at} />
      {proposed.reason === null ? null : (
        <>
          : “<MarkedValue value={proposed.reason} />”
        </>
      )}
      . The changed request is the one that runs.
      <ul>
        {changed.map(([path, value]) => (
          <li key={path}>
            <code>
              <MarkedValue value={path} />
            </code>
            : <MarkedValue value={value} /> <span class="quiet">(the agent proposed</span>{" "}
            <MarkedValue value={before.get(path) ?? ""} />
            <span class="quiet">)</span>
          </li>
        ))}
      </ul>
    </Notice>
  );
}

/** Returns the path and the JSON of every value in an object, including nested values. Lists count as single values. */
export function listLeaves(value: unknown, path: string): [path: string, json: string][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, member]) => listLeaves(member, `${path}.${name}`));
}
