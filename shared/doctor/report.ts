import { type Finding, findingsIn } from './finding.ts'

/** The sections of a report: each is looked at by the runner that has the settings for it. */
export const SECTION_RUNNER = {
  service: 'webhooks',
  mail: 'outbound',
  chain: 'payments',
} as const

export type Section = keyof typeof SECTION_RUNNER
export const SECTIONS = Object.keys(SECTION_RUNNER) as readonly Section[]

/** The findings of each section that has been looked at. */
export type SectionFindings = Partial<Record<Section, Finding[]>>

/** A section without an answer after this time will get none. Every look ends within half of it. */
export const REPORT_LIMIT_MS = 30_000

const AREA: Record<Section, Finding['area']> = {
  service: 'settings',
  mail: 'mail out',
  chain: 'chain',
}

/** The finding in place of a section that nobody looks at. */
export const withoutRunner = (section: Section): Finding =>
  findingsIn(AREA[section]).broken(
    `${SECTION_RUNNER[section]} workers`,
    'none runs: nothing of this part was looked at',
    `bun run workers --pool ${SECTION_RUNNER[section]}`,
  )

/** The finding in place of a section whose worker did not answer in time. */
export const unanswered = (section: Section): Finding =>
  findingsIn(AREA[section]).broken(
    `${SECTION_RUNNER[section]} workers`,
    `no answer within ${REPORT_LIMIT_MS / 1000} s`,
    'bun run doctor   # with the settings of that worker',
  )
