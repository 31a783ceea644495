/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type Stop = Api["GET /v1/stop"]["response"]["stops"][number];
