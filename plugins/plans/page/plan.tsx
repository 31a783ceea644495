/**
 * The pages of plans: the list, and one plan. On a plan's page, a person strikes out the actions to deny and approves
 * the others with one vote.
 */
import { useState } from "preact/hooks";
import {
  type Action,
  Ago,
  ActionPreview,
  ApprovalReason,
  Badge,
  currentMe,
  Dialog,
  encodeSegment,
  ErrorNotice,
  Field,
  FormButtons,
  hasScope,
  LoadedPage,
  MarkedValue,
  Notice,
  Panels,
  readFormValues,
  request,
  RequestContent,
  RiskBadge,
  TimeLeft,
  useLoad,
  useSubmit,
} from "../../console/app/kit.ts";
import { describePlan, PlanList } from "./plan-list.tsx";
import { TEXTS } from "./strings.ts";
import { castPlanVote, type PlanRecord, type StruckAction } from "./vote-on-plan.ts";

export function Plan({ id }: { id: string | null }) {
  return id === null ? <PlanList /> : <OnePlan id={id} />;
}

function OnePlan({ id }: { id: string }) {
  const loaded = useLoad((signal) => request("GET /v1/plans/{id}", { path: [id], signal }), [id]);
  return (
    <LoadedPage
      title={loaded.data === null ? TEXTS.title : describePlan(loaded.data.actions)}
      back={{ href: "#/plans", text: TEXTS.listTitle }}
      what="the plan"
      loaded={loaded}
    >
      {(plan) => <Whole key={plan.digest} plan={plan} onVoted={loaded.set} />}
    </LoadedPage>
  );
}

/** Renders a plan. Its `key` is the digest of the list, so a changed list resets which actions are struck out. */
function Whole({ plan, onVoted }: { plan: PlanRecord; onVoted(change: () => PlanRecord): void }) {
  const [struck, setStruck] = useState<ReadonlySet<number>>(new Set());
  const mayVote = plan.approval_token !== undefined;
  const toggle = (position: number): void => {
    const next = new Set(struck);
    if (!next.delete(position)) next.add(position);
    setStruck(next);
  };
  return (
    <>
      <p class="quiet">
        <MarkedValue value={plan.agent_id} /> {TEXTS.submitted} <Ago at={plan.created_at} />. {TEXTS.terms(plan)}
      </p>
      {plan.stopped === null ? null : <Notice kind="bad">{TEXTS.stopped(plan.stopped)}</Notice>}
      <ol class="plan">
        {plan.actions.map((action, i) => (
          <Step
            key={action.id}
            action={action}
            isStruck={struck.has(i + 1)}
            onToggle={mayVote && action.status === "pending_approval" ? () => toggle(i + 1) : null}
          />
        ))}
      </ol>
      <CancelPlan plan={plan} onCancelled={(next) => onVoted(() => next)} />
      <Panels place="plan" plan={plan} />
      {mayVote ? <VoteForm plan={plan} struck={struck} onVoted={(next) => onVoted(() => next)} /> : null}
    </>
  );
}

/**
 * Renders the button that cancels the plan, if an action can still be cancelled. Only admins and the credential that
 * submitted the plan see it.
 */
function CancelPlan({ plan, onCancelled }: { plan: PlanRecord; onCancelled(plan: PlanRecord): void }) {
  const [isAsking, setAsking] = useState(false);
  const isAdmin = hasScope("admin");
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { "cancel-reason": reason = "" } = readFormValues(form);
    const body = reason === "" ? {} : { reason };
    onCancelled(await request("POST /v1/plans/{id}/cancel", { path: [plan.id], body }));
    setAsking(false);
  });
  const open = isAdmin ? ["pending_approval", "allowed", "approved"] : ["pending_approval"];
  const mayCancel = isAdmin || currentMe()?.key.id === plan.submitted_by;
  if (!mayCancel || !plan.actions.some(({ status }) => open.includes(status))) return null;
  return (
    <p class="row">
      <button type="button" class="danger" onClick={() => setAsking(true)}>
        {TEXTS.cancel}
      </button>
      {isAsking ? (
        <Dialog title={TEXTS.cancelTitle} onClose={() => setAsking(false)}>
          <form onSubmit={submit}>
            <p>{TEXTS.cancelHelp(isAdmin)}</p>
            <Field name="cancel-reason" label={TEXTS.reason} maxLength={2000} />
            <ErrorNotice error={error} />
            <FormButtons look="danger" isDisabled={isBusy} cancel={TEXTS.keepPlan} onClose={() => setAsking(false)}>
              Cancel the plan
            </FormButtons>
          </form>
        </Dialog>
      ) : null}
    </p>
  );
}

function Step({ action, isStruck, onToggle }: { action: Action; isStruck: boolean; onToggle: (() => void) | null }) {
  const { id, status, expires_at: ends } = action;
  return (
    <li class={isStruck ? "plan-step is-struck" : "plan-step"}>
      <p class="chips">
        <Badge value={isStruck ? "denied" : status} {...(isStruck ? { label: TEXTS.struck } : {})} />
        <RiskBadge risk={action.risk_level} />
        {status === "pending_approval" && ends !== null ? <TimeLeft at={ends} /> : null}
        <a href={`#/actions/${encodeSegment(id)}`}>{TEXTS.details}</a>
      </p>
      <ActionPreview action={action} />
      <ApprovalReason action={action} />
      <RequestContent action={action} level={2} />
      {onToggle === null ? null : (
        <button type="button" aria-pressed={isStruck} onClick={onToggle}>
          {isStruck ? TEXTS.keep : TEXTS.strike}
        </button>
      )}
    </li>
  );
}

function VoteForm({
  plan,
  struck,
  onVoted,
}: {
  plan: PlanRecord;
  struck: ReadonlySet<number>;
  onVoted(plan: PlanRecord): void;
}) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const pending = plan.actions.filter(({ status }) => status === "pending_approval").length;
  const left = pending - struck.size;
  const vote = async (form: HTMLFormElement, approve: boolean): Promise<void> => {
    const { reason = "" } = readFormValues(form);
    const strikes: StruckAction[] = approve ? [...struck].sort((a, b) => a - b).map((position) => ({ position })) : [];
    setBusy(true);
    setError(null);
    try {
      onVoted(
        await castPlanVote(plan, { approve, ...(reason === "" ? {} : { reason }), ...(approve ? { strikes } : {}) }),
      );
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="plan-vote"
      onSubmit={(event) => {
        event.preventDefault();
        void vote(event.currentTarget, true);
      }}
    >
      <ErrorNotice error={error} />
      <Field name="reason" label={TEXTS.reason} maxLength={2000} />
      <p class="row">
        <button type="submit" class="primary" disabled={isBusy || left === 0}>
          {TEXTS.approve(left, struck.size)}
        </button>
        <button
          type="button"
          class="danger"
          disabled={isBusy}
          onClick={(event) => void vote(event.currentTarget.form as HTMLFormElement, false)}
        >
          {TEXTS.reject(pending)}
        </button>
      </p>
    </form>
  );
}
