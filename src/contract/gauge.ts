/** A number that a plugin adds to `GET /metrics`. */
export interface Gauge {
  /** Name of the metric. Begins with `assent_`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /**
   * Returns the current values. Called at each scrape. If it rejects, the response omits the metric. The number of
   * label values must be bounded.
   */
  read(): Promise<readonly { labels: Readonly<Record<string, string>>; value: number }[]>;
}
