/** The list of policies, and the addresses of their pages and editors. */
import {
  Age,
  type Api,
  Badge,
  EmptyState,
  encodeSegment,
  hasScope,
  LoadedPage,
  MarkedValue,
  OneLine,
  readReadiness,
  request,
  RowPages,
  Snippet,
  StalePolicies,
  Table,
  useLoad,
} from "../../console/app/kit.ts";
import { ManagedPolicyNotice } from "./managed-notice.tsx";
import { NewPolicy } from "./policy-editor.tsx";
import { PolicyDetail } from "./policy.tsx";
import { LIST_TEXTS } from "./strings.ts";

type Summary = Api["GET /v1/policies"]["response"]["policies"][number];

export function Policies({ id, query }: { id: string | null; query: URLSearchParams }) {
  if (id === "new") return <NewPolicy />;
  return id === null ? <List /> : <PolicyDetail key={id} id={id} query={query} />;
}

function List() {
  const loaded = useLoad((signal) => request("GET /v1/policies", { query: { limit: 1000 }, signal }), []);
  const { data: ready } = useLoad(readReadiness, []);
  return (
    <LoadedPage
      title={LIST_TEXTS.title}
      what="policies"
      loaded={loaded}
      side={
        hasScope("policies:write") ? (
          <a class="button primary" href="#/policies/new">
            {LIST_TEXTS.create}
          </a>
        ) : null
      }
    >
      {({ policies }) => (
        <>
          {ready === null ? null : <StalePolicies policies={ready.policies} />}
          {policies.length === 0 ? (
            <EmptyState text={LIST_TEXTS.empty}>
              <p>{LIST_TEXTS.emptyHelp}</p>
              <Snippet label={LIST_TEXTS.emptySnippet} text={"assent init\nassent serve"} />
            </EmptyState>
          ) : (
            <RowPages
              rows={[...policies].sort((a, b) => (a.name < b.name ? -1 : 1))}
              keyOf={({ id }) => id}
              what="policies"
              order="inOrder"
            >
              {(policies) => (
                <Table label={LIST_TEXTS.title} head={LIST_TEXTS.head}>
                  {policies.map((policy) => (
                    <Row key={policy.id} policy={policy} />
                  ))}
                </Table>
              )}
            </RowPages>
          )}
        </>
      )}
    </LoadedPage>
  );
}

function Row({ policy }: { policy: Summary }) {
  const { name, description, status, mode, active_version, latest_version, updated_at } = policy;
  return (
    <tr>
      <td class="nowrap">
        <a href={`#/policies/${encodeSegment(name)}`}>
          <strong>
            <MarkedValue value={name} />
          </strong>
        </a>
      </td>
      <td class="part-line">
        <OneLine text={description ?? ""} />
      </td>
      <td class="nowrap">
        <Badge value={status} /> {mode === "shadow" ? <Badge value="shadow" /> : null}
      </td>
      <td data-label="Version" class="nowrap">
        {active_version ?? <span class="quiet">{LIST_TEXTS.noneActive}</span>}
        {latest_version === active_version ? null : <span class="quiet">, {LIST_TEXTS.newest(latest_version)}</span>}
      </td>
      <td data-label="Managed by">
        <ManagedPolicyNotice policy={policy} />
      </td>
      <td data-label="Changed">
        <Age at={updated_at} />
      </td>
    </tr>
  );
}
