import type { RowSeals } from "../../../src/core.ts";
import type { DeliveryRow, StorageReader } from "../../../src/storage/index.ts";

/** Returns the deliveries of an action, without those that someone changed in the store. */
export async function genuineDeliveriesOfAction(
  seals: RowSeals,
  tx: Pick<StorageReader, "deliveriesOfAction">,
  actionId: string,
): Promise<DeliveryRow[]> {
  return (await tx.deliveriesOfAction(actionId)).filter((row) => seals.matches("deliveries", row));
}
