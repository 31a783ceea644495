/**
 * A process with a wrong clock that acquires a shared job and never releases it: `duty.ts <URL of Postgres>
 * <milliseconds that its clock is ahead>`. It prints once whether it acquired the job, and keeps running.
 */
const [url = "", ahead = "0"] = process.argv.slice(2);
const now = Date.now;
Date.now = () => now() + Number(ahead);
const { postgresStorage } = await import("../../../plugins/storage-postgres/index.ts");
const { createLeaderLease: createDuty } = await import("../../../src/cluster/leader-lease.ts");

const storage = postgresStorage({ url });
await storage.open();
process.stdout.write(`${await createDuty(storage, "job", "the child").isLeader()}\n`);
setInterval(() => {}, 1000);

export {};
