import { type Finding, findingsIn } from './finding.ts'

/**
 * Maps each section of a doctor's report (the result of the self-check) to the worker pool that checks the section. The
 * mapped worker pool has the settings for the check.
 */
export const SECTION_RUNNER = {
  service: 'webhooks',
  mail: 'outbound',
  chain: 'payments',
} as const

export type Section = keyof typeof SECTION_RUNNER
export const SECTIONS = Object.keys(SECTION_RUNNER) as readonly Section[]

/**
 * Holds the findings for those sections of a doctor's report (the result of the self-check) that are already checked.
 */
export type SectionFindings = Partial<Record<Section, Finding[]>>

/**
 * Sets the time after which a doctor's report (the result of the self-check) no longer waits for the findings of a
 * section. Every check for a section ends within half of this time.
 */
export const REPORT_LIMIT_MS = 30_000

const AREA: Record<Section, Finding['area']> = {
  service: 'settings',
  mail: 'mail out',
  chain: 'chain',
}

/**
 * Makes the finding for a section of a doctor's report that nobody has checked, because no worker process of the
 * responsible pool is alive.
 */
export const withoutRunner = (section: Section): Finding =>
  findingsIn(AREA[section]).broken(
    `${SECTION_RUNNER[section]} workers`,
    'none runs: nothing of this part was looked at',
    `bun run workers --pool ${SECTION_RUNNER[section]}`,
  )

/**
 * Makes the finding for a section of a doctor's report (the result of the self-check) whose worker process did not
 * respond in time.
 */
export const unanswered = (section: Section): Finding =>
  findingsIn(AREA[section]).broken(
    `${SECTION_RUNNER[section]} workers`,
    `no answer within ${REPORT_LIMIT_MS / 1000} s`,
    'bun run doctor   # with the settings of that worker',
  )
