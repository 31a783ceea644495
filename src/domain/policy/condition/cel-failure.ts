/** The error value of CEL. A value and not an exception, because `||` and `&&` can absorb it. */
export class CelFailure {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
