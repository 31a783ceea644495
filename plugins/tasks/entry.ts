/** The ledger entry of a task. */
import { ActorSchema, closed, orNull, textSchema, timeSchema } from "../../src/core.ts";
import { defineRecord, type RecordOf, Type } from "../../src/plugin.ts";

/** Why a task can end with an entry. It also ends without an entry when its time is over. */
export const CAUSES = ["person", "rejection", "flag", "stop", "suspension", "deactivation"] as const;

/** A person started a task of an agent, or the task ended. The entries of its grants, or of their ends, precede this one. */
export const TASK_ENTRY = defineRecord("task", {
  at: timeSchema("Time of the entry."),
  change: Type.Union([Type.Literal("started"), Type.Literal("ended")], { description: "The change." }),
  agent_id: textSchema("The agent that works on the task."),
  task: Type.Object(
    {
      id: Type.String(),
      title: textSchema("What the agent is to do."),
      template: orNull(textSchema("Name of the template; null if the request listed the operations.")),
      until: timeSchema("When the task ends. All its grants end then."),
      grants: Type.Array(Type.String(), { description: "The grants of the task." }),
    },
    { description: "The task as it was started.", ...closed },
  ),
  cause: orNull(
    Type.Union(
      CAUSES.map((cause) => Type.Literal(cause)),
      { description: "Why the task ended; null when it is started." },
    ),
  ),
  related_action: orNull(textSchema("The action that was rejected or flagged.")),
  comment: orNull(textSchema("Comment of the person who ended it, or the reason of the stop.")),
  by: ActorSchema,
});
export type TaskEntry = RecordOf<typeof TASK_ENTRY>;

declare module "../../src/domain/entries.ts" {
  interface FeatureEntries {
    task: TaskEntry;
  }
}
