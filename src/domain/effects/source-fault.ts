/** Thrown for a record of a log that cannot be read. */
export class SourceFault extends Error {
  /** Line of the file on which the record starts, counted from 1. */
  readonly line: number;
  constructor(line: number, message: string) {
    super(message);
    this.name = "SourceFault";
    this.line = line;
  }
}
