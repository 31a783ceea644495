/** Which rules require approval, and how people vote, computed from the ledger's entries. */
import {
  PageLink,
  ApiError,
  Bars,
  EmptyState,
  formatDuration,
  LoadedCard,
  MarkedValue,
  PersonLink,
  request,
  RowPages,
  Table,
  useLoad,
} from "../../console/app/kit.ts";
import type { Oversight } from "./api-types.ts";
import { actionsAddress, ruleFilters } from "./range.ts";
import { TEXTS } from "./strings.ts";

/** Maximum number of rendered rows of the table. */
const MAX_ROWS = 10;

/**
 * Loads both cards with one request.
 * @param props.since start of the range
 */
export function OversightCards({ since }: { since: string }) {
  const loaded = useLoad(
    async (signal): Promise<Oversight | "too long"> => {
      try {
        return await request("GET /v1/analytics/oversight", { query: { since }, signal });
      } catch (error) {
        if (error instanceof ApiError && error.code === "INVALID_RANGE") return "too long";
        throw error;
      }
    },
    [since],
  );
  return (
    <>
      <LoadedCard id="asking" title={TEXTS.asking} what="rules" loaded={loaded}>
        {(data) =>
          data === "too long" ? <p class="quiet">{TEXTS.tooLong}</p> : <Rules rules={data.rules} since={since} />
        }
      </LoadedCard>
      {loaded.data === null || loaded.data === "too long" ? null : (
        <LoadedCard id="voting" title={TEXTS.voting} what="votes" loaded={{ ...loaded, data: loaded.data }}>
          {({ approvers }) => <Votes rows={approvers} since={since} />}
        </LoadedCard>
      )}
    </>
  );
}

function Rules({ rules, since }: { rules: Oversight["rules"]; since: string }) {
  if (rules.length === 0) return <EmptyState text={TEXTS.noAsking} />;
  return (
    <Bars
      label={TEXTS.asking}
      rows={rules.map(({ policy, rule, requests }) => ({
        name: `${policy ?? ""} ${rule ?? ""}`,
        label: <Rule policy={policy} rule={rule} />,
        count: requests,
        href: actionsAddress(since, { decision: "require_approval", ...ruleFilters(policy, rule) }),
      }))}
    />
  );
}

function Votes({ rows, since }: { rows: Oversight["approvers"]; since: string }) {
  if (rows.length === 0) return <EmptyState text={TEXTS.noVoting} />;
  return (
    <>
      <p class="quiet">{TEXTS.votingHelp}</p>
      <RowPages rows={rows} keyOf={keyOf} what="votes" size={MAX_ROWS} order="inOrder">
        {(shown) => (
          <Table label={TEXTS.votes} head={["Approver", "Rule", "Votes", "Median", "Approved", "Within 3 s"]}>
            {shown.map((row) => (
              <VoteRow key={keyOf(row)} row={row} since={since} />
            ))}
          </Table>
        )}
      </RowPages>
    </>
  );
}

type VoteRow = Oversight["approvers"][number];

const keyOf = ({ approver, policy, rule }: VoteRow): string => JSON.stringify([approver, policy, rule]);

function VoteRow({ row, since }: { row: VoteRow; since: string }) {
  const { approver, policy, rule } = row;
  return (
    <tr>
      <td>
        <PersonLink principal={approver} />
      </td>
      <td data-label="Rule">
        <Rule policy={policy} rule={rule} />
      </td>
      {voteFigures(row).map(([name, text, answer]) => (
        <td key={name} data-label={name}>
          <a
            href={actionsAddress(since, { answer, ...ruleFilters(policy, rule) })}
            aria-label={`${text}: ${name}, with the requests of the rule`}
          >
            {text}
          </a>
        </td>
      ))}
    </tr>
  );
}

function voteFigures(row: VoteRow): [name: string, text: string, answer: string][] {
  return [
    ["Votes", row.votes.toLocaleString(), "any"],
    ["Median", formatDuration(row.median_ms), "any"],
    ["Approved", `${Math.round(row.approval_rate * 100)} %`, "approved"],
    ["Within 3 s", `${Math.round(row.fast_rate * 100)} %`, "any"],
  ];
}

function Rule({ policy, rule }: { policy: string | null; rule: string | null }) {
  return (
    <>
      <MarkedValue value={rule ?? TEXTS.noRule} />{" "}
      {policy === null ? null : (
        <PageLink class="quiet" href={`#/policies/${encodeURIComponent(policy)}`}>
          <MarkedValue value={policy} />
        </PageLink>
      )}
    </>
  );
}
