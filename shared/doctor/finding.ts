/**
 * Defines the findings of the doctor (the service's self-check). Each finding is about one condition for the service to
 * receive mail, take payments and send replies.
 */

/** Lists the areas of findings in the order in which the table of the doctor (the self-check) shows them. */
export const AREAS = [
  'settings',
  'database',
  'storage',
  'web',
  'mail in',
  'mail out',
  'policies',
  'chain',
  'webhooks',
] as const
export type Area = (typeof AREAS)[number]

/**
 * Names the verdict of a finding. The verdict `warning` means that the checked part of the service works, but not as it
 * should. The verdict `broken` means that mail or payments of other people fail.
 */
type Verdict = 'ok' | 'warning' | 'broken'

export type Finding = {
  area: Area
  /** Names the checked part or setting of the service. */
  check: string
  /** States in one sentence what the check of the service found, without a secret. */
  found: string
  verdict: Verdict
  /**
   * Holds a line for the operator: a line of a DNS zone, a line of the environment, or a command. A finding without
   * `fix` does not ask the operator for a change.
   */
  fix?: string
}

/** Returns three functions that make the doctor's findings (the results of the self-check) for one area. */
export const findingsIn = (area: Area) => ({
  ok: (check: string, found: string): Finding => ({ area, check, found, verdict: 'ok' }),
  warning: (check: string, found: string, fix?: string): Finding =>
    withFix({ area, check, found, verdict: 'warning' }, fix),
  broken: (check: string, found: string, fix?: string): Finding =>
    withFix({ area, check, found, verdict: 'broken' }, fix),
})

const withFix = (finding: Finding, fix: string | undefined): Finding =>
  fix === undefined ? finding : { ...finding, fix }

export const isAnyBroken = (findings: readonly Finding[]): boolean =>
  findings.some(({ verdict }) => verdict === 'broken')

const SHOWN_CHARS = 100

/**
 * Shortens a text from outside (such as a server's response) for a finding. The result is one line of at most 100
 * characters.
 */
export const shown = (text: string): string => {
  const line = text.slice(0, SHOWN_CHARS).replace(/\p{C}/gu, '?')
  return JSON.stringify(text.length > SHOWN_CHARS ? `${line}…` : line)
}

/** Writes a number with its noun, for example `1 day` or `2 days`. */
export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`
