/** The system page: whether the service can decide, its versions, and what changed. */
import { fetchJson, request } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { listEntryTypes } from "../core/parts.ts";
import { Badge, FactList, Hash, Loading, Notice, Page, ErrorNotice, Table, MarkedValue, Ago } from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";
import { LedgerTimeline } from "../ui/ledger-timeline.tsx";
import { Panels } from "../ui/panels.tsx";
import { Card } from "../ui/section.tsx";
import {
  type ReadinessCheck,
  listChecks,
  type OfferedPolicies,
  POLL_MS,
  type ReadinessReport,
  useReadiness,
} from "./readiness.ts";
import { StalePolicies } from "./stale-policies.tsx";
import { TEXTS, TIMELINE_TYPES } from "./strings.ts";

export function System() {
  const { ready, error, at } = useReadiness();
  return (
    <Page title={TEXTS.title} side={<span class="quiet">{TEXTS.every(POLL_MS / 1000)}</span>}>
      <ErrorNotice error={error} />
      {ready === null ? error === null ? <Loading what="the state of the service" /> : null : <State ready={ready} />}
      {ready === null ? null : <Sources offers={ready.policies.offers} />}
      <Panels place="system" />
      <Versions policySet={ready?.policies.policy_set ?? null} at={at} />
      <Card id="timeline" title={TEXTS.timeline}>
        <p class="quiet">{TEXTS.timelineHelp}</p>
        <LedgerTimeline
          label={TEXTS.timeline}
          filters={{ type: [...TIMELINE_TYPES, ...listEntryTypes("system")].join(",") }}
        />
      </Card>
    </Page>
  );
}

function State({ ready }: { ready: ReadinessReport }) {
  return (
    <>
      <Notice kind={ready.ready ? "good" : "bad"}>
        <strong>{ready.ready ? TEXTS.ready : TEXTS.notReady}</strong>
      </Notice>
      <StalePolicies policies={ready.policies} />
      <Table label={TEXTS.checks} head={["Part", "State", "Message", "Numbers"]}>
        {listChecks(ready).map(([name, check]) => (
          <tr key={name}>
            <td>
              <strong>{name}</strong>
            </td>
            <td>
              <Badge value={check.ok ? "active" : "failed"} label={check.ok ? "ok" : "not ok"} />
            </td>
            <td>{["ok", "active"].includes(check.detail) ? null : <MarkedValue value={check.detail} />}</td>
            <td>{formatNumbers(check)}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** Renders the policy sources, each with its newest revision and its applied revision. */
function Sources({ offers }: { offers: readonly OfferedPolicies[] }) {
  if (offers.length === 0) return null;
  return (
    <Card id="sources" title={TEXTS.sources}>
      <Table label={TEXTS.sourceRevisions} head={TEXTS.sourceHead}>
        {offers.map(({ source, commit, taken, applied_commit, baseline, unread_since }) => (
          <tr key={source}>
            <td>
              <strong>
                <MarkedValue value={source} />
              </strong>{" "}
              {baseline ? <Badge value={TEXTS.baseline} /> : null}
            </td>
            <td>
              {taken ? (
                <Badge value="active" label={TEXTS.applied} />
              ) : commit !== null || unread_since === null ? (
                <Badge value="failed" label={TEXTS.rejected} />
              ) : null}{" "}
              {unread_since === null ? null : <Badge value="failed" label={TEXTS.unread} />}
            </td>
            <td data-label="Newest">
              <Revision commit={commit} />
            </td>
            <td data-label="Applied">
              <Revision commit={applied_commit} />
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function Revision({ commit }: { commit: string | null }) {
  return commit === null ? <span class="quiet">{TEXTS.noCommit}</span> : <Hash value={commit} />;
}

/** Returns all numbers of a check as text: "4 applied, 4 known". */
function formatNumbers(check: ReadinessCheck): string {
  return Object.entries(check)
    .flatMap(([name, value]) => (typeof value === "number" ? [`${value} ${value === 1 ? singular(name) : name}`] : []))
    .join(", ");
}

/** "processes" becomes "process", and "entries" becomes "entry". */
const singular = (name: string): string =>
  name
    .replace(/ies$/, "y")
    .replace(/(ss)es$/, "$1")
    .replace(/([^s])s$/, "$1");

function Versions({ policySet, at }: { policySet: string | null; at: string | null }) {
  const version = useLoad(readVersion, []);
  // A credential that cannot read policies sees the other cards.
  const sources = useLoad(async (signal) => (hasScope("policies:read") ? countSources(signal) : null), []);
  return (
    <Card id="versions" title={TEXTS.versions}>
      <ErrorNotice error={version.error} onRetry={version.reload} />
      <ErrorNotice error={sources.error} onRetry={sources.reload} />
      <FactList
        rows={[
          ["Assent", version.data ?? "…"],
          ["Policy set in force", policySet === null ? TEXTS.none : <Hash value={policySet} />],
          ["Active policies by source", sources.data],
          ["Checked", at === null ? null : <Ago at={at} />],
        ]}
      />
      <p>
        <a href="/docs">API</a> · <a href="/redoc">Reference</a> · <a href="/openapi.json">openapi.json</a>
      </p>
    </Card>
  );
}

async function readVersion(signal: AbortSignal): Promise<string> {
  return ((await fetchJson("/openapi.json", { signal })) as { info: { version: string } }).info.version;
}

/** Returns "4 from policy-files, 2 from the API". */
async function countSources(signal: AbortSignal): Promise<string> {
  const { policies } = await request("GET /v1/policies", { query: { status: "active", limit: 1000 }, signal });
  const counts = new Map<string | null, number>();
  for (const { managed_by: source } of policies) counts.set(source, (counts.get(source) ?? 0) + 1);
  const parts = [...counts].map(([source, count]) => `${count} from ${source ?? "the API"}`);
  return parts.length === 0 ? TEXTS.none : parts.join(", ");
}
