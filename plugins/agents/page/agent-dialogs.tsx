/** The dialogs that register, change, suspend and resume an agent. */
import { useState } from "preact/hooks";
import {
  Dialog,
  ErrorNotice,
  Field,
  FormButtons,
  MarkedValue,
  readFormValues,
  renderPlain,
  request,
  splitList,
  useSubmit,
} from "../../console/app/kit.ts";
import type { Agent } from "./api-types.ts";
import { TEXTS } from "./strings.ts";

/** The change that the open dialog makes. */
export type AgentChange =
  | { kind: "register"; /** Fills in the id. */ id?: string }
  | { kind: "change" | "suspend" | "resume"; agent: Agent };

interface Ends {
  onClose(): void;
  onDone(text: string): void;
}

export function AgentDialogs({ change, ...ends }: Ends & { change: AgentChange | null }) {
  if (change === null) return null;
  if (change.kind === "register") return <EditDialog agent={null} id={change.id ?? ""} {...ends} />;
  if (change.kind === "change") return <EditDialog agent={change.agent} id={change.agent.id} {...ends} />;
  return <SuspendDialog agent={change.agent} {...ends} />;
}

/** Returns the header that makes the service reject the change if the agent has changed since it was displayed. */
const match = ({ version }: Agent): Record<string, string> => ({ "if-match": `"${version}"` });

function EditDialog({ agent, id: given, onClose, onDone }: Ends & { agent: Agent | null; id: string }) {
  const [isLimited, setLimited] = useState(agent !== null && agent.allowed_tools !== null);
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { id = given, name = "", description = "", allowed_tools = "" } = readFormValues(form);
    const body = {
      ...(name === "" ? {} : { name }),
      description: description === "" ? null : description,
      allowed_tools: isLimited ? splitList(allowed_tools) : null,
    };
    if (agent === null) await request("POST /v1/agents", { body: { id, ...body } });
    else await request("PATCH /v1/agents/{id}", { path: [agent.id], headers: match(agent), body });
    onDone(agent === null ? TEXTS.done.registered(id) : TEXTS.done.changed(id));
  });
  return (
    <Dialog title={agent === null ? "Register an agent" : `Change ${renderPlain(agent.id)}`} onClose={onClose}>
      <form onSubmit={submit}>
        {agent === null ? (
          <Field
            name="id"
            label="Id"
            help={TEXTS.help.id}
            error={error}
            defaultValue={given}
            required
            maxLength={256}
          />
        ) : null}
        <Field
          name="name"
          label="Name"
          help={TEXTS.help.name}
          error={error}
          defaultValue={agent?.name ?? ""}
          maxLength={100}
        />
        <Field
          name="description"
          label="Description"
          error={error}
          defaultValue={agent?.description ?? ""}
          maxLength={2000}
        />
        <label class="check">
          <input type="checkbox" checked={isLimited} onChange={(event) => setLimited(event.currentTarget.checked)} />{" "}
          Only these tools
        </label>
        {isLimited ? (
          <Field
            name="allowed_tools"
            label="Tools"
            help={TEXTS.help.tools}
            error={error}
            defaultValue={(agent?.allowed_tools ?? []).join(" ")}
          />
        ) : null}
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          {agent === null ? "Register" : "Change"}
        </FormButtons>
      </form>
    </Dialog>
  );
}

function SuspendDialog({ agent, onClose, onDone }: Ends & { agent: Agent }) {
  const isActive = agent.status === "active";
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { reason = "" } = readFormValues(form);
    const given = { path: [agent.id], headers: match(agent) };
    if (isActive) await request("POST /v1/agents/{id}/suspend", { ...given, body: reason === "" ? {} : { reason } });
    else await request("POST /v1/agents/{id}/resume", given);
    onDone(isActive ? TEXTS.done.suspended(agent.id) : TEXTS.done.resumed(agent.id));
  });
  return (
    <Dialog title={isActive ? "Suspend this agent?" : "End this suspension?"} onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <strong>
            <MarkedValue value={agent.id} />
          </strong>
          {isActive ? TEXTS.help.suspend : TEXTS.help.resume}
        </p>
        {isActive ? (
          <Field name="reason" label="Reason" help={TEXTS.help.reason} error={error} maxLength={500} />
        ) : null}
        <ErrorNotice error={error} />
        <FormButtons look={isActive ? "danger" : "primary"} isDisabled={isBusy} onClose={onClose}>
          {isActive ? "Suspend" : "Resume"}
        </FormButtons>
      </form>
    </Dialog>
  );
}
