/** A number that a plugin adds to `GET /metrics`. */
export interface Gauge {
  /** Begins with `assent_`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Called at each scrape. If it rejects, the metric is omitted. The number of label values must be bounded. */
  read(): Promise<readonly { labels: Readonly<Record<string, string>>; value: number }[]>;
}
