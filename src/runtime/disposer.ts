/** Closes one component of a service. */
export interface Disposer {
  name: string;
  close(): Promise<void>;
}
