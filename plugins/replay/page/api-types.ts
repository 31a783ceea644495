/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type Replay = Extract<Api["POST /v1/replay"]["response"], { kind: "decision" }>;
