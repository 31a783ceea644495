/** Schemas of tasks, their options and their errors. */
import { closed, countSchema, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { errorKind, PAGE_QUERY, type Static, Type } from "../../src/plugin.ts";
import { GrantScopeTerms, TaskTitle } from "../grants/api.ts";
import { CAUSES } from "./entry.ts";

export const ERRORS = {
  notFound: errorKind("TASK_NOT_FOUND", 404, "No such task"),
  ended: errorKind("TASK_ENDED", 409, "The task has ended"),
  tooMany: errorKind("TOO_MANY_TASKS", 429, "Too many open tasks"),
};

const Duration = (description: string) => Type.String({ minLength: 1, maxLength: 40, description });
const Name = (description: string) => Type.String({ minLength: 1, maxLength: 256, format: "name", description });
export const MAX_OPERATIONS = 20;
const Operations = Type.Array(GrantScopeTerms, {
  minItems: 1,
  maxItems: MAX_OPERATIONS,
  description: "What the agent may do without another approval during the task: one grant each, until the task ends.",
});

/** The options of tasks: the key `tasks` of `assent.yaml`. */
export const TaskOptions = Type.Object(
  {
    max_hours: Type.Integer({
      default: 12,
      minimum: 1,
      maximum: 168,
      description: "Longest time of a task, in hours. The rules can allow less (`approval.grants`).",
    }),
    templates: Type.Array(
      Type.Object(
        {
          name: Type.String({ pattern: "^[a-z0-9][a-z0-9-]{0,63}$", description: "Name in requests." }),
          for: Type.String({
            pattern: "^(?=[1-9])(\\d{1,3}h)?(\\d{1,5}m)?$",
            description: "Longest time, and the default, such as 30m or 2h.",
          }),
          operations: Operations,
        },
        closed,
      ),
      { default: [], maxItems: 100, description: "Tasks that people start by name." },
    ),
  },
  { default: {}, additionalProperties: false, description: "Tasks, in which an agent's listed operations do not ask." },
);
export type TaskOptions = Static<typeof TaskOptions>;

export const TaskBody = Type.Object(
  {
    agent_id: Name("Agent that works on the task."),
    title: TaskTitle("What the agent is to do."),
    for: Type.Optional(
      Duration("Time from now to the end of the task, such as 30m or 2h. Default: that of the template."),
    ),
    template: Type.Optional(Type.String({ maxLength: 64, description: "Name of a template of the configuration." })),
    operations: Type.Optional(Operations),
    plan: Type.Optional(
      Type.Object(
        {
          id: Type.String({ maxLength: 64, description: "A plan of the agent that this key may see." }),
          digest: Type.String({
            maxLength: 64,
            description: "`digest` of the plan as it was displayed. If the plan has changed since, no task starts.",
          }),
          free: Type.Optional(
            Type.Array(Type.String({ maxLength: 256 }), {
              maxItems: 20,
              description: "Members that may have any value but null, such as `params.body`. Default: none.",
            }),
          ),
          times: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 1000,
              default: 1,
              description: "How often the agent may do each action of the plan.",
            }),
          ),
        },
        {
          ...closed,
          description:
            "Covers requests with the same members as the actions of the plan that required approval and have not been denied or cancelled. It does not approve these actions.",
        },
      ),
    ),
  },
  {
    ...closed,
    examples: [
      {
        agent_id: "release-bot",
        title: "release 2.4",
        for: "2h",
        operations: [{ tool: "ci", operation: "deploy", count: 20, scope: 'params.repo == "web"' }],
      },
    ],
  },
);
export type TaskBody = Static<typeof TaskBody>;

export const EndBody = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 500, description: "Recorded in the ledger." })) },
  closed,
);

export const TaskParams = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64, description: "Task." }) },
  closed,
);

export const TaskQuery = Type.Object(
  {
    active: Type.Optional(
      Type.Boolean({ description: "true lists only tasks that have not ended; false, only ended tasks." }),
    ),
    agent_id: Type.Optional(Type.String({ maxLength: 256 })),
    limit: PAGE_QUERY.limit,
    cursor: PAGE_QUERY.cursor,
  },
  closed,
);

export const TaskRecord = Type.Object(
  {
    id: Type.String(),
    status: Type.Union([Type.Literal("active"), Type.Literal("blocked"), Type.Literal("ended")], {
      description:
        "blocked: the person who started it may no longer grant one of its operations, so at least this one asks again. It is active again if the person regains the rights before the end.",
    }),
    agent_id: Type.String(),
    title: Type.String(),
    template: orNull(textSchema("Name of the template; null if the request listed the operations.")),
    until: timeSchema("When the task ends."),
    started_by: textSchema("Principal of the person who started it."),
    started_at: timeSchema("When it was started."),
    grants: Type.Array(
      Type.Object(
        {
          id: textSchema("The grant. `GET /v1/grants/{id}` reads its uses."),
          tool: Type.String(),
          operation: Type.String(),
          scope: orNull(textSchema("CEL; null covers every request.")),
          free: Type.Array(Type.String(), {
            description:
              "What the scope leaves free: members, and `params.*` or `context.*` if requests may have members that the scope does not name.",
          }),
          count: countSchema("Maximum number of uses."),
          open: Type.Boolean({
            description:
              "false if the grant has ended, by itself or with the task. `status` of the grant says whether the rights of the person who started the task hold it back.",
          }),
        },
        closed,
      ),
      { description: "What the task covers." },
    ),
    ended: orNull(
      Type.Object(
        {
          cause: Type.Union(
            [...CAUSES, "time" as const].map((cause) => Type.Literal(cause)),
            { description: "rejection: a person rejected an action of the agent. flag: someone flagged a use." },
          ),
          at: timeSchema("When the task ended."),
          by: orNull(textSchema("Principal; null if its time was over.")),
          action_id: orNull(
            textSchema("The action that was rejected or flagged; also null if this key may not see it."),
          ),
          comment: orNull(textSchema("Comment of the person who ended it, or the reason of the stop.")),
        },
        closed,
      ),
    ),
  },
  { title: "Task", ...closed },
);
export type TaskRecord = Static<typeof TaskRecord>;

export const TaskList = Type.Object({ tasks: Type.Array(TaskRecord), next_cursor: orNull(Type.String()) }, closed);
