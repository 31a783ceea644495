/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type ApiKey = Api["GET /v1/api-keys/{id}"]["response"];
