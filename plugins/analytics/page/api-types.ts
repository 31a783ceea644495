/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type Analytics = Api["GET /v1/analytics"]["response"];
export type Oversight = Api["GET /v1/analytics/oversight"]["response"];
