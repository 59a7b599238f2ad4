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
/**
 * Page's cumulative sum: errors to one side, less an allowance, in standard deviations. Past the threshold they are a new
 * level and no outliers: four gross ones in a row, or a few dozen of one deviation. A stall among good values is not.
 */
const DRIFT_ALLOWANCE = 0.75;
const DRIFT_THRESHOLD = 6;
/** Coefficients stay within this factor of their prior. */
export const PLAUSIBLE_FACTOR = 20;
/** Logarithm of the largest ratio of observed and predicted that can be true: from one end of the range to the other. */
const MOST_RATIO = 2 * Math.log(PLAUSIBLE_FACTOR);
/** Weight of one observation in the running error and noise. */
const RECENT_WEIGHT = 0.05;
/** What a single prediction adds to the running error at most, so that one absurd observation does not hide the rest. */
const MOST_ERROR = 10;
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
  #slowerDrift = 0;
  #fasterDrift = 0;
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
    this.#blend(FORGETTING);
    // By ratio: half as long and twice as long are equally far off. Jitter too is taken as a share of the prediction.
    const ratio = Math.max(-MOST_RATIO, Math.min(MOST_RATIO, Math.log(observed / predicted)));
    const noise = (this.#noise * predicted) ** 2;
    let variance = this.#project(z0 / byPrior, z1 / byPrior, z2 / byPrior) + noise;
    const deviation = Math.sqrt(variance) / predicted;
    let believed = Math.max(-SURPRISE_BOUND * deviation, Math.min(SURPRISE_BOUND * deviation, ratio));
    this.#noteQuality(ratio, Math.abs(observed - predicted) / observed);

    if (this.#isNewLevel(believed / deviation)) {
      this.#blend(1);
      variance = this.#project(z0 / byPrior, z1 / byPrior, z2 / byPrior) + noise;
      believed = ratio;
    }
    this.#update(predicted * Math.expm1(believed), variance);
    this.#observations++;
  }

  /** Nothing was observed for a while: goes part of the way (0..1) to a slowness, and trusts itself less. */
  relax(slowness: number, share: number): void {
    const by = (slowness / this.slowness) ** share;
    for (let at = 0; at < SIZE; at++) this.#setFactor(at, this.#factors[at]! * by);
    this.#blend(share);
  }

  #isNewLevel(deviations: number): boolean {
    this.#slowerDrift = Math.max(0, this.#slowerDrift + deviations - DRIFT_ALLOWANCE);
    this.#fasterDrift = Math.max(0, this.#fasterDrift - deviations - DRIFT_ALLOWANCE);
    if (this.#slowerDrift < DRIFT_THRESHOLD && this.#fasterDrift < DRIFT_THRESHOLD) return false;
    this.#slowerDrift = 0;
    this.#fasterDrift = 0;
    return true;
  }

  #noteQuality(ratio: number, relativeError: number): void {
    const weight = Math.max(RECENT_WEIGHT, 1 / (this.#observations + 1));
    this.#mape += weight * (Math.min(MOST_ERROR, relativeError) - this.#mape);
    const deviation = DEVIATION_RATIO * Math.min(Math.abs(ratio), SURPRISE_BOUND * this.#noise);
    const noise = this.#noise + RECENT_WEIGHT * (deviation - this.#noise);
    this.#noise = Math.min(MOST_NOISE, Math.max(LEAST_NOISE, noise));
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
