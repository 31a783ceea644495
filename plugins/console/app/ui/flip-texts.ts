/** Texts of reports about flips. */
import { formatCounted } from "./format.ts";

const number = (count: number): string => count.toLocaleString("en");

export const FLIP_TEXTS = {
  range: "Range",
  last: (range: string) => `last ${range}`,
  noFlips: (evaluated: number) => `None of ${number(evaluated)} past decisions would flip.`,
  flips: (flipped: number, evaluated: number) =>
    `${number(flipped)} of ${number(evaluated)} past decisions would flip.`,
  otherwise: (count: number) =>
    count === 0 ? "" : ` ${number(count)} would have the same outcome, by a different rule or with different terms.`,
  erased: (count: number) =>
    count === 0 ? "" : ` ${number(count)} more cannot be replayed: their requests were erased.`,
  unrecorded: (count: number) =>
    count === 0
      ? ""
      : ` ${number(count)} more cannot be replayed, because they did not read the past actions and facts that the candidate reads.`,
  altered: (count: number) =>
    count === 0 ? "" : ` ${number(count)} more cannot be read: their rows were altered; run assent audit.`,
  currentUnknown: "What the active policies would decide is unknown:",
  flipCount: (count: number) => formatCounted(count, "flip"),
  lessStrict: "less strict",
  already: "also with the active policies",
  more: (count: number) => `and ${number(count)} more`,
  unlisted: (count: number) => `${number(count)} more flips are of kinds that are not listed.`,
  noRule: "no rule",
  partial: (evaluated: number) => `These are the ${number(evaluated)} newest decisions, not the whole range.`,
  goOn: "Continue with older ones",
};
