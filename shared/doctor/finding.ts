/** The findings of the doctor: one for each thing that must be right before strangers can write, pay and be answered. */

/** In the order of the table. */
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

/** `warning`: it works, and not as it should. `broken`: strangers notice. */
type Verdict = 'ok' | 'warning' | 'broken'

export type Finding = {
  area: Area
  /** The thing that was looked at. */
  check: string
  /** One sentence without a secret. */
  found: string
  verdict: Verdict
  /** The line to change: of a zone, of the environment, or a command. Absent: nothing is to be changed. */
  fix?: string
}

/** Makes the findings of one area. */
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

/** A stranger's text in a finding: one line of at most 100 characters. */
export const shown = (text: string): string => {
  const line = text.slice(0, SHOWN_CHARS).replace(/\p{C}/gu, '?')
  return JSON.stringify(text.length > SHOWN_CHARS ? `${line}…` : line)
}

/** `1 day`, `2 days`. */
export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`
