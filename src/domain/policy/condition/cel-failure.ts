/** An error of CEL. It is a value instead of an exception, because `||` and `&&` can absorb it. */
export class CelFailure {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
