/** Returns as many texts from the start of a list as have together at most `maxLength` characters. */
export function firstWithin(texts: readonly string[], maxLength: number): string[] {
  let length = 0
  let count = 0
  for (const text of texts) {
    length += text.length
    if (length > maxLength) break
    count++
  }
  return texts.slice(0, count)
}
