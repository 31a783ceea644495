/** Thrown for a record of a log that cannot be read. */
export class SourceFault extends Error {
  /** Number of the record's first line in the file, starting at 1. */
  readonly line: number;
  constructor(line: number, message: string) {
    super(message);
    this.name = "SourceFault";
    this.line = line;
  }
}
