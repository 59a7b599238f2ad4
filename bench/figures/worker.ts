import { parentPort } from "node:worker_threads";
import { measure } from "./measure.ts";
import type { Job } from "./measure.ts";

parentPort!.on("message", (job: Job) => parentPort!.postMessage(measure(job), []));
