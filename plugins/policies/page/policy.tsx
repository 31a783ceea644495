/** One policy: its versions, their differences, and the version that decides. */
import { useState } from "preact/hooks";
import {
  Age,
  Badge,
  encodeSegment,
  ErrorNotice,
  FactList,
  findRuleLines,
  Hash,
  hasPanels,
  hasScope,
  KeyName,
  Loading,
  MarkedText,
  MarkedValue,
  Notice,
  Page,
  Panels,
  type Policy,
  ResultNotice,
  Table,
  useLoad,
} from "../../console/app/kit.ts";
import { ManagedPolicyNotice } from "./managed-notice.tsx";
import { ShadowReport } from "./shadow-report.tsx";
import { PolicyChangeDialog, type ProposedChange } from "./policy-change.tsx";
import { RuleSentences } from "./rule-sentences.tsx";
import { VersionDiff } from "./version-diff.tsx";
import { EditPolicy } from "./policy-editor.tsx";
import { DETAIL_TEXTS, describeActiveVersion, LIST_TEXTS } from "./strings.ts";
import {
  findActiveShadow,
  isShadow,
  type LoadedPolicy,
  loadPolicy,
  renderVersionYaml,
  type PolicyVersion,
} from "./versions.ts";

/**
 * Renders the page of a policy, or its editor. `?edit=true` opens the editor, so that a reload returns to the editor
 * and its draft. `rule` and `version` in the query select the lines to show.
 * @param props.id id or name
 */
export function PolicyDetail({ id, query }: { id: string; query: URLSearchParams }) {
  const isEdited = query.get("edit") === "true";
  const { data, error, reload } = useLoad((signal) => loadPolicy(id, signal), [id, isEdited]);
  if (data === null)
    return (
      <Page title={id} back={BACK}>
        {error === null ? <Loading what="the policy" /> : <ErrorNotice error={error} onRetry={reload} />}
      </Page>
    );
  if (isEdited && data.policy.managed_by === null)
    return <EditPolicy address={`#/policies/${encodeSegment(id)}`} loaded={data} />;
  return <Detail id={id} query={query} loaded={data} error={error} reload={reload} />;
}

const BACK = { href: "#/policies", text: LIST_TEXTS.title };

interface DetailProps {
  id: string;
  query: URLSearchParams;
  loaded: LoadedPolicy;
  error: unknown;
  reload(): void;
}

function Detail({ id, query, loaded, error, reload }: DetailProps) {
  const { policy, etag, versions, hasMore } = loaded;
  const [change, setChange] = useState<ProposedChange | null>(null);
  const [result, setResult] = useState("");
  const [chosen, setChosen] = useState<number | null>(query.has("version") ? Number(query.get("version")) : null);
  const shown = versions.find(({ version }) => version === (chosen ?? policy.active_version)) ?? versions[0];
  const isManaged = policy.managed_by !== null;
  return (
    <>
      <Page
        title={policy.name}
        back={BACK}
        side={
          isManaged ? null : (
            <Buttons loaded={loaded} address={`#/policies/${encodeSegment(id)}`} onChange={setChange} />
          )
        }
      >
        <ErrorNotice error={error} onRetry={reload} />
        <ResultNotice text={result} />
        {isManaged ? (
          <Notice>
            Managed by{" "}
            <strong>
              <MarkedValue value={policy.managed_by} />
            </strong>{" "}
            {DETAIL_TEXTS.managed}
          </Notice>
        ) : null}
        <FactList
          rows={[
            ["Status", <Badge value={policy.status} />],
            [DETAIL_TEXTS.activeVersion, describeActiveVersion(policy)],
            ["Managed by", isManaged ? null : <ManagedPolicyNotice policy={policy} />],
            ["Description", policy.description],
          ]}
        />
        <section class="card" aria-labelledby="versions">
          <h2 id="versions">{DETAIL_TEXTS.versions}</h2>
          <Table label={DETAIL_TEXTS.versionsLabel} head={DETAIL_TEXTS.versionsHead} numbers={["Rules"]}>
            {versions.map((version) => (
              <VersionRow
                key={version.version}
                version={version}
                policy={policy}
                isShown={version === shown}
                onShow={() => setChosen(version.version)}
                onActivate={() => setChange({ kind: "activate", version })}
              />
            ))}
          </Table>
          {hasMore ? <p class="quiet">{DETAIL_TEXTS.onlyNewest}</p> : null}
        </section>
        {versions.length < 2 ? null : (
          <VersionDiff
            id={policy.id}
            versions={versions.map(({ version }) => version)}
            active={policy.active_version}
          />
        )}
        {shown === undefined ? null : <ShownVersion version={shown} rule={query.get("rule")} />}
        {versions.some(isShadow) ? <ShadowReport id={policy.id} /> : null}
      </Page>
      {change === null ? null : (
        <PolicyChangeDialog
          change={change}
          policy={policy}
          etag={etag}
          onClose={() => setChange(null)}
          onDone={(words) => {
            setChange(null);
            setResult(words);
            if (change.kind === "delete") location.hash = "#/policies";
            else reload();
          }}
        />
      )}
    </>
  );
}

