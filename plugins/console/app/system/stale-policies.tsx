/** Warns that the newest policies of a source could not be loaded. */
import { serviceNow } from "../core/api.ts";
import { MarkedValue, Notice, Time } from "../ui/elements.tsx";
import { formatDuration } from "../ui/format.ts";
import type { ReadinessReport } from "./readiness.ts";
import { TEXTS } from "./strings.ts";

/** Renders nothing if the newest policies of all sources are loaded. */
export function StalePolicies({ policies: { stale_since: since, faults } }: Pick<ReadinessReport, "policies">) {
  if (since === null || since === undefined) return null;
  return (
    <Notice kind="busy">
      {TEXTS.stale} <Time at={since} /> ({formatDuration(serviceNow() - Date.parse(since))} ago). {TEXTS.staleHelp}
      <ul>
        {faults.map(({ file, line }) => (
          <li key={`${file} ${line}`}>
            <code>
              <MarkedValue value={file} />
            </code>
            {line === null ? null : `, line ${line}`}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
