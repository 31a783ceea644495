/** Failures of the primary: how they start and end, and how long they may interrupt decisions. */
import { postgresProcesses, signal, signalMember, type Cluster, type Member } from "./cluster.ts";

/** The TTL in deploy/patroni/patroni.yml, in milliseconds. */
const TTL = 20_000;

export interface Disturbance {
  name: string;
  /** Maximum time until decisions continue, in milliseconds. */
  goal: number;
  begin(cluster: Cluster, primary: Member): void | Promise<void>;
  /** Called when decisions continue. */
  end?(cluster: Cluster, primary: Member): void;
}

const CRASH: Disturbance = {
  name: "Postgres killed",
  goal: 15_000,
  begin: (_, primary) => {
    for (const pid of postgresProcesses(primary)) signal(pid, "SIGKILL");
  },
};

const SWITCHOVER: Disturbance = {
  name: "switchover",
  goal: 15_000,
  begin: (cluster, primary) => cluster.switchover(primary),
};

/** A machine that loses power: no process gives up the leader key. */
const MACHINE: Disturbance = {
  name: "Postgres and Patroni killed",
  goal: TTL + 10_000,
  begin: (_, primary) => signalMember(primary, "SIGKILL"),
  end: (cluster, primary) => cluster.restart(primary),
};

/** A frozen virtual machine: Patroni and every process of Postgres stop, and resume after the failover. */
const PAUSE: Disturbance = {
  name: "Postgres and Patroni paused",
  goal: TTL + 10_000,
  begin: (_, primary) => signalMember(primary, "SIGSTOP"),
  end: (_, primary) => signalMember(primary, "SIGCONT"),
};

const ISOLATION: Disturbance = {
  name: "disconnected from everything",
  goal: TTL + 10_000,
  begin: (_, { links }) => {
    for (const link of [...links.etcd, ...links.peers, ...links.clients]) link.disconnect();
  },
  end: (_, { links }) => {
    for (const link of [...links.etcd, ...links.peers, ...links.clients]) link.reconnect();
  },
};

/** Clients still reach the old primary, which cannot replicate. */
const PARTITION: Disturbance = {
  name: "disconnected from etcd and standbys",
  goal: TTL + 10_000,
  begin: (_, { links }) => {
    for (const link of [...links.etcd, ...links.peers]) link.disconnect();
  },
  end: (_, { links }) => {
    for (const link of [...links.etcd, ...links.peers]) link.reconnect();
  },
};

/**
 * The order mixes the kinds, because one failure may affect the recovery from the next. Twenty contain five of each
 * kind.
 */
const KINDS: readonly (readonly Disturbance[])[] = [[CRASH, MACHINE], [PAUSE], [SWITCHOVER], [ISOLATION, PARTITION]];

/**
 * Returns the first `count` disturbances: a kill, a pause, a switchover and a disconnection in turn. The variants of
 * each kind alternate.
 */
export function plan(count: number): Disturbance[] {
  return Array.from({ length: count }, (_, i) => {
    const variants = KINDS[i % KINDS.length] as readonly Disturbance[];
    return variants[Math.floor(i / KINDS.length) % variants.length] as Disturbance;
  });
}
