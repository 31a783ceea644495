/** Detects when a new primary accepts writes, bypassing haproxy, the links and the service. */
import { setTimeout as pause } from "node:timers/promises";
import type { Cluster, Member } from "./cluster.ts";

/** Pause between two attempts at one member, and the timeout of an attempt. Milliseconds. */
const EVERY = 50;
const LONGEST = 1_000;
const TIMELINE = "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint";

export interface PrimaryWatch {
  /** Resolves to the time of the first commit on a newer timeline, from `performance.now()`. */
  accepted: Promise<number>;
  stop(): void;
}

/** Creates the table that the watch writes to. */
export async function preparePrimaryWatch(cluster: Cluster): Promise<void> {
  const primary = await cluster.primary();
  if (primary === null) throw new Error("the cluster has no primary");
  await cluster.run(primary, "postgres", (client) =>
    client.unsafe("create table if not exists writes (timeline bigint)"),
  );
}

export async function timelineOf(cluster: Cluster, primary: Member): Promise<number> {
  return cluster.run(primary, "postgres", async (client) =>
    Number((await client.unsafe(`select ${TIMELINE} as timeline`))[0]?.["timeline"]),
  );
}

/** Writes to every member until one of them commits on a timeline above `timeline`, including replication. */
export function watchPrimary(cluster: Cluster, timeline: number): PrimaryWatch {
  let isOver = false;
  const accepted = new Promise<number>((resolve) => {
    const attempt = async (member: Member): Promise<void> => {
      const client = cluster.connect(member, "postgres", LONGEST / 1000);
      const tried = client
        .unsafe(`insert into writes select ${TIMELINE} returning timeline`)
        .then((rows) => Number(rows[0]?.["timeline"]))
        .catch(() => 0);
      const reached = await Promise.race([tried, pause(LONGEST, 0)]);
      void client.end({ timeout: 0 }).catch(() => undefined);
      if (reached <= timeline) return;
      isOver = true;
      resolve(performance.now());
    };
    for (const member of cluster.members)
      void (async () => {
        while (!isOver) {
          await attempt(member);
          await pause(EVERY);
        }
      })();
  });
  return { accepted, stop: () => void (isOver = true) };
}
