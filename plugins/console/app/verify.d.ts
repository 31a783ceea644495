/** For the tests: what `verify.js` exports. */
export interface Checkpoint {
  origin: string;
  size: number;
  root: Uint8Array;
}
export declare const canVerify: boolean;
export declare function canonicalText(value: unknown): string;
export declare function requestHash(action: Record<string, unknown>): Promise<string>;
export declare function hashLeaf(entry: Uint8Array): Promise<Uint8Array>;
export declare function rootFromInclusion(
  index: number,
  size: number,
  leaf: Uint8Array,
  path: Uint8Array[],
): Promise<Uint8Array | null>;
export declare function parseVkey(text: string): Promise<{ name: string; id: Uint8Array; publicKey: Uint8Array }>;
export declare function openCheckpoint(note: string, vkey: string): Promise<Checkpoint>;
export declare function verifyProof(
  text: string,
  leaf: Uint8Array,
  vkey: string,
): Promise<{ index: number; checkpoint: Checkpoint; vkey: string }>;
export interface KeyChange {
  leaf: string;
  index: number;
  path: string[];
}
export declare function openUnderPin(
  note: string,
  pin: string,
  changes: readonly KeyChange[],
): Promise<{ checkpoint: Checkpoint; vkey: string }>;
export declare function verifyAnswer(
  proof: {
    leaf: string;
    index: number;
    path: string[];
    checkpoint: string;
    log_keys?: KeyChange[];
    opening?: { salt: string | null; request: string | null } | null;
  },
  hash: string,
  pin: string,
): Promise<{ index: number; checkpoint: Checkpoint; vkey: string; entry: Record<string, unknown>; request: unknown }>;
export declare function verifyConsistency(claim: {
  first: number;
  second: number;
  firstRoot: Uint8Array;
  secondRoot: Uint8Array;
  path: Uint8Array[];
}): Promise<boolean>;
