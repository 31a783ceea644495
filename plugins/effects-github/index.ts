/**
 * Reads the audit log of a GitHub organization or enterprise, either exported as an array or streamed as JSON Lines.
 */
import { definePlugin, parseRfc3339, type SourceRecord, Type } from "../../src/plugin.ts";
import {
  createEffectSources,
  effectSourceOptions,
  findActionId,
  findRecordString,
  readJsonRecords,
  readRecordString,
  SourceFault,
} from "../coverage/api.ts";

const Options = effectSourceOptions({
  action_id_members: Type.Array(Type.String({ pattern: "^/", maxLength: 500, description: "a JSON pointer" }), {
    default: ["/user_agent"],
    maxItems: 20,
    description: "Members that can contain the action's id, such as a commit message with a trailer.",
  }),
});

const CANNOT_SEE = [
  "Git events (clone, fetch and push) after 7 days, and all events after 180 days.",
  "API requests, unless the log is streamed with API request events.",
  "The content of pushes: the log names the repository, not the commits.",
  "Who chose the id of an action: user agents and commit messages are texts of the agent.",
];

export default definePlugin({
  name: "effects-github",
  needs: ["coverage"],
  options: Options,
  effectSources: ({ sources }) =>
    createEffectSources(sources, ({ action_id_members: members }) => ({
      format: "github-audit-log",
      cannot_see: CANNOT_SEE,
      read: (text) => readAuditLog(text, members),
    })),
});

async function* readAuditLog(
  text: AsyncIterable<string>,
  actionIdMembers: readonly string[],
): AsyncIterable<SourceRecord> {
  for await (const record of readJsonRecords(text)) {
    const { line, value } = record;
    const stamp = value["@timestamp"] ?? value["created_at"];
    const at = typeof stamp === "number" ? stamp : typeof stamp === "string" ? parseRfc3339(stamp) : null;
    if (at === null || !Number.isSafeInteger(at))
      throw new SourceFault(line, `the record's @timestamp is not a valid time: ${JSON.stringify(stamp ?? null)}`);
    const attached = actionIdMembers
      .map((pointer) => findActionId(findRecordString(value, pointer) ?? ""))
      .find((id) => id !== null);
    const status = Number(value["status_code"] ?? 0);
    // A request that GitHub refused has no effect, and so confirms no success.
    if (status >= 400 && status < 500) {
      yield { line, event: null };
      continue;
    }
    yield {
      line,
      event: {
        id: readRecordString(record, "/_document_id"),
        at,
        event: readRecordString(record, "/action"),
        actor: findRecordString(value, "/actor") ?? "unknown",
        action_id: attached ?? null,
        record: value,
      },
    };
  }
}
