/** The card that repeats an action's decision. */
import { useState } from "preact/hooks";
import { type Action, Badge, Card, ErrorNotice, MarkedValue, Notice, request, Table } from "../../console/app/kit.ts";
import type { Replay } from "./api-types.ts";

const TEXTS = {
  erased: "The request was erased, so the decision cannot be made again. Its proof remains valid.",
  replayHelp:
    "Repeats the decision with the recorded policies, facts and clock, and compares every field. Then decides with today's policies.",
  equal: "The same decision, field by field.",
  equalWithLater: (count: number) =>
    `The same decision, field by field. The ${count} later decisions on this action are the same, too.`,
  different: "Replay made a different decision. The fields that differ are marked.",
} as const;

export function ActionReplay({ action: { id, erased_at } }: { action: Action }) {
  return (
    <Card id="replay" title="Replay">
      {erased_at === null ? <ReplayForm id={id} /> : <p class="quiet">{TEXTS.erased}</p>}
    </Card>
  );
}

function ReplayForm({ id }: { id: string }) {
  const [result, setResult] = useState<Replay | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const answer = await request("POST /v1/replay", { body: { action_id: id, policy_set: "current" } });
      setResult(answer as Replay);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <p>{TEXTS.replayHelp}</p>
      <button type="button" disabled={isBusy} onClick={() => void run()}>
        Replay
      </button>
      <ErrorNotice error={error} />
      {result === null ? null : <Replayed result={result} />}
    </>
  );
}

function Replayed({ result }: { result: Replay }) {
  const { equal, redecisions, now } = result;
  const same = redecisions.length === 0 ? TEXTS.equal : TEXTS.equalWithLater(redecisions.length);
  const parts = [result, ...redecisions.filter((redecision) => !redecision.equal)];
  return (
    <>
      <Notice kind={equal ? "good" : "bad"}>{equal ? same : TEXTS.different}</Notice>
      <Table label="Fields" head={["Field", "Recorded", "Replayed", ""]}>
        {parts
          .flatMap(({ hash, fields }) => fields.map((field) => ({ ...field, key: `${hash} ${field.field}` })))
          .map((field) => (
            <tr key={field.key}>
              <td>{field.field}</td>
              <td data-label="Recorded">
                <MarkedValue value={JSON.stringify(field.recorded)} />
              </td>
              <td data-label="Replayed">
                <MarkedValue value={JSON.stringify(field.replayed)} />
              </td>
              <td>{field.equal ? "equal" : <Badge value="failed" label="differs" />}</td>
            </tr>
          ))}
      </Table>
      {now === undefined || now === null ? null : (
        <>
          <h3>Today</h3>
          <p>
            <Badge value={String(now.decision["effect"])} />{" "}
            {now.changed ? (
              <>
                Today's policies decide differently: <MarkedValue value={String(now.decision["reason"])} />
              </>
            ) : (
              "Today's policies decide the same."
            )}
          </p>
        </>
      )}
    </>
  );
}
