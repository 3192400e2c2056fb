/**
 * Finds many byte strings (needles) in one pass over a text (Aho and Corasick, "Efficient string matching", 1975). The
 * search time grows with the sum of the lengths of text and needles, and never with their product. Therefore a server
 * that knows the secrets (the needles) cannot slow down the search by its response.
 */

/**
 * Describes a range of a text. The field `start` is the index of the first character, and `end` is the index after the
 * last character.
 */
export type Range = { start: number; end: number }

const BYTES = 256

/**
 * Searches texts for a fixed set of byte strings. Needles and texts are binary strings, in which one character is one
 * byte.
 */
export class NeedleSearch {
  readonly #edges: Edges
  /**
   * Maps each node of the search tree to its fallback node. This node stands for the longest proper suffix of the
   * node's text that is also the start of a needle (a byte string to find).
   */
  readonly #fallback: Int32Array
  /**
   * Maps each node of the search tree to the length of the longest needle that ends at the node. The value 0 means that
   * no needle ends at the node.
   */
  readonly #longest: Int32Array

  constructor(needles: readonly string[]) {
    const nodesMax = 1 + needles.reduce((sum, { length }) => sum + length, 0)
    const tree = growTree(needles, nodesMax)
    this.#edges = tree.edges
    this.#longest = tree.longest
    this.#fallback = linkSuffixes(tree)
  }

  /**
   * Returns the ranges of a text that needles (byte strings to find) cover, in order. The function joins overlapping or
   * touching ranges into one range.
   */
  find(text: string): Range[] {
    const found: Range[] = []
    let node = 0
    for (let at = 0; at < text.length; at++) {
      const byte = text.charCodeAt(at)
      let next = this.#edges.get(node, byte)
      while (next === 0 && node !== 0) {
        node = this.#fallback[node]!
        next = this.#edges.get(node, byte)
      }
      node = next
      const length = this.#longest[node]!
      if (length > 0) cover(found, at + 1 - length, at + 1)
    }
    return found
  }
}

/**
 * Adds a range that ends after all ranges in the list. The function joins overlapping or touching ranges into one
 * range.
 */
function cover(found: Range[], start: number, end: number): void {
  let first = start
  for (let last = found.at(-1); last !== undefined && last.end >= first; last = found.at(-1)) {
    first = Math.min(first, last.start)
    found.pop()
  }
  found.push({ start: first, end })
}

type Tree = {
  edges: Edges
  longest: Int32Array
  parent: Int32Array
  byte: Uint8Array
  count: number
}

/**
 * Builds the search tree of all needles (byte strings to find). Each edge of the tree is one byte, and node 0 is the
 * root.
 */
function growTree(needles: readonly string[], nodesMax: number): Tree {
  const edges = new Edges(nodesMax)
  const longest = new Int32Array(nodesMax)
  const parent = new Int32Array(nodesMax)
  const byte = new Uint8Array(nodesMax)
  let count = 1
  for (const needle of needles) {
    let node = 0
    for (let at = 0; at < needle.length; at++) {
      const code = needle.charCodeAt(at)
      let next = edges.get(node, code)
      if (next === 0) {
        next = count++
        edges.set(node, code, next)
        parent[next] = node
        byte[next] = code
      }
      node = next
    }
    longest[node] = needle.length
  }
  return { edges, longest, parent, byte, count }
}

/**
 * Links each node of the search tree to the node of its longest suffix. The function handles nodes of shorter texts
 * before nodes of longer texts. Each node also takes over the needle (byte string to find) that ends at its suffix
 * node.
 */
function linkSuffixes({ edges, longest, parent, byte, count }: Tree): Int32Array {
  const fallback = new Int32Array(count)
  for (const node of byDepth(parent, count)) {
    const above = parent[node]!
    if (above !== 0) {
      let from = fallback[above]!
      let next = edges.get(from, byte[node]!)
      while (next === 0 && from !== 0) {
        from = fallback[from]!
        next = edges.get(from, byte[node]!)
      }
      fallback[node] = next
    }
    if (longest[node] === 0) longest[node] = longest[fallback[node]!]!
  }
  return fallback
}

/**
 * Returns all nodes of the search tree except the root, in the order of their depth. One pass finds the depths of all
 * tree nodes, because a parent always has a lower number than its child.
 */
function byDepth(parent: Int32Array, count: number): Int32Array {
  const depth = new Int32Array(count)
  let deepest = 0
  for (let node = 1; node < count; node++) {
    depth[node] = depth[parent[node]!]! + 1
    deepest = Math.max(deepest, depth[node]!)
  }
  const starts = new Int32Array(deepest + 2)
  for (let node = 1; node < count; node++) starts[depth[node]! + 1]!++
  for (let n = 1; n < starts.length; n++) starts[n]! += starts[n - 1]!
  const ordered = new Int32Array(count - 1)
  for (let node = 1; node < count; node++) ordered[starts[depth[node]!]!++] = node
  return ordered
}

/**
 * Holds the edges of a tree in a hash table with open addressing. The hash table is at most half full, so that a
 * look-up takes about two steps.
 */
class Edges {
  readonly #keys: Float64Array
  readonly #targets: Int32Array
  readonly #mask: number
  readonly #shift: number

  constructor(nodesMax: number) {
    const bits = Math.ceil(Math.log2(nodesMax * 2))
    this.#keys = new Float64Array(2 ** bits)
    this.#targets = new Int32Array(2 ** bits)
    this.#mask = 2 ** bits - 1
    this.#shift = 32 - bits
  }

  /**
   * Returns the child of a node of the search tree for the next byte. The result 0 means that the node has no such
   * child.
   */
  get(node: number, byte: number): number {
    return this.#targets[this.#place(node * BYTES + byte + 1)]!
  }

  set(node: number, byte: number, target: number): void {
    const key = node * BYTES + byte + 1
    const place = this.#place(key)
    this.#keys[place] = key
    this.#targets[place] = target
  }

  #place(key: number): number {
    // Computes the index of a key in the hash table. The high bits of the multiplied key depend on every bit of the key
    // (Knuth, TAOCP 3, §6.4).
    let place = Math.imul(key, 0x9e3779b1) >>> this.#shift
    while (this.#keys[place] !== 0 && this.#keys[place] !== key) place = (place + 1) & this.#mask
    return place
  }
}
