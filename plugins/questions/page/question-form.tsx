/** The form for an approver's question to the agent of the open request. */
import { type Action, ErrorNotice, request, useState } from "../../console/app/kit.ts";

const MAX_QUESTIONS = 5;

export function QuestionForm({ action, onChanged }: { action: Action; onChanged(action: Action): void }) {
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  if (action.questions.length >= MAX_QUESTIONS) return null;
  const ask = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const body = { question: text.trim() };
      onChanged(await request("POST /v1/actions/{id}/questions", { path: [action.id], body }));
      setText("");
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="ask row" onSubmit={(event) => void ask(event)}>
      <input
        aria-label="Question to the agent"
        placeholder="Ask the agent"
        maxLength={1000}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" disabled={isBusy || text.trim() === ""}>
        Ask
      </button>
      <ErrorNotice error={error} />
    </form>
  );
}
