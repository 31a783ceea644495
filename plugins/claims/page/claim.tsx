/**
 * Displays who is reviewing a request, with buttons that claim it, hand it over and release it. Also renders the entry
 * of a claim.
 */
import {
  findVoteElsewhere,
  type Action,
  currentMe,
  Dialog,
  encodeSegment,
  ErrorNotice,
  Field,
  FormButtons,
  hasScope,
  MarkedValue,
  type PartTexts,
  PersonLink,
  PrincipalName,
  readFormValues,
  renderPlain,
  request,
  TimeLeft,
  useLoad,
  useState,
  useSubmit,
} from "../../console/app/kit.ts";
import { type Claim, readClaims, useClaim } from "./claims.ts";

const TEXTS = {
  claim: "Claim",
  handOver: "Hand over…",
  release: "Release",
  takeOver: "Take over",
  dialog: "Hand over this request",
  help: "The service notifies the person if a channel reaches them. Others can still vote.",
  nobody: "No one else can approve this request now.",
} as const;

/** Number of people that the service returns at most. */
const MAX_PEOPLE = 20;

/** Renders who is looking, after the agent in a row of the inbox. */
export function RowClaim({ action }: { action: Action }) {
  const claim = useClaim(action.id);
  if (claim === null) return null;
  return (
    <span class="claimed">
      {" · "}
      {isMine(claim) ? (
        "you are looking"
      ) : (
        <>
          <PrincipalName principal={claim.holder} /> is looking
        </>
      )}
    </span>
  );
}

/** Displays who is reviewing the open request, and the claim commands of the signed-in approver. */
export function RequestClaim({ action }: { action: Action }) {
  const claim = useClaim(action.id);
  const [isHandingOver, setHandingOver] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const path = [encodeSegment(action.id)] as const;
  const run = (change: () => Promise<unknown>) => async (): Promise<void> => {
    setError(null);
    try {
      await change();
    } catch (failure) {
      setError(failure);
    }
    await readClaims().catch(() => undefined);
  };
  const take = (body: { take_over?: true }) =>
    run(() => request("POST /v1/actions/{id}/claim", { path: [...path], body }));
  const release = run(() => request("POST /v1/actions/{id}/release-claim", { path: [...path], body: {} }));
  const { approval_terms: terms } = action;
  const mayVote =
    hasScope("approvals:decide") &&
    terms !== undefined &&
    (terms.blocked === null || terms.blocked.code === findVoteElsewhere(action)?.code);
  if (claim === null && !mayVote) return null;
  return (
    <div class="row claim">
      {claim === null ? null : (
        <span role="status">
          {isMine(claim) ? (
            "You are looking at this"
          ) : (
            <>
              <PersonLink principal={claim.holder} /> is looking at this
            </>
          )}{" "}
          <span class="quiet">
            (<TimeLeft at={claim.until} short />)
          </span>
        </span>
      )}
      {!mayVote ? null : claim === null ? (
        <Small onClick={take({})}>{TEXTS.claim}</Small>
      ) : isMine(claim) ? (
        <Small onClick={release}>{TEXTS.release}</Small>
      ) : (
        <Small onClick={take({ take_over: true })}>{TEXTS.takeOver}</Small>
      )}
      {mayVote && (claim === null || isMine(claim)) ? (
        <Small onClick={() => setHandingOver(true)}>{TEXTS.handOver}</Small>
      ) : null}
      <ErrorNotice error={error} />
      {isHandingOver ? <HandOverDialog id={action.id} onClose={() => setHandingOver(false)} /> : null}
    </div>
  );
}

const isMine = ({ holder }: Claim): boolean => holder === currentMe()?.principal;

function Small({ onClick, children }: { onClick(): unknown; children: string }) {
  return (
    <button type="button" class="small" onClick={() => void onClick()}>
      {children}
    </button>
  );
}

function HandOverDialog({ id, onClose }: { id: string; onClose(): void }) {
  const [name, setName] = useState("");
  const path = [encodeSegment(id)];
  const people = useLoad(
    async (signal) => (await request("GET /v1/actions/{id}/approvers", { path, query: { name }, signal })).users,
    [name],
  );
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { user_id = "" } = readFormValues(form);
    await request("POST /v1/actions/{id}/claim", { path, body: { user_id } });
    await readClaims();
    onClose();
  });
  const found = people.data ?? [];
  return (
    <Dialog title={TEXTS.dialog} onClose={onClose}>
      <form onSubmit={submit}>
        <p class="quiet">{TEXTS.help}</p>
        {name === "" && found.length < MAX_PEOPLE ? null : (
          <Field
            name="name"
            label="Name contains"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        )}
        {people.data !== null && found.length === 0 ? <p>{TEXTS.nobody}</p> : null}
        <Field name="user_id" label="Person">
          <select id="user_id" name="user_id" required>
            {found.map((user) => (
              <option key={user.id} value={user.id}>
                {renderPlain(user.name)}
              </option>
            ))}
          </select>
        </Field>
        <ErrorNotice error={error ?? people.error} />
        <FormButtons isDisabled={isBusy || found.length === 0} onClose={onClose}>
          Hand over
        </FormButtons>
      </form>
    </Dialog>
  );
}

function describeClaim(entry: Record<string, unknown>) {
  const { change, holder } = entry["data"] as { change: string; holder: string };
  if (change === "released") return "claim released";
  return (
    <>
      {change === "claimed" ? "claimed by " : "handed to "}
      {holder.startsWith("user:") ? <PersonLink principal={holder} /> : <MarkedValue value={holder} />}
    </>
  );
}

export const texts: PartTexts = { entries: { "claims:change": { summarize: describeClaim, describe: describeClaim } } };
