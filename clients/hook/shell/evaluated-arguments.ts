/**
 * Finds builtins that evaluate their arguments as variable names or expressions, which can assign variables and run
 * commands.
 */
import type { ShellArgument, UnclearReason } from "./shell-types.ts";

const NUMBER = /^[-+]?[0-9]*$/;
/**
 * Operators with a numeric operand. zsh evaluates the operand of `-t` as an expression; ksh does so for all these
 * operators.
 */
const NUMERIC_OPERATOR = /^-(t|eq|ne|lt|le|gt|ge)$/;
/** Matches a conversion of `printf` that parses a number or sets a variable (`%n`): all except %s, %b, %q and %c. */
const NUMERIC_CONVERSION = /%[-+ #0-9.']*[^-+ #0-9.'sbcq]/;
/** zsh replaces these escapes before it searches for conversions. */
const ESCAPED_PERCENT = /\\(0*45|x25|u0*25)/i;
/** Matches arguments that assign nothing, even if they are evaluated as an expression. */
const NO_ASSIGNMENT = /^(?!.*--)[\w .,:-]*$/s;

export function findEvaluationReason(name: string, args: readonly ShellArgument[]): UnclearReason | null {
  const words = args.map(({ text }) => text);
  if (args.some(({ text, isText, isSplitText, matches }) => /[$`]/.test(text) && !isText && !isSplitText && !matches))
    return "expansion";
  switch (name) {
    case "exit":
      return words.every((text) => NUMBER.test(text)) ? null : "expansion";
    case "printf":
      return printfReason(words);
    default:
      // The operand of `-v` and `-R` is a variable, whose subscript is evaluated.
      if (words.includes("-v") || words.includes("-R")) return "expansion";
      return words.some((text, i) => NUMERIC_OPERATOR.test(text) && !comparesNumbers(words, i)) ? "expansion" : null;
  }
}

function comparesNumbers(words: readonly string[], at: number): boolean {
  const right = words[at + 1] ?? "";
  const left = words[at] === "-t" ? "" : (words[at - 1] ?? "");
  return (NUMBER.test(right) || right === "]") && NUMBER.test(left);
}

function printfReason([format = "", ...values]: readonly string[]): UnclearReason | null {
  if (format.startsWith("-")) return "assignment";
  const plain = format.replaceAll("%%", "");
  if (/%[^A-Za-z%]*[hjlqtzL]*n/.test(plain)) return "assignment";
  if (ESCAPED_PERCENT.test(format) && values.length > 0) return "assignment";
  const conversions = plain.match(/%[-+ #0-9.']*[^-+ #0-9.']/g) ?? [];
  // The conversions are repeated for more values. "*" has a value of its own.
  const isNumeric = (at: number): boolean =>
    plain.includes("*") || NUMERIC_CONVERSION.test(conversions[at % Math.max(conversions.length, 1)] ?? "");
  return values.every((text, at) => !isNumeric(at) || NO_ASSIGNMENT.test(text)) ? null : "assignment";
}
