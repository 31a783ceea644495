/**
 * `assent/coverage`: what this feature exports to plugins that provide effect sources and name `coverage` in `needs`.
 */
export { parseCsvLine, readCsvRecords } from "./sources/csv-records.ts";
export { readJsonRecords } from "./sources/json-records.ts";
export { findActionId, findRecordString, readRecordString } from "./sources/record-members.ts";
export { SourceFault } from "./sources/source-fault.ts";
export { createEffectSources, effectSourceOptions } from "./sources/source-options.ts";
