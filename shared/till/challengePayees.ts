const PAYEES_MAX = 20

/** The payTo addresses in a 402 body, in lower case; empty when it is no challenge. */
export function challengePayees(text: string): string[] {
  let accepts: unknown
  try {
    accepts = JSON.parse(text)?.accepts
  } catch {
    return []
  }
  if (!Array.isArray(accepts)) return []
  const payees = accepts.flatMap((entry: { payTo?: unknown } | null) =>
    typeof entry?.payTo === 'string' && /^0x[0-9a-f]{40}$/i.test(entry.payTo)
      ? [entry.payTo.toLowerCase()]
      : [],
  )
  return [...new Set(payees)].slice(0, PAYEES_MAX)
}
