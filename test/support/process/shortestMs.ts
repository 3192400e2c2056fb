/** Sets how many times `shortestMs` measures at most. */
const RUNS = 5

/**
 * Measures something up to five times, until a measured time is below `limitMs`. A pause of the machine makes only some
 * of these times longer, whereas a defect of the service makes all of them longer.
 * @param measure does the work once, and returns its time in milliseconds
 * @returns the shortest time
 */
export async function shortestMs(limitMs: number, measure: () => Promise<number>): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY
  for (let n = 0; n < RUNS && shortest >= limitMs; n++) {
    shortest = Math.min(shortest, await measure())
  }
  return shortest
}
