/** The card with the active tasks of an agent, and the line of a task on pages about entries. */
import {
  type Api,
  encodeSegment,
  type EntryOf,
  formatCounted,
  MarkedValue,
  type PartTexts,
  Permission,
  PermissionsCard,
  PersonLink,
  request,
  TimeLeft,
} from "../../console/app/kit.ts";

type Task = Api["GET /v1/tasks"]["response"]["tasks"][number];

const TEXTS = {
  title: "Tasks in progress",
  end: "End the task",
  help: "The operations of a task do not ask for approval. Other operations are decided as usual.",
  blocked: "The person who started this task may no longer grant all of it, so its operations ask for approval.",
  free: (members: readonly string[]) => `leaves free: ${members.length === 0 ? "nothing" : members.join(", ")}`,
} as const;

export function AgentTasks({ agent }: { agent: string }) {
  return (
    <PermissionsCard id="tasks" title={TEXTS.title} what="tasks" help={TEXTS.help} agent={agent} load={readTasks}>
      {(tasks, reload) => tasks.map((task) => <ActiveTask key={task.id} task={task} onEnded={reload} />)}
    </PermissionsCard>
  );
}

async function readTasks(agent: string, signal: AbortSignal): Promise<Task[]> {
  return (await request("GET /v1/tasks", { query: { agent_id: agent, active: true, limit: 100 }, signal })).tasks;
}

function ActiveTask({ task, onEnded }: { task: Task; onEnded(): void }) {
  const { id, status, title, until, started_by, grants } = task;
  const end = async (): Promise<void> => {
    await request("POST /v1/tasks/{id}/end", { path: [encodeSegment(id)], body: {} });
    onEnded();
  };
  return (
    <Permission
      title={
        <>
          <strong>
            <MarkedValue value={title} />
          </strong>{" "}
          by <PersonLink principal={started_by} />, <TimeLeft at={until} />
        </>
      }
      scope="grants:write"
      label={TEXTS.end}
      end={end}
    >
      {status === "blocked" ? <p class="notice">{TEXTS.blocked}</p> : null}
      <ul>
        {grants.map((grant) => (
          <li key={grant.id}>
            <a href={`#/actions?grant_id=${encodeSegment(grant.id)}`}>
              <MarkedValue value={`${grant.tool} ${grant.operation}`} />
            </a>
            , {formatCounted(grant.count, "time")},{" "}
            <code>
              <MarkedValue value={grant.scope ?? "every request"} />
            </code>{" "}
            <span class="quiet">
              <MarkedValue value={TEXTS.free(grant.free)} />
            </span>
          </li>
        ))}
      </ul>
    </Permission>
  );
}

const describeTask = (entry: Record<string, unknown>) => {
  const { task, change, agent_id, cause } = entry as unknown as EntryOf<"task">;
  const end = cause === null ? "" : ` by ${cause}`;
  return <MarkedValue value={`task ${change}${end}: ${task.title}, of ${agent_id}`} />;
};

/** The timeline adds what happened and by whom. */
const nameTask = (entry: Record<string, unknown>) => {
  const { task, agent_id } = entry as unknown as EntryOf<"task">;
  return <MarkedValue value={`“${task.title}” of ${agent_id}`} />;
};

export const texts: PartTexts = { entries: { task: { summarize: describeTask, describe: nameTask } } };
