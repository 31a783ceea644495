/** Throttles keys that request approval many times more often than usual. */
import { defineCorePlugin } from "../../src/core.ts";
import { throttleAuditor } from "./audit.ts";
import { THROTTLE_ENTRY } from "./entry.ts";
import { THROTTLED } from "./errors.ts";
import { throttleNotice } from "./notice.ts";
import { ThrottleOptions } from "./options.ts";
import { throttleStep } from "./step.ts";

export default defineCorePlugin({
  name: "throttle",
  errors: { throttled: THROTTLED },
  stepErrors: [THROTTLED],
  options: ThrottleOptions,
  records: { throttle: THROTTLE_ENTRY },
  auditors: [throttleAuditor],
  notices: [throttleNotice],
  setup: (_, options) => ({ steps: options.times === 0 ? [] : [throttleStep(options)] }),
});
