/** Computes an upper bound of the rejection rate from a number of votes. */

/**
 * Returns the exact one-sided (Clopper-Pearson) upper bound of a rate. If the rate is the returned bound, at most
 * `rejections` occur in `trials` with the probability 1 - confidence. Returns 1 if there are no trials or only
 * rejections.
 * @example
 * upperRejectionBound(0, 59, 0.95); // 0.0495…
 */
export function upperRejectionBound(rejections: number, trials: number, confidence = 0.95): number {
  if (trials <= 0 || rejections >= trials) return 1;
  let [low, high] = [0, 1];
  // After 60 halvings, the interval is below the precision of a double.
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (atMostProbability(rejections, trials, middle) > 1 - confidence) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * Returns the probability of at most `k` successes in `n` trials at the rate `p`. Adds logarithms to prevent underflow.
 */
function atMostProbability(k: number, n: number, p: number): number {
  const [success, failure] = [Math.log(p), Math.log1p(-p)];
  let sum = 0;
  let choose = 0;
  for (let i = 0; i <= k; i++) {
    sum += Math.exp(choose + i * success + (n - i) * failure);
    choose += Math.log(n - i) - Math.log(i + 1);
  }
  return sum;
}
