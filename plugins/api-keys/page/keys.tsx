/** API keys: who can call the service, and for what. */
import { useState } from "preact/hooks";
import {
  Age,
  PageLink,
  type Api,
  Badge,
  EmptyState,
  encodeSegment,
  ErrorNotice,
  Loading,
  MarkedValue,
  OneLine,
  Page,
  PersonLink,
  renderPlain,
  request,
  ResultNotice,
  RowMenu,
  RowPages,
  Snippet,
  Table,
  TimeLeft,
  useAddressedForm,
  useLoad,
} from "../../console/app/kit.ts";
import type { ApiKey } from "./api-types.ts";
import { type CreatedKey, CreateKeyDialog, NewKey } from "./create-key.tsx";
import { isOwnKey } from "./own-key.ts";
import { RevokeKeyDialog } from "./revoke-key.tsx";
import { TEXTS } from "./strings.ts";

type Status = "live" | "ended";

/** Maximum number of keys that the page loads. */
const MAX_KEYS = 1000;

export function Keys({ query }: { query: URLSearchParams }) {
  const [status, setStatus] = useState<Status>("live");
  const [newKey, setNewKey] = useState<CreatedKey | null>(null);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const [isCreating, setCreating] = useState(false);
  const [done, setDone] = useState("");
  useAddressedForm(query, () => setCreating(true));
  const { data, error, reload } = useLoad(
    (signal) => request("GET /v1/api-keys", { query: { status, limit: MAX_KEYS }, signal }),
    [status],
  );
  return (
    <>
      <Page
        title={TEXTS.title}
        side={
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            {TEXTS.create}
          </button>
        }
      >
        {/* Displays the value of a new key even if the list cannot be loaded. */}
        {newKey === null ? null : <NewKey created={newKey} onDone={() => setNewKey(null)} />}
        <ResultNotice text={done} />
        <StatusFilter status={status} onChange={setStatus} />
        <ErrorNotice error={error} onRetry={reload} />
        {data === null ? (
          error === null ? (
            <Loading what="keys" />
          ) : null
        ) : (
          <KeyList page={data} status={status} onRevoke={setRevoking} />
        )}
      </Page>
      {isCreating ? (
        <CreateKeyDialog
          onClose={() => setCreating(false)}
          onCreated={(created) => {
            setCreating(false);
            setDone("");
            setNewKey(created);
            reload();
          }}
        />
      ) : null}
      {revoking === null ? null : (
        <RevokeKeyDialog
          apiKey={revoking}
          onClose={() => setRevoking(null)}
          onDone={() => {
            setRevoking(null);
            setDone(TEXTS.revoked(revoking.name));
            reload();
          }}
        />
      )}
    </>
  );
}

function StatusFilter({ status, onChange }: { status: Status; onChange(status: Status): void }) {
  return (
    <div class="tabs" role="group" aria-label={TEXTS.show}>
      {(["live", "ended"] as const).map((each) => (
        <button key={each} type="button" aria-pressed={status === each} onClick={() => onChange(each)}>
          {TEXTS[each]}
        </button>
      ))}
    </div>
  );
}

interface KeyListProps {
  page: Api["GET /v1/api-keys"]["response"];
  status: Status;
  onRevoke(key: ApiKey): void;
}

function KeyList({ page: { api_keys: keys, next_cursor }, status, onRevoke }: KeyListProps) {
  if (keys.length === 0)
    return (
      <EmptyState text={TEXTS.none[status]}>
        <p>{TEXTS.noneHelp[status]}</p>
        {status === "live" ? <Snippet label={TEXTS.create} text={TEXTS.command} /> : null}
      </EmptyState>
    );
  return (
    <>
      <RowPages rows={keys} keyOf={({ id }) => id} what="keys">
        {(keys) => <KeyTable keys={keys} onRevoke={onRevoke} />}
      </RowPages>
      {next_cursor === null ? null : <p class="quiet">{TEXTS.cut}</p>}
    </>
  );
}

/** Renders keys. The table has no buttons if `onRevoke` is absent. */
export function KeyTable({ keys, onRevoke }: { keys: readonly ApiKey[]; onRevoke?: (key: ApiKey) => void }) {
  const { may, agent, owner, used, ends } = TEXTS.columns;
  return (
    <Table label={TEXTS.title} head={["Name", may, agent, owner, used, ends, ...(onRevoke === undefined ? [] : [""])]}>
      {keys.map((each) => (
        <tr key={each.id}>
          <td class="nowrap">
            <strong>
              <MarkedValue value={each.name} />
            </strong>
            {isOwnKey(each) ? <span class="quiet"> {TEXTS.yours}</span> : null}{" "}
            <code class="quiet">{each.prefix}…</code>
          </td>
          <td data-label={may} class="part-line">
            <OneLine text={each.scopes.join(", ")} />
          </td>
          <td data-label={agent}>
            {each.agent_id === null ? (
              <span class="quiet">any</span>
            ) : (
              <PageLink href={`#/agents/${encodeSegment(each.agent_id)}`}>
                <MarkedValue value={each.agent_id} />
              </PageLink>
            )}
          </td>
          <td data-label={owner}>
            {each.owner === null ? <span class="quiet">none</span> : <PersonLink principal={each.owner} />}
          </td>
          <td data-label={used}>
            {each.last_used_at === null ? <span class="quiet">never</span> : <Age at={each.last_used_at} />}
          </td>
          <td data-label={ends}>
            <End apiKey={each} />
          </td>
          {onRevoke === undefined ? null : (
            <td>
              {each.revoked_at === null ? (
                <RowMenu
                  of={each.name}
                  commands={[
                    { text: "Revoke…", label: `Revoke ${renderPlain(each.name)}`, onChoose: () => onRevoke(each) },
                  ]}
                />
              ) : null}
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

function End({ apiKey: { revoked_at, expires_at } }: { apiKey: ApiKey }) {
  if (revoked_at !== null)
    return (
      <>
        <Badge value="revoked" /> <Age at={revoked_at} />
      </>
    );
  return expires_at === null ? <span class="quiet absent">never</span> : <TimeLeft at={expires_at} short />;
}