function Buttons({
  loaded,
  address,
  onChange,
}: {
  loaded: LoadedPolicy;
  address: string;
  onChange: (change: ProposedChange) => void;
}) {
  const { policy } = loaded;
  const mayEnforce = hasScope("policies:write") && hasScope("policies:activate");
  const tried = mayEnforce ? findActiveShadow(loaded) : undefined;
  return (
    <div class="row">
      <button type="button" class="primary" onClick={() => (location.hash = `${address}?edit=true`)}>
        {DETAIL_TEXTS.edit}
      </button>
      {tried === undefined ? null : (
        <button type="button" onClick={() => onChange({ kind: "enforce", version: tried })}>
          {DETAIL_TEXTS.enforce}
        </button>
      )}
      {policy.active_version === null ? null : (
        <button type="button" class="danger" onClick={() => onChange({ kind: "deactivate" })}>
          {DETAIL_TEXTS.deactivate}
        </button>
      )}
      <button type="button" class="danger" onClick={() => onChange({ kind: "delete" })}>
        {DETAIL_TEXTS.delete}
      </button>
    </div>
  );
}

interface RowProps {
  version: PolicyVersion;
  policy: Policy;
  isShown: boolean;
  onShow(): void;
  onActivate(): void;
}

function VersionRow({ version, policy, isShown, onShow, onActivate }: RowProps) {
  const { version: number, created_at, created_by, definition } = version;
  const active = policy.active_version;
  return (
    <tr>
      <td data-label="Version">
        {number} {number === active ? <Badge value="active" /> : null}{" "}
        {isShadow(version) ? <Badge value="shadow" /> : null}
      </td>
      <td data-label="Age">
        <Age at={created_at} />
      </td>
      <td data-label="By">
        {created_by === null ? (
          <span class="quiet">{policy.managed_by ?? "the service"}</span>
        ) : (
          <KeyName id={created_by} />
        )}
      </td>
      <td data-label="Rules" class="number">
        {(definition["rules"] as readonly unknown[]).length}
      </td>
      <td>
        <div class="row">
          <button
            type="button"
            class="small"
            aria-pressed={isShown}
            aria-label={DETAIL_TEXTS.showVersion(number)}
            onClick={onShow}
          >
            {DETAIL_TEXTS.show}
          </button>
          {policy.managed_by !== null || number === active ? null : (
            <button type="button" class="small" aria-label={DETAIL_TEXTS.activateVersion(number)} onClick={onActivate}>
              {active !== null && number < active ? DETAIL_TEXTS.rollBack : DETAIL_TEXTS.activate}
            </button>
          )}
        </div>
      </td>
    </tr>
  );
}

/** @param props.rule name of the rule whose lines are marked */
function ShownVersion({ version, rule }: { version: PolicyVersion; rule: string | null }) {
  const { version: number, digest, definition } = version;
  const text = renderVersionYaml(version);
  return (
    <>
      <section class="card" aria-labelledby="definition">
        <h2 id="definition">{DETAIL_TEXTS.version(number)}</h2>
        <p class="quiet">
          Digest <Hash value={digest} />
        </p>
        <RuleSentences definition={definition} />
        <details open={rule !== null}>
          <summary>{DETAIL_TEXTS.asYaml(number)}</summary>
          <MarkedText
            label={DETAIL_TEXTS.asYaml(number)}
            text={text}
            marked={rule === null ? null : findRuleLines(text, rule)}
          />
        </details>
      </section>
      {hasPanels("policy-candidate") ? (
        <section class="card" aria-labelledby="backtest">
          <h2 id="backtest">{DETAIL_TEXTS.backtest(number)}</h2>
          <p class="quiet">{DETAIL_TEXTS.backtestHelp}</p>
          {isShadow(version) ? <Notice kind="busy">{DETAIL_TEXTS.backtestShadow}</Notice> : null}
          <Panels key={number} place="policy-candidate" name="version" candidate={{ policy: definition }} />
        </section>
      ) : null}
    </>
  );
}
