/** Starts a task: with a name where a voter adds a grant to an approval, or from the actions of a plan. */
import { useId, useState } from "preact/hooks";
import {
  type Action,
  Dialog,
  encodeSegment,
  ErrorNotice,
  Field,
  FormButtons,
  MarkedValue,
  type Places,
  readFormValues,
  request,
  useSubmit,
} from "../../console/app/kit.ts";

const TEXTS = {
  label: "Only for a task",
  placeholder: "such as release 2.4",
  help: "With a name, the approval starts a task of the agent. It ends at its time, when someone ends it, and at any rejection, flag or stop of the agent.",
  start: "Start a task from this plan…",
  startTitle: "Start a task",
  startHelp:
    "During the task, the agent needs no further approval for the requests of this plan that require one. The task does not approve the plan itself.",
  started: "The task has started.",
  openAgent: "Tasks of the agent",
  title: "Task of the agent",
  time: "Duration, such as 30m or 2h",
  times: "Maximum uses of each action",
  free: "Parameters that can have any value",
  freeHelp: "All other parameters must have the values of the plan.",
  submit: "Start the task",
  cancel: "Not now",
} as const;
const MAX_TITLE = 100;

export function NameTask({ onName }: Places["grant-offer"]) {
  const help = useId();
  return (
    <>
      <label>
        {TEXTS.label}{" "}
        <input
          maxLength={MAX_TITLE}
          placeholder={TEXTS.placeholder}
          aria-describedby={help}
          onInput={({ currentTarget: { value } }) => onName(value.trim() === "" ? null : value.trim())}
        />
      </label>
      <p id={help} class="quiet">
        {TEXTS.help}
      </p>
    </>
  );
}

/** Renders the button that starts a task, while an action of the plan is pending. */
export function StartFromPlan({ plan: { id, digest, agent_id, actions } }: Places["plan"]) {
  const [state, setState] = useState<"idle" | "asking" | "started">("idle");
  const pending = actions.filter(({ status }) => status === "pending_approval");
  if (state === "started")
    return (
      <p role="status">
        {TEXTS.started} <a href={`#/agents/${encodeSegment(agent_id)}`}>{TEXTS.openAgent}</a>
      </p>
    );
  if (pending.length === 0) return null;
  return (
    <p class="row">
      <button type="button" onClick={() => setState("asking")}>
        {TEXTS.start}
      </button>
      {state === "asking" ? (
        <PlanTask id={id} digest={digest} agent={agent_id} actions={pending} onClose={(next) => setState(next)} />
      ) : null}
    </p>
  );
}

interface PlanTaskProps {
  id: string;
  /** Of the actions that the page displays. */
  digest: string;
  agent: string;
  actions: readonly Action[];
  onClose(next: "idle" | "started"): void;
}

function PlanTask({ id, digest, agent, actions, onClose }: PlanTaskProps) {
  const [free, setFree] = useState<readonly string[]>([]);
  const members = [...new Set(actions.flatMap(({ params }) => Object.keys(params).filter(isPlainName)))];
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { title = "", for: duration = "", times = "" } = readFormValues(form);
    const plan = { id, digest, free: [...free], times: Number(times) };
    await request("POST /v1/tasks", { body: { agent_id: agent, title, for: duration, plan } });
    onClose("started");
  });
  const toggle = (member: string): void =>
    setFree(free.includes(member) ? free.filter((each) => each !== member) : [...free, member]);
  return (
    <Dialog title={TEXTS.startTitle} onClose={() => onClose("idle")}>
      <form onSubmit={submit}>
        <p>{TEXTS.startHelp}</p>
        <Field name="title" label={TEXTS.title} maxLength={MAX_TITLE} required />
        <Field name="for" label={TEXTS.time} defaultValue="2h" error={error} required />
        <Field name="times" label={TEXTS.times} type="number" defaultValue="1" required />
        {members.length === 0 ? null : (
          <fieldset>
            <legend>{TEXTS.free}</legend>
            {members.map((name) => (
              <label key={name} class="check">
                <input type="checkbox" onChange={() => toggle(`params.${name}`)} /> <MarkedValue value={name} />
              </label>
            ))}
            <p class="quiet">{TEXTS.freeHelp}</p>
          </fieldset>
        )}
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} cancel={TEXTS.cancel} onClose={() => onClose("idle")}>
          {TEXTS.submit}
        </FormButtons>
      </form>
    </Dialog>
  );
}

/** Whether the name can follow a dot in CEL. The API leaves other members free, too. */
const isPlainName = (name: string): boolean =>
  /^(?!(as|break|const|continue|else|false|for|function|in|null|true)$)[A-Za-z_]\w*$/.test(name);
