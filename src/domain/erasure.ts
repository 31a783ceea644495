/**
 * Parts of an action that can be erased before its request, each after its own retention period. The erasure of the
 * request erases all other parts.
 */
export const ERASABLE_PARTS = ["result", "meta", "questions"] as const;
export type ErasablePart = (typeof ERASABLE_PARTS)[number];
