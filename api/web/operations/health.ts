import { AskError, ask } from '../kit/ask.ts'
import { type Child, h, replaceContent } from '../kit/dom.ts'
import { moment, plural } from '../kit/format.ts'
import type { Screen } from '../kit/screen.ts'
import type { HealthFinding, HealthReport } from '../kit/types.ts'
import { badge, button, copyButton, empty, heading, notice, section, table } from '../kit/ui.ts'

const PATH = '/v0/platform/health'
const NOT_FOUND = 404

/** Shows the last report of the doctor (the health check of the service), and a button that starts a new check. */
export const health: Screen = async ({ signal }) => {
  const shown = h('div', { class: 'live' })
  const draw = (report: HealthReport | null) => replaceContent(shown, drawn(report))
  const again = button(
    'Look again',
    async () => {
      shown.ariaBusy = 'true'
      try {
        const report = await ask<HealthReport>(PATH, { method: 'POST', signal })
        if (!signal.aborted) draw(report)
      } finally {
        shown.ariaBusy = null
      }
    },
    { kind: 'primary', keep: 'look-again' },
  )
  draw(await lastReport(signal))
  return [
    heading('Health', 'What must be right before strangers can write, pay and be answered.', again),
    shown,
  ]
}

async function lastReport(signal: AbortSignal): Promise<HealthReport | null> {
  try {
    return await ask<HealthReport>(PATH, { signal })
  } catch (error) {
    if (error instanceof AskError && error.status === NOT_FOUND) return null
    throw error
  }
}

function drawn(report: HealthReport | null): Child {
  if (report === null) {
    return empty('No report yet', 'Workers look at settings, database, mail, chain and webhooks.')
  }
  const areas = [...new Set(report.findings.map(({ area }) => area))]
  return [
    summary(report),
    areas.map((area) =>
      section(
        `area-${area.replaceAll(' ', '-')}`,
        area[0]!.toUpperCase() + area.slice(1),
        { lead: null, actions: null },
        findingsTable(
          area,
          report.findings.filter((finding) => finding.area === area),
        ),
      ),
    ),
  ]
}

function summary({ findings, requestedAt, complete }: HealthReport): HTMLElement {
  const count = (verdict: HealthFinding['verdict']) =>
    findings.filter((finding) => finding.verdict === verdict).length
  const [broken, warnings] = [count('broken'), count('warning')]
  const said =
    broken > 0
      ? `${plural(broken, 'thing')} broken`
      : warnings > 0
        ? `${plural(warnings, 'warning')}`
        : 'Nothing is wrong'
  return notice(
    broken > 0 ? 'bad' : warnings > 0 ? 'wait' : 'good',
    `${said}. Looked at `,
    moment(requestedAt),
    complete ? '.' : '; some parts have not answered yet.',
  )
}

const findingsTable = (area: string, findings: readonly HealthFinding[]): HTMLElement =>
  table(
    `Findings: ${area}`,
    [
      { name: 'Check', kind: 'main', cell: ({ check }) => check },
      { name: 'Verdict', cell: ({ verdict }) => badge(verdict) },
      { name: 'Found', cell: ({ found }) => found },
      {
        name: 'Change',
        cell: ({ fix, check }) =>
          fix === null
            ? '–'
            : h(
                'div',
                { class: 'value' },
                h('code', {}, fix),
                copyButton(fix, 'Copy', {
                  label: `Copy the change for ${check}`,
                  keep: `copy ${area} ${check}`,
                }),
              ),
      },
    ],
    findings,
  )
