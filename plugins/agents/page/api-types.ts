/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type Agent = Api["GET /v1/agents/{id}"]["response"];
