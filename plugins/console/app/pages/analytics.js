/** How much is asked for, how it is decided, and how long people take. */
import { call, now, url } from "../core/api.ts";
import { Bars, Chart } from "../chart.js";
import { duration } from "../ui/format.ts";
import { Loading, Page, Problem, Table, Text, Time, html, useLoad, useState, useRef } from "../ui.js";

const DAY = 86_400_000;
/** How long, and by what it is drawn unless another is asked for. */
const RANGES = {
  "24 hours": [DAY, "hour"],
  "7 days": [7 * DAY, "day"],
  "30 days": [30 * DAY, "day"],
  "90 days": [90 * DAY, "day"],
  "1 year": [365 * DAY, "week"],
};
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** How the policies decided. What became of it since is another count, with other words. */
const LINES = [
  { key: "allow", name: "allowed by policy", color: "good" },
  { key: "require_approval", name: "asked a person", color: "busy", dash: [6, 4] },
  { key: "deny", name: "denied by policy", color: "bad", dash: [2, 3] },
];
const STANDING = {
  allowed: "allowed, not started",
  approved: "approved, not started",
  pending_approval: "waiting for a person",
  executing: "under way",
  unknown: "outcome unknown",
  succeeded: "done",
  failed: "failed",
  expired: "expired",
  cancelled: "withdrawn",
};

/** The beginning of the hour, day, week or month, so that the first bar is a whole one. @param {number} time @param {string} interval */
export function floorOf(time, interval) {
  const date = new Date(time);
  if (interval === "hour") date.setMinutes(0, 0, 0);
  else date.setHours(0, 0, 0, 0);
  // Monday (ISO 8601), as the service counts.
  if (interval === "week") date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  if (interval === "month") date.setDate(1);
  return date.getTime();
}

/** Who was denied by policy is the count above; the rest of the denied was asked about first. @param {any} data */
function standingOf({ by_status, by_decision }) {
  return Object.entries(by_status)
    .flatMap(([status, count]) =>
      status === "denied"
        ? [
            { name: "denied by policy", count: by_decision.deny },
            { name: "denied after a person was asked", count: count - by_decision.deny },
          ]
        : [{ name: STANDING[status] ?? status, count }],
    )
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
}

export function Analytics() {
  const [range, setRange] = useState("7 days");
  const [chosen, setChosen] = useState("");
  const [long, usual] = RANGES[range];
  const interval = chosen === "" ? usual : chosen;
  const { data, error, reload } = useLoad(
    (signal) => {
      const since = new Date(floorOf(now() - long, interval)).toISOString();
      return call(url("/v1/analytics", { since, interval, time_zone: ZONE }), { signal });
    },
    [range, interval],
  );
  const drawn = useRef({ of: null, times: [], lines: [], rest: null });
  if (data !== null && drawn.current.of !== data) {
    // The one under way has had less time than the others: drawn, it would look like a fall.
    const whole = data.series.length > 1 ? data.series.slice(0, -1) : data.series;
    drawn.current = {
      of: data,
      times: whole.map((row) => Date.parse(row.start) / 1000),
      lines: LINES.map((line) => ({ ...line, values: whole.map((row) => row.by_decision[line.key]) })),
      rest: data.series.length > 1 ? data.series.at(-1) : null,
    };
  }
  const text = (value) => html`<${Text} value=${value} />`;
  return html`<${Page} title="Analytics" side=${html`<button type="button" onClick=${reload}>Reload</button>`}>
    <div class="filters">
      <div class="field">
        <label for="range">Range</label
        ><select id="range" value=${range} onChange=${(event) => setRange(event.target.value)}>
          ${Object.keys(RANGES).map((name) => html`<option value=${name}>last ${name}</option>`)}
        </select>
      </div>
      <div class="field">
        <label for="interval">By</label
        ><select id="interval" value=${chosen} onChange=${(event) => setChosen(event.target.value)}>
          <option value="">automatic</option>
          ${["hour", "day", "week", "month"].map((name) => html`<option value=${name}>${name}</option>`)}
        </select>
      </div>
      <span class="quiet">Days begin at midnight in ${ZONE}.</span>
    </div>
    <${Problem} error=${error} again=${reload} />
    ${
      data === null
        ? error === null && html`<${Loading} what="the sums" />`
        : html` <div class="figures">
              <${Figure} name="Actions" value=${data.total.toLocaleString()} />
              ${LINES.map((line) => html`<${Figure} name=${line.name} value=${data.by_decision[line.key].toLocaleString()} />`)}
              <${Figure}
                name="Median wait (p50)"
                value=${data.approvals.p50_ms === null ? "–" : duration(data.approvals.p50_ms)}
              />
              <${Figure}
                name="95 % waited less (p95)"
                value=${data.approvals.p95_ms === null ? "–" : duration(data.approvals.p95_ms)}
              />
              <${Figure} name="Decided by people" value=${data.approvals.decided.toLocaleString()} />
            </div>
            <section class="card" aria-labelledby="series">
              <h2 id="series">Decisions by ${data.interval}</h2>
              <${Chart}
                label=${`Decisions by ${data.interval}, from ${data.since} to ${data.until}; the figures stand in the table below.`}
                times=${drawn.current.times}
                lines=${drawn.current.lines}
              />
              ${drawn.current.rest === null ? null : html`<p class="quiet">Not drawn: the ${data.interval} under way, since <${Time} at=${drawn.current.rest.start} />, with ${drawn.current.rest.total.toLocaleString()} so far.</p>`}
              <details>
                <summary>The figures</summary>
                <${Table} label="Decisions over time" head=${["From", "Actions", ...LINES.map((line) => line.name)]}>
                  ${data.series.map(
                    (row) =>
                      html`<tr key=${row.start}>
                        <td><${Time} at=${row.start} /></td>
                        <td data-label="Actions">${row.total}</td>
                        ${LINES.map((line) => html`<td data-label=${line.name}>${row.by_decision[line.key]}</td>`)}
                      </tr>`,
                  )}
                <//>
              </details>
            </section>
            <div class="columns">
              <section class="card">
                <h2>How they stand now</h2>
                <${Bars} label="How they stand now" rows=${standingOf(data)} />
              </section>
              <section class="card">
                <h2>By tool</h2>
                <${Bars}
                  label="By tool"
                  rows=${data.by_tool.map((row) => ({ name: row.tool, label: text(row.tool), count: row.count }))}
                  others=${data.others.tools}
                />
              </section>
              <section class="card">
                <h2>By agent</h2>
                <${Bars}
                  label="By agent"
                  rows=${data.by_agent.map((row) => ({ name: row.agent_id, label: html`<a href=${url("#/actions", { agent_id: row.agent_id })}>${text(row.agent_id)}</a>`, count: row.count }))}
                  others=${data.others.agents}
                />
              </section>
              <section class="card">
                <h2>By rule</h2>
                <${Bars}
                  label="By rule"
                  rows=${data.by_rule.map((row) => ({ name: `${row.policy} ${row.rule}`, label: row.rule === null ? "no rule fitted" : html`${text(row.rule)} <span class="quiet">${text(row.policy)}</span>`, count: row.count }))}
                  others=${data.others.rules}
                />
              </section>
            </div>`
    }
  <//>`;
}

/** @param {{ name: string, value: string }} props */
function Figure({ name, value }) {
  return html`<div class="figure"><span class="quiet">${name}</span><strong>${value}</strong></div>`;
}
