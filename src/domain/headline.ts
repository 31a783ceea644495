/**
 * Ranks the parameters of a request for one-line summaries: first the parameters in `shown_first`, then amounts. If
 * `shown_first` is empty, an agent can add a parameter whose name ranks before the name of the real amount.
 */
import { unescapePointerToken } from "./json-pointer.ts";
import { clipText } from "./text.ts";

interface Described {
  params: Record<string, unknown>;
  /**
   * JSON pointers of the members to display first: members in `approval.show` and in the preview, and members that
   * conditions and limits read. See `presentRequest`.
   */
  shown_first?: readonly string[] | undefined;
}

interface RankedParameter {
  name: string;
  /** Whether it is in `shown_first`. */
  isNamed: boolean;
  isAmount: boolean;
}

const ROOT = "/params/";
/** Words in names of amounts, the clearest first. */
const AMOUNTS = ["amount", "total", "sum", "price", "cost"];
/** Matches the code of a currency, and the name of a unit. */
const [CURRENCY, UNIT] = [/^[A-Za-z]{3}$/, /^[\p{L}%°²³/]{1,12}$/u];
/** Maximum length of an amount that is text, such as "120.50 EUR". */
const MAX_AMOUNT = 40;
/** Maximum length of the name and of the value of a headline. */
const MAX_LENGTH = 80;

/**
 * Returns the parameter that best distinguishes an action from similar actions: the first one, in the order of
 * `rankParameters`, that is in `shown_first` or whose value is a string, number or boolean. Returns null if there is
 * none.
 * @example
 * findHeadline({ params: { paths: ["a"], amount: 120, currency: "EUR" } }); // { name: "amount", value: "120 EUR" }
 */
export function findHeadline(action: Described): { name: string; value: string } | null {
  for (const { name, isNamed } of rankParameters(action)) {
    const value = action.params[name];
    // Return a parameter of `shown_first` even if it is an object, because an agent could have added the parameters
    // after it.
    if (isNamed && typeof value === "object" && value !== null)
      return { name: clipText(name, MAX_LENGTH), value: clipText(JSON.stringify(value), MAX_LENGTH) };
    if ((typeof value === "string" && value !== "") || typeof value === "number" || typeof value === "boolean")
      return { name: clipText(name, MAX_LENGTH), value: withUnit(action.params, name).slice(0, MAX_LENGTH) };
  }
  return null;
}

function withUnit(params: Record<string, unknown>, name: string): string {
  const unit = findUnit(params, name);
  return unit === null ? String(params[name]) : `${String(params[name])} ${unit}`;
}

/**
 * Returns the currency or unit of an amount, from another member of the same object. For `refund_amount`, this is
 * `refund_currency`, `currency`, `refund_unit` or `unit`. Returns null if the member is not an amount, or if no such
 * member exists.
 * @example
 * findUnit({ amount: 120, currency: "EUR" }, "amount"); // "EUR"
 */
export function findUnit(members: Readonly<Record<string, unknown>>, name: string): string | null {
  const words = splitName(name);
  const isAmount = words.some((word) => AMOUNTS.includes(word) || word === "value" || word === "quantity");
  const value = members[name];
  // A text such as "120 EUR" contains its unit.
  if (!isAmount || !(typeof value === "number" || (typeof value === "string" && /^-?[\d.,]+$/.test(value))))
    return null;
  const prefix = words.slice(0, -1).join(" ");
  for (const [kind, pattern] of [
    ["currency", CURRENCY],
    ["unit", UNIT],
  ] as const)
    for (const candidate of prefix === "" ? [kind] : [`${prefix} ${kind}`, kind])
      for (const [other, unit] of Object.entries(members))
        if (splitName(other).join(" ") === candidate && typeof unit === "string" && pattern.test(unit)) return unit;
  return null;
}

/** Returns the words of a name, in lower case: `refundAmount` and `refund_amount` have the same. */
const splitName = (name: string): string[] =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== "");

/**
 * Returns the parameters in the order of a summary: first `shown_first`, then amounts, then the others in the order of
 * the request.
 * @example
 * rankParameters({ params: { paths: ["a"], amount: 120 } })[0]; // { name: "amount", isNamed: false, isAmount: true }
 */
export function rankParameters({ params, shown_first: first = [] }: Described): RankedParameter[] {
  const named = first.flatMap((pointer) => parameterOf(pointer) ?? []);
  return Object.entries(params)
    .map(([name, value]) => {
      const index = named.indexOf(name);
      const amount = isAmountValue(value) ? amountRank(name) : Infinity;
      return {
        name,
        isNamed: index >= 0,
        isAmount: amount < Infinity,
        rank: index >= 0 ? index : named.length + amount,
      };
    })
    .sort((a, b) => (a.rank === b.rank ? 0 : a.rank - b.rank))
    .map(({ name, isNamed, isAmount }) => ({ name, isNamed, isAmount }));
}

/**
 * Returns the rank of a name among names of amounts: `amount` is before `total`, and both are before `refund_amount`.
 * Returns Infinity if it is not the name of an amount.
 */
function amountRank(name: string): number {
  const words = splitName(name);
  const index = AMOUNTS.findIndex((amount) => words.includes(amount));
  if (index < 0) return Infinity;
  return words.length === 1 ? index : index + AMOUNTS.length;
}

function isAmountValue(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && value.length <= MAX_AMOUNT && /\d/.test(value));
}

/** Returns the parameter that contains the member at a pointer; null for a member of the context. */
function parameterOf(pointer: string): string | null {
  if (!pointer.startsWith(ROOT)) return null;
  const [token = ""] = pointer.slice(ROOT.length).split("/");
  return unescapePointerToken(token);
}
