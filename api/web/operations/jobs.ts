import { ask, at } from '../kit/ask.ts'
import { h } from '../kit/dom.ts'
import { count, moment } from '../kit/format.ts'
import { live } from '../kit/live.ts'
import type { Screen } from '../kit/screen.ts'
import type { Job, JobState, Jobs } from '../kit/types.ts'
import { button, empty, heading, table, tabs, toast } from '../kit/ui.ts'

const REFRESH_MS = 2_000
const STATES: readonly [JobState, string, string][] = [
  ['running', 'Running', 'No worker has a job at this moment.'],
  ['ready', 'Ready', 'No job waits for a worker.'],
  ['delayed', 'Delayed', 'No job waits for its time.'],
  ['failed', 'Failed', 'No job has used up its attempts.'],
]

/** The jobs of the workers. */
export const jobs: Screen = ({ params, signal }) => {
  const state = (STATES.find(([name]) => name === params[0])?.[0] ?? 'running') as JobState
  const shown = live({
    signal,
    everyMs: REFRESH_MS,
    load: (watching) => ask<Jobs>(`/jobs?state=${state}`, { watching, signal }),
    draw: (found) => [states(state, found), list(state, found, retry)],
  })
  const retry = async ({ jobId, task }: Job) => {
    await ask(at`/jobs/${jobId}/retry`, { method: 'POST' })
    toast(`${task} is due now`)
    await shown.refresh()
  }
  return [heading('Jobs', 'What was accepted and is not done yet.'), shown.element]
}

const states = (state: JobState, { counts }: Jobs): HTMLElement =>
  tabs(
    'States',
    STATES.map(([name, label]) => {
      const number = counts
        .filter((one) => one.state === name)
        .reduce((sum, one) => sum + one.count, 0)
      return {
        href: `#/jobs/${name}`,
        current: name === state,
        name: [label, h('span', { class: 'count' }, count(number))],
      }
    }),
  )

function list(state: JobState, found: Jobs, retry: (job: Job) => Promise<void>): HTMLElement {
  const [, label, none] = STATES.find(([name]) => name === state)!
  if (found.jobs.length === 0) return empty(`${label}: none`, none)
  const waits = state === 'delayed' || state === 'failed'
  return table(
    `${label} jobs`,
    [
      { name: 'Task', kind: 'main', cell: ({ task }) => h('code', {}, task) },
      { name: 'Pool', cell: ({ pool }) => pool ?? '–' },
      {
        name: 'About',
        cell: ({ key, task }) => (key === null ? '–' : h('code', {}, key.replace(`${task}:`, ''))),
      },
      {
        name: 'Attempts',
        kind: 'num',
        cell: ({ attempts, maxAttempts }) => `${attempts} of ${maxAttempts}`,
      },
      {
        name: state === 'running' ? 'Since' : 'Due',
        cell: ({ lockedAt, runAt }) => moment(state === 'running' ? (lockedAt ?? runAt) : runAt),
      },
      {
        name: 'Last error',
        cell: ({ lastError }) =>
          lastError === null ? '–' : h('span', { class: 'error' }, lastError),
      },
      ...(waits
        ? [
            {
              name: 'Action',
              kind: 'end' as const,
              cell: (job: Job) =>
                button(state === 'failed' ? 'Retry' : 'Run now', () => retry(job), {
                  keep: `retry ${job.jobId}`,
                }),
            },
          ]
        : []),
    ],
    found.jobs,
  )
}
