import { CASES } from "./cases.ts";
import type { Case } from "./cases.ts";
import { ABLATIONS, BASELINES, KVASIR } from "./contenders.ts";
import type { Contender } from "./contenders.ts";
import type { Job, Measures } from "./measure.ts";
import type { Pool } from "./pool.ts";

/** Of a case: what each router gave, by seed. */
export interface Outcome {
  readonly case: Case;
  readonly kvasir: readonly Measures[];
  readonly baselines: readonly { readonly name: string; readonly router: string; readonly runs: readonly Measures[] }[];
  readonly ablations: readonly { readonly router: string; readonly runs: readonly Measures[] }[];
}

export interface ContestOptions {
  readonly seeds: readonly number[];
  /** Options are sought with another chance than they are compared with. */
  readonly tuningSeed: number;
  readonly traceDirectory: string;
  readonly limit: number | null;
}

export type OnDone = (done: number, of: number, job: Job) => void;

/** Finds the options of each baseline, then runs everything. */
export async function contest(
  cases: readonly Case[],
  options: ContestOptions,
  pool: Pool,
  onDone: OnDone,
): Promise<readonly Outcome[]> {
  const tuned = new Set(cases.flatMap(({ tunedOn }) => tunedOn ?? []));
  const tuningJob = (caseKey: string, router: string): Job => job(caseKey, router, options.tuningSeed, options);
  await pool.run(
    [...tuned].flatMap((key) =>
      BASELINES.filter(({ variants }) => variants.length > 1).flatMap(({ variants }) =>
        variants.map((variant) => tuningJob(key, variant)),
      ),
    ),
    onDone,
  );
  const best = (key: string, { variants }: Contender): string =>
    variants.length === 1
      ? variants[0]!
      : variants
          .map((variant) => ({ variant, ttftMs: pool.get(tuningJob(key, variant))["ttftMean"]! }))
          .sort((a, b) => a.ttftMs - b.ttftMs)[0]!.variant;
  const routersOf = ({ tunedOn }: Case) => ({
    baselines: tunedOn === null ? [] : BASELINES.map((each) => ({ name: each.name, router: best(tunedOn, each) })),
    ablations: tunedOn === null ? [] : ABLATIONS,
  });
  const jobs = cases.flatMap((each) => {
    const { baselines, ablations } = routersOf(each);
    return [KVASIR, ...baselines.map(({ router }) => router), ...ablations].flatMap((router) =>
      options.seeds.map((seed) => job(each.key, router, seed, options)),
    );
  });
  await pool.run(jobs, onDone);
  return cases.map((each) => {
    const { baselines, ablations } = routersOf(each);
    const runsOf = (router: string) => options.seeds.map((seed) => pool.get(job(each.key, router, seed, options)));
    return {
      case: each,
      kvasir: runsOf(KVASIR),
      baselines: baselines.map((one) => ({ ...one, runs: runsOf(one.router) })),
      ablations: ablations.map((router) => ({ router, runs: runsOf(router) })),
    };
  });
}

/** Those whose key matches, and those that they are measured by. */
export function chosenCases(only: string | undefined): readonly Case[] {
  if (only === undefined) return CASES;
  const pattern = new RegExp(only, "u");
  return CASES.filter(({ key }) => pattern.test(key));
}

function job(caseKey: string, router: string, seed: number, { traceDirectory, limit }: ContestOptions): Job {
  return { caseKey, router, seed, traceDirectory, limit };
}
