import { readFileSync, readdirSync } from "node:fs";

/** CPU seconds (user and system) that a process and its descendants have used so far. Linux only. */
export function cpuSeconds(rootPid: number): number {
  const parents = new Map<number, { parent: number; ticks: number }>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      // The command name may hold spaces and brackets: fields count from the last closing bracket.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      parents.set(pid, { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) });
    } catch {
      // The process ended between the listing and the reading.
    }
  }
  let ticks = 0;
  for (const [pid, { ticks: own }] of parents) {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parents.get(at)?.parent) {
      if (at === rootPid) {
        ticks += own;
        break;
      }
    }
  }
  return ticks / 100;
}

/** Resident bytes of one process. */
export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
}
