/**
 * Lets the service inspect what a tool returned, before the agent reads it. Only for hosts in which a hook can replace
 * the output. Withholds the output if the service does not respond.
 */
import { AssentError, toSingleLine, type Assent } from "../typescript/index.ts";
import { isObject } from "./payload.ts";

/** What the agent reads instead of an output. */
export interface ReplacedOutput {
  /** Has the same members and types as the output, because a host can ignore any other replacement. */
  output: unknown;
  /** Why the output is withheld; null if it is redacted. */
  reason: string | null;
}

/** Members in which hosts put the text that the model reads. */
const TEXT_MEMBERS = new Set(["content", "llmContent", "output", "result", "stdout", "text"]);

/**
 * Returns what replaces the output; null to pass the output on.
 * @param client creates the client; can throw
 * @param output null if it is too large
 */
export async function inspectToolOutput(
  client: () => Assent,
  id: string,
  output: unknown,
): Promise<ReplacedOutput | null> {
  const withhold = (why: string): ReplacedOutput => {
    const reason = `The call was made, and its output is withheld: ${toSingleLine(why)} (action ${id}). Do not repeat the call to get the output, and do not get it in another way; tell the user.`;
    return { output: blankOutput(output, reason), reason };
  };
  if (output === null || output === undefined) return withhold("it is too large to be inspected");
  try {
    const { verdict, output: redacted, reason } = await client().inspect(id, output);
    if (verdict === "allow") return null;
    if (verdict === "redact" && hasSameShape(output, redacted)) return { output: redacted, reason: null };
    return withhold(reason ?? "a rule withholds it");
  } catch (error) {
    return withhold(
      error instanceof AssentError
        ? `the service gave no verdict (${error.code})`
        : "it could not be sent to the service",
    );
  }
}

function hasSameShape(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) || Array.isArray(other))
    return (
      Array.isArray(one) &&
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, i) => hasSameShape(item, other[i]))
    );
  if (!isObject(one) || !isObject(other)) return one === null ? other === null : typeof one === typeof other;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && hasSameShape(one[name], other[name]))
  );
}

/** Returns an output with the same members that contains only `text`. */
function blankOutput(output: unknown, text: string): unknown {
  let isPlaced = false;
  const blank = (value: unknown, name: string): unknown => {
    if (typeof value === "string") {
      // The kind of a content item, which the host needs.
      if (name === "type" && /^[a-z_]{1,32}$/.test(value)) return value;
      if (isPlaced || !TEXT_MEMBERS.has(name)) return "";
      isPlaced = true;
      return text;
    }
    if (typeof value === "number") return 0;
    if (Array.isArray(value)) {
      const item = (value as unknown[]).find((each) => isObject(each) && each["type"] === "text");
      return item === undefined ? [] : [blank(item, "")];
    }
    if (!isObject(value)) return value;
    // `structuredContent` comes from the server, so the names of its members are part of the output.
    if (name === "structuredContent" || name === "_meta") return {};
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, blank(member, key)]));
  };
  return isObject(output) || Array.isArray(output) ? blank(output, "") : text;
}
