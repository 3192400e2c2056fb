/** Computes with the transformation matrices and boxes of PDF (ISO 32000-1 §8.3). */

/** Describes a transformation matrix `[a b c d e f]` of PDF. */
export type Matrix = readonly [number, number, number, number, number, number]
/** Holds the edges of a box: left, bottom, right and top. */
export type Box = readonly [number, number, number, number]

export const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0]
/**
 * Maps the angle by which a viewer turns a page clockwise, in degrees, to the matrix of the turn (ISO 32000-1
 * §7.7.3.3).
 */
export const TURNS: ReadonlyMap<number, Matrix> = new Map([
  [90, [0, -1, 1, 0, 0, 0]],
  [180, [-1, 0, 0, -1, 0, 0]],
  [270, [0, 1, -1, 0, 0, 0]],
])
export const ENDLESS: Box = [
  Number.NEGATIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.POSITIVE_INFINITY,
  Number.POSITIVE_INFINITY,
]

/** Multiplies two transformation matrices of PDF. The product first applies `inner` and then `outer`. */
export const multiply = (outer: Matrix, inner: Matrix): Matrix => [
  outer[0] * inner[0] + outer[2] * inner[1],
  outer[1] * inner[0] + outer[3] * inner[1],
  outer[0] * inner[2] + outer[2] * inner[3],
  outer[1] * inner[2] + outer[3] * inner[3],
  outer[0] * inner[4] + outer[2] * inner[5] + outer[4],
  outer[1] * inner[4] + outer[3] * inner[5] + outer[5],
]

/** Makes a matrix from the arguments of a PDF operator. @returns null if the arguments are no matrix. */
export function matrixOf(given: unknown): Matrix | null {
  const numbers = given == null ? [] : Array.from(given as ArrayLike<unknown>, Number)
  return numbers.length === 6 && numbers.every(Number.isFinite)
    ? (numbers as unknown as Matrix)
    : null
}

/** Transforms a box by a matrix, and returns the upright box around the result. */
export function boxOf(matrix: Matrix, [left, bottom, right, top]: Box): Box {
  const xs: number[] = []
  const ys: number[] = []
  for (const x of [left, right]) {
    for (const y of [bottom, top]) {
      xs.push(matrix[0] * x + matrix[2] * y + matrix[4])
      ys.push(matrix[1] * x + matrix[3] * y + matrix[5])
    }
  }
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]
}

export const intersect = (one: Box, other: Box): Box => [
  Math.max(one[0], other[0]),
  Math.max(one[1], other[1]),
  Math.min(one[2], other[2]),
  Math.min(one[3], other[3]),
]

export const holds = (box: Box, x: number, y: number): boolean =>
  x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3]
