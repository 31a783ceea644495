export const BASE: readonly string[];
export function readNeeds(path: string): string[];
export function missingNeeds(path: string): string[];
export const FOLDERS: readonly string[];
