/** Which rules require approval, and how people vote, computed from the ledger's entries. */
import { useState } from "preact/hooks";
import type { Oversight } from "../core/api-types.ts";
import { ApiError, request } from "../core/api.ts";
import { Bars } from "../ui/bars.tsx";
import { Empty, Table, MarkedValue } from "../ui/elements.tsx";
import { formatDuration } from "../ui/format.ts";
import { useLoad } from "../ui/hooks.ts";
import { PersonLink } from "../ui/person.tsx";
import { LoadedCard } from "../ui/section.tsx";
import { actionsAddress } from "./range.ts";
import { TEXTS } from "./strings.ts";

/** Rows of each list that are rendered at first. */
const FIRST_ROWS = 10;

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
  const [isAll, setAll] = useState(false);
  if (rules.length === 0) return <Empty text={TEXTS.noAsking} />;
  return (
    <>
      <Bars
        label={TEXTS.asking}
        rows={rules.slice(0, isAll ? undefined : FIRST_ROWS).map(({ policy, rule, requests }) => ({
          name: `${policy ?? ""} ${rule ?? ""}`,
          label: <Rule policy={policy} rule={rule} />,
          count: requests,
          href: actionsAddress(since, { decision: "require_approval", policy, rule }),
        }))}
      />
      {isAll || rules.length <= FIRST_ROWS ? null : <More count={rules.length} onClick={() => setAll(true)} />}
    </>
  );
}

function Votes({ rows, since }: { rows: Oversight["approvers"]; since: string }) {
  const [isAll, setAll] = useState(false);
  if (rows.length === 0) return <Empty text={TEXTS.noVoting} />;
  return (
    <>
      <p class="quiet">{TEXTS.votingHelp}</p>
      <Table label={TEXTS.votes} head={["Approver", "Rule", "Votes", "Median", "Approved", "Within 3 s"]}>
        {rows.slice(0, isAll ? undefined : FIRST_ROWS).map((row) => (
          <tr key={`${row.approver} ${row.policy ?? ""} ${row.rule ?? ""}`}>
            <td>
              <PersonLink principal={row.approver} />
            </td>
            <td data-label="Rule">
              <Rule policy={row.policy} rule={row.rule} />
            </td>
            {voteFigures(row).map(([name, text]) => (
              <td key={name} data-label={name}>
                <a
                  href={actionsAddress(since, { decision: "require_approval", policy: row.policy, rule: row.rule })}
                  aria-label={`${text}: ${name}, with the requests of the rule`}
                >
                  {text}
                </a>
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {isAll || rows.length <= FIRST_ROWS ? null : <More count={rows.length} onClick={() => setAll(true)} />}
    </>
  );
}

function voteFigures(row: Oversight["approvers"][number]): [name: string, text: string][] {
  return [
    ["Votes", row.votes.toLocaleString()],
    ["Median", formatDuration(row.median_ms)],
    ["Approved", `${Math.round(row.approval_rate * 100)} %`],
    ["Within 3 s", `${Math.round(row.fast_rate * 100)} %`],
  ];
}

function Rule({ policy, rule }: { policy: string | null; rule: string | null }) {
  return (
    <>
      <MarkedValue value={rule ?? TEXTS.noRule} />{" "}
      {policy === null ? null : (
        <a class="quiet" href={`#/policies/${encodeURIComponent(policy)}`}>
          <MarkedValue value={policy} />
        </a>
      )}
    </>
  );
}

function More({ count, onClick }: { count: number; onClick(): void }) {
  return (
    <button type="button" onClick={onClick}>
      Show all {count.toLocaleString("en")}
    </button>
  );
}
