/** Reads the pgaudit lines in the log of a Postgres server, as `csvlog` or `jsonlog`. Skips other lines. */
import { definePlugin, type JsonObject, parseRfc3339, type SourceRecord, Type } from "../../src/plugin.ts";
import {
  createEffectSources,
  effectSourceOptions,
  findActionId,
  parseCsvLine,
  readCsvRecords,
  readJsonRecords,
  SourceFault,
} from "../coverage/api.ts";

const Options = effectSourceOptions({
  log_format: Type.Union([Type.Literal("csvlog"), Type.Literal("jsonlog")], {
    default: "csvlog",
    description: "Format of the log: the value of the server's `log_destination`.",
  }),
});

const CANNOT_SEE = [
  "Statement classes and relations that pgaudit.log and pgaudit.role do not select.",
  "Writes in the WITH clause of another statement, and all tables after the first one, unless pgaudit.log_relation is on or pgaudit.role selects the tables.",
  "Updates and deletes of a MERGE that can also insert: pgaudit records such a MERGE as INSERT.",
  "Rows that foreign keys delete or change (ON DELETE CASCADE), and functions written in C.",
  "Whether a statement failed or its transaction was rolled back: pgaudit records it before it runs.",
  "What a superuser did after changing pgaudit's settings.",
];

export default definePlugin({
  name: "effects-pgaudit",
  needs: ["coverage"],
  options: Options,
  effectSources: ({ sources }) =>
    createEffectSources(sources, ({ log_format: format }) => ({
      format: `pgaudit-${format}`,
      cannot_see: CANNOT_SEE,
      read: (text) => readAuditEntries(format === "csvlog" ? readCsvLog(text) : readJsonLog(text)),
    })),
});

/** The members of a log line that this plugin reads, with their names in `jsonlog`. */
interface LogLine {
  line: number;
  timestamp: string;
  user: string;
  dbname: string;
  session_id: string;
  application_name: string;
  message: string;
  state_code: string;
  /** The statement and the place in a function that caused the message. pgaudit hides both. */
  context: string;
  query: string;
  /** Source file, if the server's `log_error_verbosity` is `verbose`. */
  location: string;
}

/** Columns of `csvlog`. Newer servers append more columns. */
const COLUMNS = {
  timestamp: 0,
  user: 1,
  dbname: 2,
  session_id: 5,
  state_code: 12,
  message: 13,
  context: 18,
  query: 19,
  location: 21,
  application_name: 22,
} as const;

async function* readCsvLog(text: AsyncIterable<string>): AsyncIterable<LogLine> {
  for await (const { line, fields } of readCsvRecords(text)) {
    if (fields.length <= COLUMNS.application_name)
      throw new SourceFault(line, `a csvlog record has at least 23 columns; got ${fields.length}`);
    const column = (name: keyof typeof COLUMNS): string => fields[COLUMNS[name]] as string;
    yield {
      line,
      timestamp: column("timestamp"),
      user: column("user"),
      dbname: column("dbname"),
      session_id: column("session_id"),
      application_name: column("application_name"),
      message: column("message"),
      state_code: column("state_code"),
      context: column("context"),
      query: column("query"),
      location: column("location"),
    };
  }
}

async function* readJsonLog(text: AsyncIterable<string>): AsyncIterable<LogLine> {
  for await (const { line, value } of readJsonRecords(text)) {
    const member = (name: string): string => (typeof value[name] === "string" ? value[name] : "");
    yield {
      line,
      timestamp: member("timestamp"),
      user: member("user"),
      dbname: member("dbname"),
      session_id: member("session_id"),
      application_name: member("application_name"),
      message: member("message"),
      state_code: member("state_code"),
      context: member("context"),
      query: member("statement"),
      location: member("file_name"),
    };
  }
}

const PREFIX = "AUDIT: ";
/** Text that pgaudit writes in place of a statement's text after its first line, with `pgaudit.log_statement_once`. */
const PREVIOUSLY_LOGGED = "<previously logged>";

async function* readAuditEntries(lines: AsyncIterable<LogLine>): AsyncIterable<SourceRecord> {
  /** The newest statement of each session. */
  const newest = new Map<string, { id: string; statement: string; parameter: string | null }>();
  for await (const line of lines) {
    if (!line.message.startsWith(PREFIX)) continue;
    // The audited user can write such a message, too, with RAISE in a function.
    if (!isFromPgaudit(line)) {
      yield { line: line.line, event: null };
      continue;
    }
    const fields = parseCsvLine(line.message.slice(PREFIX.length));
    if (fields === null || fields.length < 8 || !/^(?:SESSION|OBJECT)$/.test(fields[0] as string))
      throw new SourceFault(line.line, "the message is not a pgaudit entry");
    const [, statementId, substatementId, , , , , text = "", parameter = null] = fields;
    const id = `${line.session_id}/${statementId}/${substatementId}`;
    const earlier = newest.get(line.session_id);
    const statement = text === PREVIOUSLY_LOGGED && earlier?.id === id ? earlier : { id, statement: text, parameter };
    newest.set(line.session_id, statement);
    yield { line: line.line, event: toEvent(line, fields, statement) };
  }
}

/**
 * Returns true if pgaudit wrote the line, and not a function of the audited user: pgaudit hides the context and the
 * statement, which Postgres adds to all messages of functions.
 */
function isFromPgaudit({ state_code, context, query, location }: LogLine): boolean {
  return (
    context === "" &&
    query === "" &&
    /^(?:00000)?$/.test(state_code) &&
    (location === "" || /(?:^|[\s/])pgaudit\.c(?::|$)/.test(location))
  );
}

function toEvent(
  line: LogLine,
  fields: string[],
  { id, statement, parameter }: { id: string; statement: string; parameter: string | null },
): NonNullable<SourceRecord["event"]> {
  const [, , , statementClass, command, objectType, objectName] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  // Postgres writes `2026-01-31 12:00:00.000 UTC`. The setting log_timezone determines the time zone.
  const time = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) (?:UTC|GMT)$/.exec(line.timestamp);
  const at = time === null ? null : parseRfc3339(`${time[1]}T${time[2]}Z`);
  if (at === null)
    throw new SourceFault(
      line.line,
      `the time ${JSON.stringify(line.timestamp)} is not in UTC; set log_timezone = 'UTC' on the server`,
    );
  if (line.session_id === "") throw new SourceFault(line.line, "the record has no session id");
  const record: JsonObject = {
    user: line.user,
    dbname: line.dbname,
    session_id: line.session_id,
    application_name: line.application_name,
    class: statementClass,
    command,
    object_type: objectType,
    object_name: objectName,
    statement,
    parameter,
  };
  return {
    // A statement has one line for each table, and for each command of its WITH clause.
    id: `${id}/${statementClass}/${command}/${objectType}/${objectName}`,
    part_of: id,
    at,
    event: `${statementClass}/${command}`,
    // A background process has no user, but each effect of a coverage statement needs an actor.
    actor: line.user === "" ? "unknown" : line.user,
    // Prefer the user: the service chooses the name of a login role, but the agent chooses the application name.
    action_id: findRoleAction(line.user) ?? findActionId(line.application_name),
    record,
  };
}

/**
 * Returns the action that a login role was created for, from the name that `credentials-postgres` gives the role; null
 * for other roles.
 */
function findRoleAction(user: string): string | null {
  const match = /^assent_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})_[0-9a-f]{12}$/.exec(user);
  return match === null ? null : match.slice(1).join("-");
}
