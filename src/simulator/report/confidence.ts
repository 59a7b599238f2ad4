import { mean } from "./distribution.ts";

/** Student's t for 95%, two-sided, by degrees of freedom from 1 on; beyond the table the normal distribution's. */
const T_95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL_95 = 1.96;

/** A mean over seeds; the true one is within `plusMinus` of it in 95 of 100 cases. NaN where one seed does not tell. */
export interface Estimate {
  readonly mean: number;
  readonly plusMinus: number;
}

export function estimate(values: readonly number[]): Estimate {
  const middle = mean(values);
  const freedom = values.length - 1;
  if (freedom < 1) return { mean: middle, plusMinus: Number.NaN };
  const variance = values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / freedom;
  return { mean: middle, plusMinus: (T_95[freedom - 1] ?? NORMAL_95) * Math.sqrt(variance / values.length) };
}
