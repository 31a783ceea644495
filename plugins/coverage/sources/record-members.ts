/** Reads members of a log's records. */
import { isJsonObject, type JsonObject, type JsonValue, unescapePointerToken } from "../../../src/core.ts";
import { SourceFault } from "./source-fault.ts";

interface LogRecord {
  readonly line: number;
  readonly value: JsonObject;
}

/**
 * Returns the string at a pointer. Throws `SourceFault` if there is no string.
 * @example
 * readRecordString(record, "/eventID");
 */
export function readRecordString({ line, value }: LogRecord, pointer: string): string {
  const found = readPointer(value, pointer);
  if (typeof found === "string" && found !== "") return found;
  throw new SourceFault(line, `the record has no string at ${pointer}`);
}

/**
 * Returns the string at a pointer; null if there is no string.
 * @example
 * findRecordString(record.value, "/userIdentity/arn");
 */
export function findRecordString(value: JsonObject, pointer: string): string | null {
  const found = readPointer(value, pointer);
  return typeof found === "string" && found !== "" ? found : null;
}

/**
 * Returns the action id that a string contains as a word; null unless the string contains exactly one id.
 * @example
 * findActionId("Assent-Action: 019346a0-0000-7000-8000-000000000000"); // "019346a0-0000-7000-8000-000000000000"
 */
export function findActionId(text: string): string | null {
  const ids = new Set(
    text.match(/(?<![0-9a-f-])[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(?![0-9a-f-])/g),
  );
  const [id] = ids;
  return ids.size === 1 ? (id as string) : null;
}

/** Returns the value at an RFC 6901 pointer; undefined if there is no value. */
export function readPointer(value: JsonValue, pointer: string): JsonValue | undefined {
  let current: JsonValue | undefined = value;
  for (const segment of pointer.split("/").slice(1)) {
    const name = unescapePointerToken(segment);
    if (Array.isArray(current)) current = /^(?:0|[1-9]\d*)$/.test(name) ? current[Number(name)] : undefined;
    else if (isJsonObject(current) && Object.hasOwn(current, name)) current = current[name];
    else return undefined;
  }
  return current;
}
