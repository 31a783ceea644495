/** Types of the requests and responses of the feature. */
import type { Api } from "../../console/app/kit.ts";

export type Delivery = Api["GET /v1/deliveries"]["response"]["deliveries"][number];
