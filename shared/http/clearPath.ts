/** Refuses URL paths that two servers may read in different ways. */

/**
 * Sets the maximum number of nested levels of percent-encoding in a path. The check refuses a path with more levels.
 */
const DECODINGS_MAX = 4

/**
 * Tells whether a path stays free of dot segments, empty segments and control characters, in every way in which a
 * server may decode the path.
 */
export function isClearPath(path: string): boolean {
  let text = path
  for (let n = 0; n <= DECODINGS_MAX; n++) {
    if (!hasPlainSegments(text)) return false
    const decoded = decodedOnce(text)
    if (decoded === null) return false
    if (decoded === text) return true
    text = decoded
  }
  return false
}

function decodedOnce(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

function hasPlainSegments(path: string): boolean {
  // The code normalises the path, because some servers turn U+FF0E into a dot and U+FF0F into a slash.
  const folded = path.normalize('NFKC')
  if (/\p{Cc}/u.test(folded)) return false
  const segments = folded.slice(1).split(/[/\\]/)
  return segments.every((segment, n) => {
    const [name = ''] = segment.split(';', 1)
    const isEmpty = name.replace(/[.\s]/g, '') === ''
    return !isEmpty || (segment === '' && n === segments.length - 1)
  })
}
