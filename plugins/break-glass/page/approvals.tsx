/** Emergency approvals (break-glass) and their reviews. Another person closes each review with a comment. */
import { useState } from "preact/hooks";
import {
  Ago,
  ActionName,
  Badge,
  currentMe,
  Dialog,
  EmptyState,
  type Api,
  encodeSegment,
  type EntryOf,
  ErrorNotice,
  Field,
  FormButtons,
  hasScope,
  MarkedValue,
  Page,
  PagedList,
  type PartTexts,
  PersonLink,
  PrincipalName,
  readFormValues,
  renderPlain,
  request,
  ResultNotice,
  Snippet,
  usePaged,
  useSubmit,
} from "../../console/app/kit.ts";

type BreakGlassApproval = Api["GET /v1/break-glass"]["response"]["break_glass"][number];

const TEXTS = {
  title: "Break-glass approvals",
  intro:
    "A person with the role break_glass approved without other approvers, who could not be reached. Each approval stays open until another person has reviewed it.",
  none: { open: "No review is open.", reviewed: "No emergency approval has been reviewed yet." },
  next: {
    open: "A user with the role break_glass can choose “Emergency approval” below a request that needs other approvers, and the approval appears here for review. API keys and approval links cannot give one. Give the role to few people:",
    reviewed: "To review an emergency approval, open it on the tab “Review open”, or use the command line:",
  },
  add: "Add a user with the role break_glass",
  review: "List open reviews, and close one",
  own: "You gave this approval, so someone else must review it.",
  closed: "The review is closed.",
} as const;

const addUser = (
  origin: string,
): string => `curl -s ${origin}/v1/users -H "Authorization: Bearer $ADMIN_KEY" -H "Content-Type: application/json" \\
  -d '{"name":"Ada Lovelace","roles":["break_glass"]}'`;
const COMMANDS = `assent break-glass
assent break-glass --review ID --comment "the outage was real"`;

type Status = BreakGlassApproval["status"];

export function BreakGlass() {
  const [status, setStatus] = useState<Status>("open");
  const [reviewing, setReviewing] = useState<BreakGlassApproval | null>(null);
  const [done, setDone] = useState("");
  const list = usePaged(
    async (cursor, signal) => {
      const query = { status, limit: 50, ...(cursor === undefined ? {} : { cursor }) };
      const { break_glass: rows, next_cursor } = await request("GET /v1/break-glass", { query, signal });
      return { rows, next_cursor };
    },
    [status],
  );
  return (
    <>
      <Page title={TEXTS.title}>
        <p class="quiet">{TEXTS.intro}</p>
        <ResultNotice text={done} />
        <div class="tabs" role="group" aria-label="Which approvals">
          {(["open", "reviewed"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={status === each} onClick={() => setStatus(each)}>
              {each === "open" ? "Review open" : "Reviewed"}
            </button>
          ))}
        </div>
        <PagedList list={list} what="break-glass approvals" empty={<NoUses status={status} />}>
          {(rows) => (
            <ul class="plain-list">
              {rows.map((use) => (
                <li key={use.id}>
                  <Use use={use} onReview={() => setReviewing(use)} />
                </li>
              ))}
            </ul>
          )}
        </PagedList>
      </Page>
      {reviewing === null ? null : (
        <ReviewDialog
          use={reviewing}
          onClose={() => setReviewing(null)}
          onDone={() => {
            setReviewing(null);
            setDone(TEXTS.closed);
            list.reload();
          }}
        />
      )}
    </>
  );
}

function NoUses({ status }: { status: Status }) {
  return (
    <EmptyState text={TEXTS.none[status]}>
      <p>{TEXTS.next[status]}</p>
      {status === "open" ? (
        <Snippet label={TEXTS.add} text={addUser(location.origin)} />
      ) : (
        <Snippet label={TEXTS.review} text={COMMANDS} />
      )}
    </EmptyState>
  );
}

function Use({ use, onReview }: { use: BreakGlassApproval; onReview(): void }) {
  const { action_id, agent_id, approver, reason, used_at, review, tool, operation } = use;
  return (
    <article class="card" aria-label={`${renderPlain(tool)} ${renderPlain(operation)}, ${action_id.slice(-6)}`}>
      <p class="row">
        <span>
          <a href={`#/actions/${encodeSegment(action_id)}`}>
            <ActionName id={action_id} />
          </a>{" "}
          <span class="quiet">by</span> <MarkedValue value={agent_id} />
        </span>
        <Badge
          value={review === null ? "pending_approval" : "approved"}
          label={review === null ? "review open" : "reviewed"}
        />
      </p>
      <p>
        <strong>
          <PersonLink principal={approver} />
        </strong>{" "}
        <span class="quiet">
          approved without a second approver, <Ago at={used_at} />:
        </span>{" "}
        <MarkedValue value={reason} />
      </p>
      {review === null ? null : (
        <p>
          <strong>
            <PersonLink principal={review.reviewer} />
          </strong>{" "}
          <span class="quiet">
            reviewed it, <Ago at={review.reviewed_at} />:
          </span>{" "}
          <MarkedValue value={review.comment} />
        </p>
      )}
      <div class="row">
        {review !== null || !hasScope("approvals:decide") ? null : approver === currentMe()?.principal ? (
          <span class="quiet">{TEXTS.own}</span>
        ) : (
          <button type="button" class="small" aria-label={`Review ${action_id.slice(-6)}`} onClick={onReview}>
            Review…
          </button>
        )}
      </div>
    </article>
  );
}

function ReviewDialog({
  use: { id, approver, reason },
  onClose,
  onDone,
}: {
  use: BreakGlassApproval;
  onClose(): void;
  onDone(): void;
}) {
  const { error, isBusy, submit } = useSubmit(async (form) => {
    const { comment = "" } = readFormValues(form);
    await request("POST /v1/break-glass/{id}/review", { path: [id], body: { comment } });
    onDone();
  });
  return (
    <Dialog title="Review this break-glass approval" onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <PrincipalName principal={approver} /> wrote: “
          <MarkedValue value={reason} />”
        </p>
        <Field name="comment" label="What did the review find?" help="Recorded in the ledger." error={error}>
          <textarea
            id="comment"
            name="comment"
            rows={4}
            maxLength={2000}
            required
            data-focus=""
            aria-describedby="comment-help"
          />
        </Field>
        <ErrorNotice error={error} />
        <FormButtons isDisabled={isBusy} onClose={onClose}>
          Close the review
        </FormButtons>
      </form>
    </Dialog>
  );
}

/** Texts of emergency approvals on pages of other features. */
export const texts: PartTexts = {
  entries: {
    break_glass: {
      summarize(entry) {
        const { use, change, agent_id } = entry as unknown as EntryOf<"break_glass">;
        return <MarkedValue value={`emergency approval ${change}: ${use.tool} ${use.operation} by ${agent_id}`} />;
      },
      describe(entry) {
        const { use } = entry as unknown as EntryOf<"break_glass">;
        return <MarkedValue value={`for ${use.tool} ${use.operation}`} />;
      },
    },
  },
  scopes: { "approvals:break_glass": "approve in an emergency without other approvers (in a session)" },
};
