/** Reports on past decisions: fetched in parts, put together, and set against what today's policies decide. No markup here. */
import { send } from "./core/api.ts";

/** @typedef {{ effect: string, policy: string | null, rule: string | null }} Outcome */
/** @typedef {{ from: Outcome, to: Outcome, count: number, examples: { action_id: string, at: string, agent_id: string, tool: string, operation: string }[] }} Flip */
/** @typedef {{ since: string, until: string, evaluated: number, flipped: number, otherwise: number, erased: number, altered: number, flips: Flip[], unlisted: number, next: number | null }} Report */

/** Progress is told all the time. Milliseconds. */
const SILENCE = 60_000;
const STRICTNESS = { allow: 0, require_approval: 1, deny: 2 };

/**
 * One backtest. Aborting ends the work in the service, too.
 * @param {object} body of POST /v1/replay/progress
 * @param {{ signal: AbortSignal, onProgress: (counts: { evaluated: number, flipped: number }) => void }} options
 * @returns {Promise<Report>} throws ApiError, or Error when the stream ends before its result
 */
export async function backtest(body, { signal, onProgress }) {
  const response = await send("/v1/replay/progress", {
    method: "POST",
    body,
    signal,
  });
  let rest = "";
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body)
    .pipeThrough(new TextDecoderStream())
    .getReader();
  for (;;) {
    const { done, value } = await inTime(reader.read());
    if (done) throw new Error("the backtest broke off before its result: run it again");
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const said = JSON.parse(line);
      if (said.type === "result") return said;
      onProgress(said);
    }
  }
}

/** @template T @param {Promise<T>} read @returns {Promise<T>} */
function inTime(read) {
  let timer;
  const late = new Promise((_, reject) => {
    const error = new Error(`the backtest has said nothing for ${SILENCE / 1000} seconds: run it again`);
    timer = setTimeout(() => reject(error), SILENCE);
  });
  return Promise.race([read, late]).finally(() => clearTimeout(timer));
}

/** Tells kinds of flips apart. @param {Flip} flip */
export function kindOf({ from, to }) {
  return JSON.stringify([from.effect, from.policy, from.rule, to.effect, to.policy, to.rule]);
}

/** Of one range: a report, and the one that goes on where it ended. @param {Report | null} first @param {Report} more @returns {Report} */
export function joined(first, more) {
  if (first === null) return more;
  const flips = new Map(first.flips.map((flip) => [kindOf(flip), flip]));
  for (const flip of more.flips) {
    const sameFlip = flips.get(kindOf(flip));
    flips.set(
      kindOf(flip),
      sameFlip === undefined
        ? flip
        : {
            ...sameFlip,
            count: sameFlip.count + flip.count,
            examples: sameFlip.examples.length > 0 ? sameFlip.examples : flip.examples,
          },
    );
  }
  return {
    ...more,
    evaluated: first.evaluated + more.evaluated,
    flipped: first.flipped + more.flipped,
    otherwise: first.otherwise + more.otherwise,
    erased: first.erased + more.erased,
    altered: first.altered + more.altered,
    unlisted: first.unlisted + more.unlisted,
    flips: [...flips.values()].sort((a, b) => b.count - a.count),
  };
}

/** Flips by the rule that would decide, the rule with the most first. @param {Flip[]} flips @returns {{ to: Outcome, count: number, flips: Flip[] }[]} */
export function byRule(flips) {
  const rules = new Map();
  for (const flip of flips) {
    const name = JSON.stringify([flip.to.policy, flip.to.rule, flip.to.effect]);
    const rule = rules.get(name) ?? { to: flip.to, count: 0, flips: [] };
    rule.count += flip.count;
    rule.flips.push(flip);
    rules.set(name, rule);
  }
  return [...rules.values()].sort((a, b) => b.count - a.count);
}

/** Whether something goes through that did not, or without a person. @param {Flip} flip */
export function loosens({ from, to }) {
  return STRICTNESS[to.effect] < STRICTNESS[from.effect];
}
