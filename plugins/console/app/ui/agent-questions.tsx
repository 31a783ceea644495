/** Questions of approvers to the agent, and its answers. The answers are untrusted text, like parameters. */
import type { ComponentChildren } from "preact";
import type { Action, LinkedAction } from "../core/api-types.ts";
import { Ago, MarkedValue } from "./elements.tsx";
import { Heading } from "./heading.tsx";
import { PrincipalName } from "./person.tsx";

interface Props {
  action: Pick<Action | LinkedAction, "questions">;
  level: 2 | 3;
  /** A form for another question. */
  children?: ComponentChildren;
}

export function AgentQuestions({ action: { questions }, level, children }: Props) {
  if (questions.length === 0 && children === undefined) return null;
  return (
    <section class="questions">
      <Heading level={level}>Questions to the agent</Heading>
      {questions.length === 0 ? null : (
        <dl>
          {questions.map(({ number, asked_by, asked_at, question, answered_at, answer }) => (
            <div key={number}>
              <dt>
                <PrincipalName principal={asked_by} /> asked <Ago at={asked_at} />: <MarkedValue value={question} />
              </dt>
              <dd>
                {answer === null || answered_at === null ? (
                  <span class="quiet">No answer yet.</span>
                ) : (
                  <>
                    <span class="quiet">
                      The agent answered <Ago at={answered_at} />:
                    </span>{" "}
                    <MarkedValue value={answer} />
                  </>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {children}
    </section>
  );
}
