/** What a version would have changed: past decisions made again with it, and what a policy in shadow mode said. */
import { at, call, now, url } from "../core/api.ts";
import { backtest, byRule, joined, kindOf, loosens } from "../backtest.js";
import { plain } from "../ui/format.ts";
import { What } from "../ui/request.tsx";
import { Badge, Notice, Problem, Text, Time, html, useEffect, useRef, useState } from "../ui.js";

const DAY = 86_400_000;
const RANGES = { "24 hours": DAY, "7 days": 7 * DAY, "30 days": 30 * DAY, "90 days": 90 * DAY, "1 year": 365 * DAY };
/** Most decisions of one part; a person may go on with older ones. */
const PART = 10_000;

/**
 * @param {object} props
 * @param {string} props.name unique on the page
 * @param {Record<string, unknown>} props.candidate `{ yaml }` or `{ policy }`
 * @param {boolean} [props.auto] begins by itself
 * @param {(error: any) => boolean} [props.onRefused] true when the refusal is shown elsewhere
 */
export function Backtest({ name, candidate, auto = false, onRefused = () => false }) {
  const [today, setToday] = useState(/** @type {{ kinds: Map<string, number>, error: unknown } | null} */ (null));
  const fetchPart = async ({ since, until, before, signal, onProgress }) => {
    setToday(null);
    return backtest(
      { ...candidate, since, until, limit: PART, ...(before === null ? {} : { before }) },
      { signal, onProgress },
    );
  };
  /** What flips against the record may come from changes that are in force already. */
  const compare = async (report, signal) => {
    if (report.flipped === 0) return;
    try {
      const current = await backtest(
        { policy_set: "current", since: report.since, until: report.until, limit: report.evaluated },
        { signal, onProgress: () => undefined },
      );
      setToday({ kinds: new Map(current.flips.map((flip) => [kindOf(flip), flip.count])), error: null });
    } catch (error) {
      if (!signal.aborted) setToday({ kinds: new Map(), error });
    }
  };
  const scan = useScan({ fetchPart, compare, onRefused, of: JSON.stringify(candidate) });
  useEffect(() => {
    if (auto) void scan.start();
  }, []);
  return html`<div class="backtest">
    <div class="filters">
      <${Range} name=${name} scan=${scan} />
      ${scan.busy ? html`<button type="button" onClick=${scan.cancel}>Cancel</button>` : html`<button type="button" onClick=${scan.start}>Run the backtest</button>`}
    </div>
    ${scan.busy ? html`<${Progress} name=${name} counts=${scan.counts} />` : null}
    ${scan.stopped ? html`<${Notice} kind="busy">Cancelled. ${(scan.counts?.evaluated ?? 0) === 0 ? "Nothing was looked at." : `Of the ${number(scan.counts.evaluated)} newest decisions, ${number(scan.counts.flipped)} would flip; the others were not looked at.`}<//>` : null}
    ${
      scan.error === null
        ? null
        : html`<p><strong>Not tested:</strong></p>
            <${Problem} error=${scan.error} />`
    }
    ${
      scan.report === null
        ? null
        : html` ${scan.stale ? html`<${Notice} kind="busy">The text has changed since this backtest: run it again.<//>` : null}
            <${Summary}
              report=${scan.report}
              nothing="No decision that this key may see lies in this range: the backtest says nothing about this version."
            />
            <${Flips} report=${scan.report} today=${today} />
            <${More} scan=${scan} />`
    }
  </div>`;
}

/** @param {{ path: string }} props of the policy, under /v1 */
export function Shadow({ path }) {
  const fetchPart = ({ since, until, before, signal }) =>
    call(url(`${path}/shadow`, { since, until, limit: PART, before }), { signal });
  const scan = useScan({ fetchPart, of: path });
  useEffect(() => void scan.start(), [scan.range]);
  return html`<section class="card" aria-labelledby="shadow">
    <h2 id="shadow">What it would have changed in shadow mode</h2>
    <p class="quiet">By what it said when the decisions were made, had it been enforced.</p>
    <div class="filters"><${Range} name="shadow" scan=${scan} /></div>
    ${scan.busy ? html`<p class="quiet">Looking…</p>` : null}
    <${Problem} error=${scan.error} again=${scan.start} />
    ${
      scan.report === null
        ? null
        : html` <${Summary}
              report=${scan.report}
              nothing="It had a say in no decision of this range that this key may see."
            />
            <${Flips} report=${scan.report} today=${null} />
            <${More} scan=${scan} />`
    }
  </section>`;
}

/**
 * A report that is fetched in parts, newest decisions first.
 * @param {object} options
 * @param {(part: { since: string, until: string | undefined, before: number | null, signal: AbortSignal, onProgress: (counts: any) => void }) => Promise<any>} options.fetchPart
 * @param {(report: any, signal: AbortSignal) => Promise<void>} [options.compare] is given the whole report after each part
 * @param {(error: any) => boolean} [options.onRefused]
 * @param {string} options.of what it is a report of: another text makes it stale
 */
function useScan({ fetchPart, compare, onRefused = () => false, of }) {
  const [range, setRange] = useState("7 days");
  const [state, setState] = useState(
    /** @type {any} */ ({ busy: false, stopped: false, counts: null, report: null, error: null, of }),
  );
  const over = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => over.current?.abort(), []);
  const part = async (sofar) => {
    over.current?.abort();
    const mine = (over.current = new AbortController());
    const { signal } = mine;
    const put = (change) => signal.aborted || setState((old) => ({ ...old, ...change }));
    put({ busy: true, stopped: false, counts: null, report: sofar, error: null, of });
    try {
      const since = sofar?.since ?? new Date(now() - RANGES[range]).toISOString();
      const onProgress = ({ evaluated, flipped }) =>
        put({ counts: { evaluated: evaluated + (sofar?.evaluated ?? 0), flipped: flipped + (sofar?.flipped ?? 0) } });
      const report = joined(
        sofar,
        await fetchPart({ since, until: sofar?.until, before: sofar?.next ?? null, signal, onProgress }),
      );
      put({ report });
      await compare?.(report, signal);
      put({ busy: false });
    } catch (error) {
      put({ busy: false, error: onRefused(error) ? null : error });
    }
  };
  const cancel = () => {
    over.current?.abort();
    setState((old) => ({ ...old, busy: false, stopped: old.report === null }));
  };
  return {
    ...state,
    range,
    setRange,
    start: () => part(null),
    goOn: () => part(state.report),
    cancel,
    stale: state.of !== of,
  };
}

