/** What is said of many values. A value of Infinity stands for a request that never got there. */
export interface Distribution {
  readonly count: number;
  /** Of the finite ones; NaN if there are none. */
  readonly mean: number;
  /** Of all: Infinity where the quantile falls on a missed one. */
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export function distribution(values: readonly number[]): Distribution {
  const sorted = Float64Array.from(values).sort();
  return {
    count: sorted.length,
    mean: mean(values.filter(Number.isFinite)),
    p50: quantile(sorted, 0.5),
    p90: quantile(sorted, 0.9),
    p99: quantile(sorted, 0.99),
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** The smallest value that at least this share of all does not exceed (nearest rank). */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Standard deviation as a share of the mean; 0 where all are zero. */
export function variation(values: readonly number[]): number {
  const middle = mean(values);
  if (!(middle > 0)) return 0;
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2))) / middle;
}

/**
 * Jain's index of fairness, (Σx)² / (n·Σx²): 1 if all get the same, 1/n if one gets all.
 * R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness (1984).
 */
export function jainIndex(values: readonly number[]): number {
  const squares = values.reduce((sum, value) => sum + value * value, 0);
  const sum = values.reduce((total, value) => total + value, 0);
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares);
}
