/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type BreakGlassApproval = Api["GET /v1/break-glass"]["response"]["break_glass"][number];