/** @param {{ name: string, scan: any }} props */
function Range({ name, scan }) {
  return html`<div class="field">
    <label for=${`${name}-range`}>Range</label
    ><select
      id=${`${name}-range`}
      value=${scan.range}
      disabled=${scan.busy}
      onChange=${(event) => scan.setRange(event.target.value)}
    >
      ${Object.keys(RANGES).map((range) => html`<option value=${range}>last ${range}</option>`)}
    </select>
  </div>`;
}

/** @param {{ name: string, counts: { evaluated: number, flipped: number } | null }} props */
function Progress({ name, counts }) {
  return html`<p class="row">
    <progress aria-labelledby=${`${name}-progress`}></progress>
    <span id=${`${name}-progress`} class="quiet"
      >${counts === null ? "Making past decisions again…" : `${number(counts.evaluated)} decisions made again, ${number(counts.flipped)} would flip so far…`}</span
    >
  </p>`;
}

/** @param {{ report: any, nothing: string }} props */
function Summary({ report, nothing }) {
  const { evaluated, flipped, otherwise, erased, altered } = report;
  const other =
    otherwise === 0 ? "" : ` ${number(otherwise)} would come out the same, by another rule or on other terms.`;
  const said =
    evaluated === 0
      ? nothing
      : flipped === 0
        ? `None of ${number(evaluated)} past decisions would flip.${other}`
        : `${number(flipped)} of ${number(evaluated)} past decisions would flip.${other}`;
  return html`<${Notice} kind=${evaluated > 0 && flipped === 0 ? "good" : "busy"}><strong>${said}</strong><//>
    <p class="quiet">
      Decisions that this key may see, <${Time} at=${report.since} /> to <${Time} at=${report.until} />, against what
      was
      recorded.${erased > 0 ? ` ${number(erased)} more cannot be replayed: their requests were erased.` : ""}${altered > 0 ? ` ${number(altered)} more cannot be read: their rows were altered; run assent audit.` : ""}
    </p>`;
}

/** @param {{ report: any, today: { kinds: Map<string, number>, error: unknown } | null }} props */
function Flips({ report, today }) {
  return html` ${today === null || today.error === null ? null : html`<p class="quiet">What the policies in force would decide is not known: <${Text} value=${/** @type {Error} */ (today.error).message} /></p>`}
  ${byRule(report.flips).map(
    (rule) =>
      html`<div class="flips" key=${kindOf(rule.flips[0])}>
        <h3>
          <${Rule} outcome=${rule.to} /> <${Badge} value=${rule.to.effect} />
          <span class="quiet">${number(rule.count)} ${rule.count === 1 ? "flip" : "flips"}</span>
        </h3>
        <ul>
          ${rule.flips.map(
            (flip) =>
              html`<li key=${kindOf(flip)}>
                ${number(flip.count)} <span class="quiet">recorded as</span> <${Badge} value=${flip.from.effect} />
                <span class="quiet">by</span> <${Rule} outcome=${flip.from} />
                ${loosens(flip) ? html` <${Badge} value="critical" label="less strict" />` : null}
                ${(today?.kinds.get(kindOf(flip)) ?? 0) >= flip.count ? html` <${Badge} value="inactive" label="already so with the policies in force" />` : null}
                <ul class="examples">
                  ${flip.examples.map(
                    (example) =>
                      html`<li key=${example.action_id}>
                        <a
                          href=${`#/actions/${at(example.action_id)}`}
                          aria-label=${plain(`${example.tool} ${example.operation} by ${example.agent_id}, ${example.at}`)}
                          ><${What} action=${example}
                        /></a>
                        <span class="quiet"><${Time} at=${example.at} /></span>
                      </li>`,
                  )}
                  ${flip.count > flip.examples.length && flip.examples.length > 0 ? html`<li class="quiet">and ${number(flip.count - flip.examples.length)} more</li>` : null}
                </ul>
              </li>`,
          )}
        </ul>
      </div>`,
  )}
  ${report.unlisted === 0 ? null : html`<p class="quiet">${number(report.unlisted)} more flips are of kinds that are not listed.</p>`}`;
}

/** @param {{ outcome: { policy: string | null, rule: string | null } }} props */
function Rule({ outcome }) {
  return outcome.rule === null
    ? html`<span>no rule</span>`
    : html`<span
        >“<${Text} value=${outcome.rule} />” <span class="quiet">of <${Text} value=${outcome.policy} /></span
      ></span>`;
}

/** @param {{ scan: any }} props */
function More({ scan }) {
  if (scan.busy || scan.report.next === null) return null;
  return html`<p class="row">
    <span>Not the whole range: the ${number(scan.report.evaluated)} newest.</span>
    <button type="button" class="small" onClick=${scan.goOn}>Go on with older ones</button>
  </p>`;
}

/** @param {number} count */
function number(count) {
  return count.toLocaleString();
}
