/** Number of coefficients. */
const SIZE = 3;
/** Prior standard deviation of what all coefficients share (a faster or slower machine), and of each alone. */
const SHARED_DEVIATION = 0.6;
const OWN_DEVIATION = 0.25;
/** Relative noise of an observation before any was seen, and the range it is learned in. */
const FIRST_NOISE = 0.2;
const LEAST_NOISE = 0.03;
const MOST_NOISE = 0.5;
/**
 * How far the covariance goes back towards the prior's with each observation. It is forgetting that cannot wind up
 * where nothing is observed; at a noise of 0.2 one observation then moves the estimate by about a tenth of its error.
 */
const FORGETTING = 0.001;
/** Errors beyond this many standard deviations count as if they were this large. */
const SURPRISE_BOUND = 2.5;
/** So many of these in a row, all to one side, are a new level and no outliers. */
const SURPRISES_OF_NEW_LEVEL = 5;
/** Coefficients stay within this factor of their prior. */
export const PLAUSIBLE_FACTOR = 20;
/** Weight of one observation in the running error and noise. */
const RECENT_WEIGHT = 0.05;
/** Standard over mean absolute deviation of a normal distribution, √(π/2). */
const DEVIATION_RATIO = 1.2533;

function priorCovariance(at: number): number {
  const own = Math.floor(at / SIZE) === at % SIZE ? OWN_DEVIATION ** 2 : 0;
  return SHARED_DEVIATION ** 2 + own;
}

/**
 * Recursive least squares of `y = Σ φᵢ · zᵢ` with zᵢ ≥ 0: a feature times its prior coefficient, so that each φᵢ starts
 * at 1 and is the factor on its prior. Each observation is divided by what the prior predicts, so errors are relative.
 * Outliers are bounded as in Huber's estimator, yet a lasting change is followed within a few observations. Predictions
 * are positive and finite wherever some zᵢ is.
 */
export class ScaledRegression {
  readonly #factors = new Float64Array(SIZE).fill(1);
  readonly #covariance = Float64Array.from({ length: SIZE * SIZE }, (_, at) => priorCovariance(at));
  readonly #gain = new Float64Array(SIZE);
  #noise = FIRST_NOISE;
  /** Bounded errors in a row; positive: slower than predicted. */
  #surprises = 0;
  #mape = 0;
  #observations = 0;

  get observations(): number {
    return this.#observations;
  }

  /** Mean absolute error of the predictions made before each observation, as a share of it; null before the first. */
  get mape(): number | null {
    return this.#observations === 0 ? null : this.#mape;
  }

  factor(at: 0 | 1 | 2): number {
    return this.#factors[at]!;
  }

  /** How much slower than the prior all in all: the geometric mean of the factors. */
  get slowness(): number {
    return Math.cbrt(this.#factors[0]! * this.#factors[1]! * this.#factors[2]!);
  }

  predict(z0: number, z1: number, z2: number): number {
    return this.#factors[0]! * z0 + this.#factors[1]! * z1 + this.#factors[2]! * z2;
  }

  /** Anything but a positive finite `y` is ignored. */
  observe(z0: number, z1: number, z2: number, y: number): void {
    const byPrior = z0 + z1 + z2;
    if (!(byPrior > 0) || !(y > 0) || !Number.isFinite(byPrior) || !Number.isFinite(y)) return;
    const observed = y / byPrior;
    const predicted = this.predict(z0, z1, z2) / byPrior;
    const error = observed - predicted;
    this.#blend(FORGETTING);
    // A machine twice as slow jitters twice as much.
    const noise = this.#noise * predicted;
    let variance = this.#project(z0 / byPrior, z1 / byPrior, z2 / byPrior) + noise * noise;
    let bound = SURPRISE_BOUND * Math.sqrt(variance);

    if (Math.abs(error) <= bound) this.#surprises = 0;
    else this.#surprises = Math.max(0, this.#surprises * Math.sign(error)) * Math.sign(error) + Math.sign(error);
    if (Math.abs(this.#surprises) >= SURPRISES_OF_NEW_LEVEL) {
      this.#surprises = 0;
      this.#blend(1);
      variance = this.#project(z0 / byPrior, z1 / byPrior, z2 / byPrior) + noise * noise;
      bound = Number.POSITIVE_INFINITY;
    }
    this.#update(Math.max(-bound, Math.min(bound, error)), variance);

    const weight = Math.max(RECENT_WEIGHT, 1 / (this.#observations + 1));
    this.#mape += weight * (Math.abs(error) / observed - this.#mape);
    const deviation = (DEVIATION_RATIO * Math.min(Math.abs(error), SURPRISE_BOUND * noise)) / predicted;
    this.#noise = Math.min(MOST_NOISE, Math.max(LEAST_NOISE, this.#noise + RECENT_WEIGHT * (deviation - this.#noise)));
    this.#observations++;
  }

  /** Nothing was observed for a while: goes part of the way (0..1) to a slowness, and trusts itself less. */
  relax(slowness: number, share: number): void {
    const by = (slowness / this.slowness) ** share;
    for (let at = 0; at < SIZE; at++) this.#setFactor(at, this.#factors[at]! * by);
    this.#blend(share);
  }

  #setFactor(at: number, factor: number): void {
    this.#factors[at] = Math.min(PLAUSIBLE_FACTOR, Math.max(1 / PLAUSIBLE_FACTOR, factor));
  }

  #blend(share: number): void {
    for (let at = 0; at < SIZE * SIZE; at++)
      this.#covariance[at]! += share * (priorCovariance(at) - this.#covariance[at]!);
  }

  /** Sets the gain to P·x and returns xᵀ·P·x. */
  #project(x0: number, x1: number, x2: number): number {
    const p = this.#covariance;
    const gain = this.#gain;
    for (let row = 0; row < SIZE; row++)
      gain[row] = p[row * SIZE]! * x0 + p[row * SIZE + 1]! * x1 + p[row * SIZE + 2]! * x2;
    return x0 * gain[0]! + x1 * gain[1]! + x2 * gain[2]!;
  }

  #update(error: number, variance: number): void {
    const gain = this.#gain;
    for (let row = 0; row < SIZE; row++) {
      this.#setFactor(row, this.#factors[row]! + (gain[row]! * error) / variance);
      for (let column = 0; column < SIZE; column++)
        this.#covariance[row * SIZE + column]! -= (gain[row]! * gain[column]!) / variance;
    }
  }
}
