/** Makes random choices that depend only on a seed. */
export type Random = {
  /** Returns a random number of at least 0 and below 1. */
  next(): number
  /** Returns a random whole number between the two bounds, which are included. */
  int(min: number, max: number): number
  pick<Item>(items: readonly Item[]): Item
  chance(probability: number): boolean
}

/** Creates a stream of random choices. Streams with the same seed and different names are independent of each other. */
export function createRandom(seed: number, stream: string): Random {
  let state = mix(seed, stream)
  // The following algorithm is mulberry32.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    int: (min, max) => min + Math.floor(next() * (max - min + 1)),
    pick: (items) => items[Math.floor(next() * items.length)]!,
    chance: (probability) => next() < probability,
  }
}

/** Hashes the name of a random stream by FNV-1a, starting from the seed. */
function mix(seed: number, stream: string): number {
  let hash = (2166136261 ^ seed) >>> 0
  for (const character of stream) hash = Math.imul(hash ^ character.codePointAt(0)!, 16777619)
  return hash | 0
}
