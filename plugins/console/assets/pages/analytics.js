/** How much is asked for, how it is decided, and how long people take. */
import { call, now, url } from "/console/api.js";
import { Bars, Chart } from "/console/chart.js";
import { duration } from "/console/text.js";
import { Page, Problem, Table, Text, Time, html, useLoad, useState, useRef } from "/console/ui.js";

const DAY = 86_400_000;
const RANGES = { "24 hours": DAY, "7 days": 7 * DAY, "30 days": 30 * DAY, "90 days": 90 * DAY, "1 year": 365 * DAY };
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const LINES = [
  { key: "allow", name: "allowed", color: "good" },
  { key: "require_approval", name: "asked a person", color: "busy", dash: [6, 4] },
  { key: "deny", name: "denied", color: "bad", dash: [2, 3] },
];

export function Analytics() {
  const [range, setRange] = useState("7 days");
  const [interval, setInterval] = useState("");
  const { data, error, reload } = useLoad((signal) => call(url("/v1/analytics", { since: new Date(now() - RANGES[range]).toISOString(), interval, time_zone: ZONE }), { signal }), [range, interval]);
  const drawn = useRef({ of: null, times: [], lines: [] });
  if (data !== null && drawn.current.of !== data) {
    drawn.current = { of: data, times: data.series.map((row) => Date.parse(row.start) / 1000), lines: LINES.map((line) => ({ ...line, values: data.series.map((row) => row.by_decision[line.key]) })) };
  }
  const text = (value) => html`<${Text} value=${value} />`;
  return html`<${Page} title="Analytics" side=${html`<button type="button" onClick=${reload}>Reload</button>`}>
    <div class="filters">
      <div class="field"><label for="range">Range</label><select id="range" value=${range} onChange=${(event) => setRange(event.target.value)}>${Object.keys(RANGES).map((name) => html`<option value=${name}>last ${name}</option>`)}</select></div>
      <div class="field"><label for="interval">By</label><select id="interval" value=${interval} onChange=${(event) => setInterval(event.target.value)}><option value="">automatic</option>${["hour", "day", "week", "month"].map((name) => html`<option value=${name}>${name}</option>`)}</select></div>
      <span class="quiet">Days begin at midnight in ${ZONE}.</span>
    </div>
    <${Problem} error=${error} again=${reload} />
    ${data === null ? null : html`
      <div class="figures">
        <${Figure} name="Actions" value=${data.total.toLocaleString()} />
        ${LINES.map((line) => html`<${Figure} name=${line.name} value=${data.by_decision[line.key].toLocaleString()} />`)}
        <${Figure} name="Median wait (p50)" value=${data.approvals.p50_ms === null ? "–" : duration(data.approvals.p50_ms)} />
        <${Figure} name="95 % waited less (p95)" value=${data.approvals.p95_ms === null ? "–" : duration(data.approvals.p95_ms)} />
        <${Figure} name="Decided by people" value=${data.approvals.decided.toLocaleString()} />
      </div>
      <section class="card" aria-labelledby="series"><h2 id="series">Decisions by ${data.interval}</h2>
        <${Chart} label=${`Decisions by ${data.interval}, from ${data.since} to ${data.until}; the figures stand in the table below.`} times=${drawn.current.times} lines=${drawn.current.lines} />
        <details><summary>The figures</summary><${Table} label="Decisions over time" head=${["From", "Actions", ...LINES.map((line) => line.name)]}>
          ${data.series.map((row) => html`<tr key=${row.start}><td><${Time} at=${row.start} /></td><td data-label="Actions">${row.total}</td>${LINES.map((line) => html`<td data-label=${line.name}>${row.by_decision[line.key]}</td>`)}</tr>`)}
        <//></details>
      </section>
      <div class="columns">
        <section class="card"><h2>By status</h2><${Bars} label="By status" rows=${Object.entries(data.by_status).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]).map(([name, count]) => ({ name: name.replace("_", " "), count }))} /></section>
        <section class="card"><h2>By tool</h2><${Bars} label="By tool" rows=${data.by_tool.map((row) => ({ name: row.tool, label: text(row.tool), count: row.count }))} others=${data.others.tools} /></section>
        <section class="card"><h2>By agent</h2><${Bars} label="By agent" rows=${data.by_agent.map((row) => ({ name: row.agent_id, label: html`<a href=${url("#/actions", { agent_id: row.agent_id })}>${text(row.agent_id)}</a>`, count: row.count }))} others=${data.others.agents} /></section>
        <section class="card"><h2>By rule</h2><${Bars} label="By rule" rows=${data.by_rule.map((row) => ({ name: `${row.policy} ${row.rule}`, label: row.rule === null ? "no rule fitted" : html`${text(row.rule)} <span class="quiet">${text(row.policy)}</span>`, count: row.count }))} others=${data.others.rules} /></section>
      </div>`}
  <//>`;
}

/** @param {{ name: string, value: string }} props */
function Figure({ name, value }) {
  return html`<div class="figure"><span class="quiet">${name}</span><strong>${value}</strong></div>`;
}
