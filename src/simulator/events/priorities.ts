/**
 * Among events of one moment: what engines did comes first, then news of them, then what it makes routers do, then
 * requests, old ones before new ones; samples see the result.
 */
export const PRIORITY = {
  incident: 0,
  stepEnds: 1,
  news: 2,
  routerWakes: 3,
  requestReaches: 4,
  requestArrives: 5,
  sample: 6,
} as const;
