/** Renders what an approver changed in a request, and what the agent had proposed. */
import type { Action, LinkedAction } from "../core/api-types.ts";
import { Notice, Text, Time } from "./elements.tsx";
import { Who } from "./person.tsx";

export function Edited({
  action: { params, proposed },
}: {
  action: Pick<Action | LinkedAction, "params" | "proposed">;
}) {
  if (proposed === null) return null;
  const before = new Map(leavesOf(proposed.params, "params"));
  const changed = leavesOf(params, "params").filter(([path, value]) => before.get(path) !== value);
  return (
    <Notice kind="busy">
      <Who principal={proposed.edited_by} /> changed this request <Time at={proposed.edited_at} />
      {proposed.reason === null ? null : (
        <>
          : “<Text value={proposed.reason} />”
        </>
      )}
      . The changed request is the one that runs.
      <ul>
        {changed.map(([path, value]) => (
          <li key={path}>
            <code>
              <Text value={path} />
            </code>
            : <Text value={value} /> <span class="quiet">(the agent proposed</span>{" "}
            <Text value={before.get(path) ?? ""} />
            <span class="quiet">)</span>
          </li>
        ))}
      </ul>
    </Notice>
  );
}

/** Returns the path and the JSON of every value that is not an object. */
export function leavesOf(value: unknown, path: string): [path: string, json: string][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, member]) => leavesOf(member, `${path}.${name}`));
}
