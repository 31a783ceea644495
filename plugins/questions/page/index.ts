/** The form for a question to the agent, in the inbox. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [
    { place: "request-questions", load: () => import("./question-form.tsx").then((module) => module.QuestionForm) },
  ],
} satisfies ConsolePart;
