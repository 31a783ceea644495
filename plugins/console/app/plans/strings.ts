/** The texts of the page of a plan. */
interface Terms {
  ordered: boolean;
  stop_on_failure: boolean;
}

const countOf = (count: number): string => (count === 1 ? "1 action" : `${count} actions`);

export const TEXTS = {
  title: "Plan",
  none: "Open a plan from one of its actions.",
  submitted: "submitted these actions together",
  terms: ({ ordered, stop_on_failure: stops }: Terms): string =>
    [
      ordered ? "Each starts only when the ones above it have ended." : "They can start in any order.",
      stops ? "Nothing starts after one has failed." : "",
    ]
      .filter((sentence) => sentence !== "")
      .join(" "),
  stopped: ({ position, status }: { position: number; status: string }): string =>
    `The plan stopped at action ${position}, which is ${status}.`,
  struck: "struck out",
  strike: "Strike out",
  keep: "Keep",
  details: "History and proof",
  reason: "Reason (recorded)",
  approve: (left: number, struck: number): string =>
    struck === 0 ? `Approve ${countOf(left)}` : `Approve ${countOf(left)}, reject ${struck}`,
  reject: (pending: number): string => `Reject ${pending === 1 ? "the action" : `all ${pending}`}`,
  link: "Part of a plan: open the plan",
};
