import { field, openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import type { Project, RetentionClass } from '../kit/types.ts'
import { button, facts, panel } from '../kit/ui.ts'

/**
 * Lists each class of data with its name, its minimum and maximum retention in days, and the data that the service
 * removes.
 */
const CLASSES: readonly [RetentionClass, string, number, number, string][] = [
  ['mail', 'Mail', 1, 36_500, 'Messages with originals and attachments. Unsent mail stays.'],
  ['rawMail', 'Originals of mail', 1, 36_500, 'The parsed message stays.'],
  ['deliveries', 'Webhook deliveries', 1, 36_500, 'Pending deliveries stay.'],
  ['logs', 'Audit log', 30, 36_500, 'At least 30 days.'],
  ['idempotencyKeys', 'Idempotency keys', 1, 30, '1 to 30 days.'],
  [
    'paymentDetails',
    'Details of payments',
    7,
    36_500,
    'Signature, description and query of final payments. Amount, hash and receipt stay.',
  ],
]

const daysOf = (days: number | null): string => {
  if (days === null) return 'for ever'
  return days === 1 ? '1 day' : `${days.toLocaleString('en')} days`
}

/**
 * Shows for how long the service keeps each kind of a project's data. The function `change` sends a changed setting of
 * the project to the service.
 */
export const retention = (
  project: Project,
  change: (body: object, done: string) => Promise<void>,
): HTMLElement =>
  panel(
    'Kept for',
    facts(CLASSES.map(([name, label]) => [label, daysOf(project.retention[name])])),
    h(
      'div',
      { class: 'actions' },
      button('Change retention', () => openChange(project, change), { needs: 'owner' }),
    ),
  )

const openChange = (
  project: Project,
  change: (body: object, done: string) => Promise<void>,
): void => {
  openDialog({
    title: 'Change retention',
    action: 'Save',
    body: [
      h('p', {}, 'Days. Older rows are removed and do not come back. Empty: as the service says.'),
      ...CLASSES.map(([name, label, min, max, hint]) =>
        field(
          label,
          name,
          { type: 'number', min, max, value: project.retention[name] ?? '' },
          hint,
        ),
      ),
    ],
    act: (form) => {
      // The form does not send an unchanged field, because the shown value may be the service's default.
      const changed = CLASSES.flatMap(([name]) => {
        const text = String(form.get(name) ?? '').trim()
        const days = text === '' ? null : Number(text)
        return days === project.retention[name] ? [] : [[name, days] as const]
      })
      return change({ retention: Object.fromEntries(changed) }, 'Retention changed')
    },
  })
}
