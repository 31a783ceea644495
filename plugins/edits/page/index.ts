/** The form that changes a request, in the inbox. */
import type { ConsolePart } from "../../console/app/kit.ts";

export default {
  panels: [{ place: "request-changes", load: () => import("./edit-form.tsx").then((module) => module.EditForm) }],
} satisfies ConsolePart;
