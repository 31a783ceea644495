/** Seals of rows under a secret of the tests, for components without a service. */
import { createHmac } from "node:crypto";
import type { RowSeals } from "../../src/contract/row-seals.ts";
import type { DeliveryRow } from "../../src/contract/storage.ts";
import { createRowSeals } from "../../src/identity/row-seals.ts";

export const seals: RowSeals = createRowSeals(
  {
    mac: (purpose, message) =>
      new Uint8Array(createHmac("sha256", "a secret of the tests").update(purpose).update(message).digest()),
  },
  { error() {} },
);

/** Returns the delivery as the service writes it. */
export const sealed = <Row extends Omit<DeliveryRow, "position">>(row: Row): Row => ({
  ...row,
  seal: seals.seal("deliveries", row),
});
