/** A check that a feature adds to `GET /readyz`. It does not affect readiness. */
export interface HealthCheck {
  /** Name of the member in the response, such as `stops`. */
  readonly name: string;
  /**
   * Returns the state. Callers of the route are not authenticated, so it must contain nothing confidential. If it
   * rejects, the response contains the error.
   */
  read(): Promise<{ ok: boolean; detail: string; held: number }>;
}
