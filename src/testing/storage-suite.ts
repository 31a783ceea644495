/** The conformance suite of the storage contract. Every storage must pass all cases; none can be skipped. */
import type { Storage } from "../contract/storage.ts";
import { actionCases } from "./suite/actions.ts";
import { analyticsCases } from "./suite/analytics.ts";
import { deliveryCases } from "./suite/deliveries.ts";
import { idempotencyCases } from "./suite/idempotency.ts";
import { limitCases } from "./suite/limits.ts";
import { pastActionCases } from "./suite/past-actions.ts";
import { directoryCases } from "./suite/directory.ts";
import { documentCases } from "./suite/documents.ts";
import { erasureCases } from "./suite/erasure.ts";
import { ledgerCases } from "./suite/ledger.ts";
import { lifecycleCases } from "./suite/lifecycle.ts";
import { listCases } from "./suite/lists.ts";
import { openActionCases } from "./suite/open-actions.ts";
import { approvedActionCases } from "./suite/approved-actions.ts";
import type { DefineCase } from "./suite/rows.ts";
import { processCases } from "./suite/processes.ts";
import { sharingCases } from "./suite/sharing.ts";
import { transactionCases } from "./suite/transactions.ts";
import { valueCases } from "./suite/values.ts";
import { pendingActionCases } from "./suite/pending-actions.ts";

export interface StorageUnderTest {
  storage: Storage;
  /** Closes the store and opens it again from its disk. Can resolve to the same object. */
  reopen(): Promise<Storage>;
  /**
   * Creates a second object for the same store, like another process. The object must not be open yet; the suite closes
   * it.
   */
  another(): Promise<Storage>;
  /** Closes and deletes the store. Also called after a case has failed. */
  destroy(): Promise<void>;
}

export interface StorageSuiteOptions {
  /** Declares a test, like `test` of node:test. */
  test: (name: string, fn: () => Promise<void>) => void;
  /** Creates a new, empty store, which can be open or not. */
  create: () => Promise<StorageUnderTest>;
}

/**
 * Declares a test for each case of the contract.
 * @example
 * storageSuite({ test: (name, fn) => void test(name, fn), create: createEmptyStore });
 */
export function storageSuite({ test, create }: StorageSuiteOptions): void {
  const testCase: DefineCase = (name, fn) =>
    test(name, async () => {
      const { storage, reopen, another, destroy } = await create();
      const others: Storage[] = [];
      try {
        await storage.open();
        await fn({
          storage,
          reopen: async () => {
            const reopened = await reopen();
            await reopened.open();
            return reopened;
          },
          another: async () => {
            const other = await another();
            others.push(other);
            return other;
          },
        });
      } finally {
        for (const other of others) await other.close();
        await destroy();
      }
    });
  transactionCases(testCase);
  lifecycleCases(testCase);
  ledgerCases(testCase);
  actionCases(testCase);
  erasureCases(testCase);
  valueCases(testCase);
  listCases(testCase);
  pendingActionCases(testCase);
  approvedActionCases(testCase);
  openActionCases(testCase);
  analyticsCases(testCase);
  directoryCases(testCase);
  deliveryCases(testCase);
  idempotencyCases(testCase);
  limitCases(testCase);
  pastActionCases(testCase);
  documentCases(testCase);
  sharingCases(testCase);
  processCases(testCase);
}
