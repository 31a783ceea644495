/** The differences between two versions of a policy, rule by rule. */
import { useState } from "preact/hooks";
import { ErrorNotice, MarkedValue, request, useLoad } from "../../console/app/kit.ts";
import { DETAIL_TEXTS } from "./strings.ts";

/** @param props.versions version numbers, newest first; at least two */
export function VersionDiff({
  id,
  versions,
  active,
}: {
  id: string;
  versions: readonly number[];
  active: number | null;
}) {
  const newest = versions[0] ?? 1;
  const [from, setFrom] = useState(active !== null && active !== newest ? active : (versions[1] ?? newest));
  const [to, setTo] = useState(newest);
  const { data, error } = useLoad(
    async (signal) =>
      from === to
        ? []
        : (await request("GET /v1/policies/{id}/diff", { path: [id], query: { from, to }, signal })).changes,
    [id, from, to],
  );
  return (
    <section class="card" aria-labelledby="diff">
      <h2 id="diff">{DETAIL_TEXTS.changed}</h2>
      <div class="filters">
        <VersionChoice id="diff-from" label={DETAIL_TEXTS.from} value={from} versions={versions} onChoose={setFrom} />
        <VersionChoice id="diff-to" label={DETAIL_TEXTS.to} value={to} versions={versions} onChoose={setTo} />
      </div>
      <ErrorNotice error={error} />
      {data === null ? null : data.length === 0 ? (
        <p class="quiet">{DETAIL_TEXTS.unchanged}</p>
      ) : (
        <ul>
          {data.map(({ summary }) => (
            <li key={summary}>
              <MarkedValue value={summary} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

interface ChoiceProps {
  id: string;
  label: string;
  value: number;
  versions: readonly number[];
  onChoose: (version: number) => void;
}

function VersionChoice({ id, label, value, versions, onChoose }: ChoiceProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
        {versions.map((version) => (
          <option key={version} value={version}>
            version {version}
          </option>
        ))}
      </select>
    </div>
  );
}
