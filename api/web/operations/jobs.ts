import { ask, at } from '../kit/ask.ts'
import { h, replaceContent } from '../kit/dom.ts'
import { count, moment } from '../kit/format.ts'
import type { Filter } from '../kit/list/filters.ts'
import { filteredList } from '../kit/list/list.ts'
import type { ShownList } from '../kit/list/pages.ts'
import type { Screen } from '../kit/screen.ts'
import type { Job, JobState, Jobs } from '../kit/types.ts'
import { button, type Column, empty, heading, tabs, toast } from '../kit/ui.ts'

const REFRESH_MS = 2_000
const STATES: readonly [JobState, string, string][] = [
  ['running', 'Running', 'No worker has a job at this moment.'],
  ['ready', 'Ready', 'No job waits for a worker.'],
  ['delayed', 'Delayed', 'No job waits for its time.'],
  ['failed', 'Failed', 'No job has used up its attempts.'],
]

/** Shows the jobs of the workers. */
export const jobs: Screen = ({ params, signal, query }) => {
  const [state, label, none] = STATES.find(([name]) => name === params[0]) ?? STATES[0]!
  const top = h('div', { 'data-title': `${label} jobs` })
  let counted = ''
  const shown: ShownList = filteredList<'jobs', Job>({
    label: `${label} jobs`,
    name: 'jobs',
    signal,
    everyMs: REFRESH_MS,
    path: '/jobs',
    fixed: { state },
    here: `#/jobs/${state}`,
    query,
    filters: FILTERS,
    // Each page of jobs also holds the number of jobs in each state, which the screen shows above the list.
    also: (answer) => {
      const { counts } = answer as unknown as Jobs
      if (counted === JSON.stringify(counts)) return
      counted = JSON.stringify(counts)
      replaceContent(top, states(state, counts))
    },
    none: () => empty(`${label}: none`, none),
    columns: columnsOf(state, retry),
  })
  async function retry({ jobId, task }: Job): Promise<void> {
    await ask(at`/jobs/${jobId}/retry`, { method: 'POST' })
    toast(`${task} is due now`)
    await shown.refresh()
  }
  return [heading('Jobs', 'What was accepted and is not done yet.'), top, shown.element]
}

const FILTERS: readonly Filter[] = [
  { kind: 'search', name: 'q', label: 'Search key or error' },
  { kind: 'text', name: 'task', label: 'Task' },
  { kind: 'dates' },
]

const states = (state: JobState, counts: Jobs['counts']): HTMLElement =>
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

function columnsOf(state: JobState, retry: (job: Job) => Promise<void>): Column<Job>[] {
  const waits = state === 'delayed' || state === 'failed'
  return [
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
  ]
}
