/** The limits of policies with their use. */
import {
  ActionName,
  Age,
  type Api,
  Badge,
  Dialog,
  encodeSegment,
  ErrorNotice,
  formatCounted,
  KeyName,
  LoadedPage,
  Loading,
  MarkedValue,
  PageLink,
  request,
  Table,
  useLoad,
  useState,
} from "../../console/app/kit.ts";

type Limit = Api["GET /v1/limits"]["response"]["limits"][number];
interface Chosen {
  policy: string;
  limit: string;
  subject: string;
}

const TEXTS = {
  title: "Limits",
  none: "No active policy has a limit. Add one under limits in a policy.",
  unused: "not used in this window",
  unknown: "not listed: it is counted by another value, depends on a redacted parameter, or you do not see all actions",
  groups: "What members of a group see and approve is on the page",
  groupsPage: "Groups and rotas",
  uses: "Actions that used it",
  noUses: "No action used it in the current window.",
  close: "Close",
} as const;

export function Limits() {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const loaded = useLoad((signal) => request("GET /v1/limits", { signal }), []);
  return (
    <LoadedPage title={TEXTS.title} what="limits" loaded={loaded}>
      {({ limits }) => (
        <>
          {limits.length === 0 ? (
            <p class="quiet">{TEXTS.none}</p>
          ) : (
            <LimitTable limits={limits} onChoose={setChosen} />
          )}
          <p class="quiet">
            {TEXTS.groups} <PageLink href="#/groups">{TEXTS.groupsPage}</PageLink>.
          </p>
          {chosen === null ? null : <Uses chosen={chosen} onClose={() => setChosen(null)} />}
        </>
      )}
    </LoadedPage>
  );
}

function LimitTable({ limits, onChoose }: { limits: readonly Limit[]; onChoose(chosen: Chosen): void }) {
  return (
    <Table label={TEXTS.title} head={["Limit", "At most", "Operations", "Used now", "Managed"]}>
      {limits.map((limit) => (
        <tr key={`${limit.policy} ${limit.limit}`}>
          <td>
            <strong>
              <MarkedValue value={limit.limit} />
            </strong>
            {limit.shadow ? <Badge value="shadow" /> : null}
          </td>
          <td data-label="At most">
            <MarkedValue value={describeCap(limit)} />
          </td>
          <td data-label="Operations">
            <MarkedValue value={describeActions(limit)} />
          </td>
          <td data-label="Used now">
            <Use limit={limit} onChoose={onChoose} />
          </td>
          <td data-label="Managed">
            <a href={`#/policies/${encodeSegment(limit.policy)}`}>
              <MarkedValue value={limit.policy} />
            </a>
            {limit.managed_by === null ? null : (
              <span class="quiet">
                {" "}
                by <MarkedValue value={limit.managed_by} />
              </span>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Use({ limit, onChoose }: { limit: Limit; onChoose(chosen: Chosen): void }) {
  const { use, per, policy, limit: name } = limit;
  if (use === null) return <span class="quiet">{TEXTS.unknown}</span>;
  if (use.length === 0) return <span class="quiet">{TEXTS.unused}</span>;
  const most = limit.at_most ?? limit.count ?? 0;
  return (
    <>
      {use.map(({ subject, used }) => (
        <div key={subject}>
          {per === "key" ? <KeyName id={subject} /> : subject === "" ? "all agents" : <MarkedValue value={subject} />}:{" "}
          {used} of {most} {used >= most ? <Badge value="denied" label="used up" /> : null}{" "}
          <button type="button" class="link" onClick={() => onChoose({ policy, limit: name, subject })}>
            actions
          </button>
        </div>
      ))}
    </>
  );
}

/** Returns a text such as "20 actions per agent in 24h, then denied", or "5 actions each day, then denied". */
function describeCap({ count, sum, at_most, per, window, effect }: Limit): string {
  const cap = sum === null ? formatCounted(count ?? 0, "action") : `${at_most} in total of ${sum}`;
  const then = effect === "deny" ? "then denied" : "then an approval is required";
  const during = /^\d/.test(window) ? `in ${window}` : `each ${window}`;
  return `${cap}${per === null ? "" : ` per ${per}`} ${during}, ${then}`;
}

function describeActions({ tools, operations, agents }: Limit): string {
  const parts = [
    tools === null ? "" : tools.join(", "),
    operations === null ? "" : operations.join(", "),
    agents === null ? "" : `of ${agents.join(", ")}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "all actions" : parts.join(" ");
}

function Uses({ chosen, onClose }: { chosen: Chosen; onClose(): void }) {
  const { data, error } = useLoad((signal) => request("GET /v1/limits/uses", { query: { ...chosen }, signal }), []);
  return (
    <Dialog title={TEXTS.uses} onClose={onClose}>
      <ErrorNotice error={error} />
      {data === null && error === null ? <Loading what="actions" /> : null}
      {data?.uses.length === 0 ? <p class="quiet">{TEXTS.noUses}</p> : null}
      <ul>
        {(data?.uses ?? []).map(({ action_id, at, amount }) => (
          <li key={action_id}>
            <a href={`#/actions/${encodeSegment(action_id)}`}>
              <ActionName id={action_id} />
            </a>{" "}
            <Age at={at} /> ago
            {amount === null ? null : <>, {amount}</>}
          </li>
        ))}
      </ul>
      <div class="row end">
        <button type="button" data-focus="" onClick={onClose}>
          {TEXTS.close}
        </button>
      </div>
    </Dialog>
  );
}
