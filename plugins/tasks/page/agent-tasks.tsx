/** The card with the active tasks of an agent, and the line of a task on pages about entries. */
import {
  type Api,
  encodeSegment,
  type EntryOf,
  ErrorNotice,
  formatCounted,
  hasScope,
  LoadedCard,
  MarkedValue,
  type PartTexts,
  PersonLink,
  request,
  TimeLeft,
  useLoad,
  useSubmit,
} from "../../console/app/kit.ts";

type Task = Api["GET /v1/tasks"]["response"]["tasks"][number];

const TEXTS = {
  title: "Tasks in progress",
  help: "The operations of a task do not ask for approval. Other operations are decided as usual.",
  blocked: "The person who started this task may no longer grant all of it, so its operations ask for approval.",
  free: (members: readonly string[]) => `leaves free: ${members.length === 0 ? "nothing" : members.join(", ")}`,
} as const;

export function AgentTasks({ agent }: { agent: string }) {
  const loaded = useLoad(
    (signal) => request("GET /v1/tasks", { query: { agent_id: agent, active: true, limit: 100 }, signal }),
    [agent],
  );
  // Most agents have no task, and a card without content is noise.
  if (loaded.error === null && (loaded.data?.tasks ?? []).length === 0) return null;
  return (
    <LoadedCard id="tasks" title={TEXTS.title} what="tasks" loaded={loaded}>
      {({ tasks }) => (
        <>
          <p class="quiet">{TEXTS.help}</p>
          {tasks.map((task) => (
            <ActiveTask key={task.id} task={task} onEnded={loaded.reload} />
          ))}
        </>
      )}
    </LoadedCard>
  );
}

function ActiveTask({
  task: { id, status, title, until, started_by, grants },
  onEnded,
}: {
  task: Task;
  onEnded(): void;
}) {
  const { error, isBusy, submit } = useSubmit(async () => {
    await request("POST /v1/tasks/{id}/end", { path: [encodeSegment(id)], body: {} });
    onEnded();
  });
  return (
    <article>
      <p>
        <strong>
          <MarkedValue value={title} />
        </strong>{" "}
        by <PersonLink principal={started_by} />, <TimeLeft at={until} />
      </p>
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
      {hasScope("grants:write") ? (
        <form onSubmit={submit}>
          <ErrorNotice error={error} />
          <button type="submit" class="danger small" disabled={isBusy}>
            End the task
          </button>
        </form>
      ) : null}
    </article>
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
