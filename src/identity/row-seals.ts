import { Refusal } from "../contract/errors.ts";
import type { Vault } from "../contract/core-host.ts";
import type { Logger } from "../contract/host.ts";
import { describeSealedRow, SEALED_MEMBERS, type RowSeals, type SealedTable } from "../contract/row-seals.ts";
import type { LedgerHead } from "../contract/storage.ts";
import { canonicalBytes } from "../domain/canonical.ts";
import { NO_FOLLOWED_ENTRIES } from "../domain/followed-digest.ts";
import { equalBytes, toHex, utf8 } from "../domain/hash.ts";
import type { JsonValue } from "../domain/json.ts";
import { EMPTY_ROOT } from "../domain/merkle.ts";

type Row = Readonly<Record<string, unknown>>;

export function createRowSeals(vault: Pick<Vault, "mac">, log: Pick<Logger, "error">): RowSeals {
  function seal(table: SealedTable, row: Row): string {
    const members = SEALED_MEMBERS[table].map((name) => row[name] as JsonValue);
    return toHex(vault.mac(`row/${table}`, canonicalBytes(members)));
  }

  function isGenuine(table: SealedTable, row: Row): boolean {
    try {
      return equalBytes(utf8(seal(table, row)), utf8(String(row["seal"])));
    } catch {
      // The service writes only values that have a canonical form.
      return false;
    }
  }

  function matches(table: SealedTable, row: Row): boolean {
    if (isGenuine(table, row)) return true;
    log.error(
      `${describeSealedRow(table, row as never)} was changed in the store outside the service; run assent audit`,
    );
    return false;
  }

  function sealHead({ size, root, policy_set, epoch, followed_digest }: Omit<LedgerHead, "seal">): string {
    return toHex(
      vault.mac("ledger-head", canonicalBytes([size, toHex(root), policy_set, epoch, toHex(followed_digest)])),
    );
  }

  function isOwnHead(head: LedgerHead): boolean {
    if (head.size === 0)
      return (
        equalBytes(head.root, EMPTY_ROOT) &&
        head.policy_set === null &&
        head.epoch === 0 &&
        equalBytes(head.followed_digest, NO_FOLLOWED_ENTRIES)
      );
    try {
      return equalBytes(utf8(sealHead(head)), utf8(head.seal));
    } catch {
      return false;
    }
  }

  return {
    seal,
    matches,
    sealHead,
    isOwnHead,
    assertMatches(table, row) {
      if (!matches(table, row))
        throw new Refusal(
          "STORE_ALTERED",
          `${describeSealedRow(table, row)} was changed in the store outside the service, so nothing was done; the operator has to run assent audit`,
        );
    },
  };
}
