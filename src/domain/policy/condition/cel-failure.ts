/** The error value of CEL. An ordinary value and no exception, because `||` and `&&` can absorb it. */
export class CelFailure {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
