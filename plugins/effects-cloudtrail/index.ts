/**
 * Reads AWS CloudTrail logs: log files (`{"Records": […]}`), arrays, and JSON Lines. If `credentials-aws` issued the
 * credential, the session name of the assumed role is the action's id.
 */
import { definePlugin, parseRfc3339, type SourceRecord } from "../../src/plugin.ts";
import {
  createEffectSources,
  effectSourceOptions,
  findActionId,
  findRecordString,
  readJsonRecords,
  readRecordString,
  SourceFault,
} from "../coverage/api.ts";

const Options = effectSourceOptions({});

const CANNOT_SEE = [
  "Calls of accounts, regions and services that the trail does not log.",
  "Data events, such as reads and writes of S3 objects, unless the trail selects them.",
  "Parameters that AWS omits from a record or shortens.",
  "Effects of calls that AWS reports as failed, such as with an internal error.",
];

export default definePlugin({
  name: "effects-cloudtrail",
  needs: ["coverage"],
  options: Options,
  effectSources: ({ sources }) =>
    createEffectSources(sources, () => ({ format: "aws-cloudtrail", cannot_see: CANNOT_SEE, read: readTrail })),
});

async function* readTrail(text: AsyncIterable<string>): AsyncIterable<SourceRecord> {
  for await (const { line, value } of readJsonRecords(text)) {
    const member = (pointer: string): string => readRecordString({ line, value }, pointer);
    const at = parseRfc3339(member("/eventTime"));
    if (at === null) throw new SourceFault(line, `the record's eventTime is not a valid time: ${member("/eventTime")}`);
    // A failed call has no effect.
    const isFailure = typeof value["errorCode"] === "string";
    const arn = findRecordString(value, "/userIdentity/arn");
    const actor = arn ?? findRecordString(value, "/userIdentity/invokedBy") ?? member("/userIdentity/type");
    // arn:aws:sts::123456789012:assumed-role/<role>/<session name>
    const session = arn === null ? null : (/:assumed-role\/[^/]+\/(.+)$/.exec(arn)?.[1] ?? null);
    yield {
      line,
      event: isFailure
        ? null
        : {
            id: member("/eventID"),
            at,
            event: `${member("/eventSource")}/${member("/eventName")}`,
            actor,
            action_id: session === null ? null : findActionId(session),
            record: value,
          },
    };
  }
}
