/**
 * The bar with the reason and the two vote buttons. It is not a dialog, so that the request above it stays readable.
 */
import { useImperativeHandle, useRef, useState } from "preact/hooks";
import type { Ref } from "preact";
import { readDraft, writeDraft } from "./drafts.ts";
import { TEXTS } from "./strings.ts";

export interface VoteBarHandle {
  /** Casts the vote if it can be undone. If not, only chooses it, and moves the focus to the reason. */
  choose(approve: boolean): void;
}

interface Props {
  /** Identifies the draft of the reason. */
  subject: string;
  /** Casts the vote. Resolves to true if it was recorded. Only then is the reason cleared. */
  cast(approve: boolean, reason: string): Promise<boolean>;
  /** Number of requests to vote on; null for the open request. */
  count?: number | null;
  /** Whether the person selected these requests. */
  isSelection?: boolean;
  /** Number of these requests that can be approved together. */
  approvable?: number | null;
  /** False if the service would reject the person's approval. */
  canApprove?: boolean;
  /** Label of the approve button. */
  approve?: string;
  /** Whether a vote can be undone for a few seconds, so that one key is enough to give it. */
  canUndo?(approve: boolean): boolean;
  onLeave?(): void;
  handle?: Ref<VoteBarHandle>;
}

export function VoteBar({
  subject,
  cast,
  count = null,
  isSelection = false,
  approvable = count,
  canApprove = approvable !== 0,
  approve: approveLabel = "Approve",
  canUndo = () => false,
  onLeave,
  handle,
}: Props) {
  const [reason, setReason] = useState(() => readDraft(subject));
  const [chosen, setChosen] = useState<boolean | null>(null);
  const [casting, setCasting] = useState<boolean | null>(null);
  const [hint, setHint] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const vote = async (approve: boolean): Promise<void> => {
    if (casting !== null || (approve && !canApprove)) return;
    setCasting(approve);
    setChosen(approve);
    try {
      if (await cast(approve, reason.trim())) {
        writeDraft(subject, "");
        setReason("");
        setChosen(null);
      }
    } finally {
      setCasting(null);
    }
  };
  useImperativeHandle(handle ?? null, () => ({
    choose(approve) {
      if (canUndo(approve)) return void vote(approve);
      setChosen(approve);
      setHint("");
      field.current?.focus();
    },
  }));
  const write = (text: string): void => {
    setReason(text);
    writeDraft(subject, text);
  };
  const label = (verb: string, number: number | null): string =>
    number === null ? verb : `${verb} ${number.toLocaleString("en")}`;
  return (
    <form class="vote-bar" aria-label="Vote" onSubmit={(event) => event.preventDefault()}>
      <div class="vote-bar-head">
        <label for="reason">
          {TEXTS.reason} <span class="quiet">({TEXTS.reasonHelp})</span>
        </label>
        <span class="quick-reasons">
          {TEXTS.quickReasons.map((text) => (
            <button key={text} type="button" class="link" disabled={casting !== null} onClick={() => write(text)}>
              {text}
            </button>
          ))}
        </span>
      </div>
      <textarea
        id="reason"
        ref={field}
        rows={2}
        maxLength={2000}
        value={reason}
        readOnly={casting !== null}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onLeave?.();
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          if (chosen === null) setHint(TEXTS.chooseFirst);
          else void vote(chosen);
        }}
      />
      <div class="row">
        <button
          type="button"
          class={`primary ${chosen === true ? "chosen" : ""}`}
          disabled={casting !== null || !canApprove}
          onClick={() => void vote(true)}
        >
          {casting === true ? "Approving…" : label(approveLabel, approvable)}
        </button>
        <button
          type="button"
          class={`danger ${chosen === false ? "chosen" : ""}`}
          disabled={casting !== null}
          onClick={() => void vote(false)}
        >
          {casting === false ? "Denying…" : label("Deny", count)}
        </button>
        <span class="quiet shortcuts" role="status">
          {chosen !== null && !(chosen && !canApprove) ? (
            <>
              <kbd>Ctrl</kbd> <kbd>Enter</kbd> {chosen ? "approves" : "denies"}{" "}
              {TEXTS.keysActOn(chosen ? approvable : count, isSelection)}
            </>
          ) : (
            hint
          )}
        </span>
      </div>
    </form>
  );
}
