import { AREAS, type Finding } from './finding.ts'

const MARKS = { ok: 'ok', warning: 'WARNING', broken: 'BROKEN' } as const

/**
 * Writes the findings of the doctor (the service's self-check) as a table for a terminal. Below a finding with a fix,
 * the table shows the line or the command for the operator.
 */
export function findingsTable(findings: readonly Finding[]): string {
  const rows = inOrder(findings)
  const areaWidth = widest(rows.map(({ area }) => area))
  const checkWidth = widest(rows.map(({ check }) => check))
  const markWidth = widest(Object.values(MARKS))
  const indent = ' '.repeat(areaWidth + markWidth + 4)
  return rows
    .map(({ area, check, found, verdict, fix }, n) => {
      const name = area === rows[n - 1]?.area ? '' : area
      const first = `${name.padEnd(areaWidth)}  ${MARKS[verdict].padEnd(markWidth)}  ${check.padEnd(checkWidth)}  ${found}`
      const change = fix?.split('\n').map((line) => `${indent}change: ${line}`) ?? []
      return [first, ...change].map((line) => `${line}\n`).join('')
    })
    .join('')
}

/** Writes a summary of the doctor's findings, for example `3 broken, 1 warning, 20 ok`. */
export function findingsSummary(findings: readonly Finding[]): string {
  const count = (wanted: Finding['verdict']) =>
    findings.filter(({ verdict }) => verdict === wanted).length
  const warnings = count('warning')
  return `${count('broken')} broken, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${count('ok')} ok`
}

/** Sorts the findings of the doctor (the self-check) by area. Findings of one area keep their order. */
export const inOrder = (findings: readonly Finding[]): Finding[] =>
  findings.toSorted((one, other) => AREAS.indexOf(one.area) - AREAS.indexOf(other.area))

const widest = (texts: readonly string[]): number =>
  Math.max(0, ...texts.map((text) => text.length))
