/** Shows under which conditions a project may send mail. */
import { changesOf } from '../kit/ask.ts'
import { choice, field, openDialog } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import type { Project } from '../kit/types.ts'
import { button, facts, panel } from '../kit/ui.ts'

const POLICIES = [
  ['free', 'without approval'],
  ['approve', 'after approval of each mail'],
  ['approve-new', 'after approval of the first mail to a recipient'],
] as const

type Save = (change: object, done: string) => Promise<void>

/** Makes the panel that shows the send policy of a project. */
export const sendPolicy = (project: Project, save: Save): HTMLElement =>
  panel(
    'Sending',
    facts([
      ['Mail leaves', POLICIES.find(([name]) => name === project.sendPolicy)?.[1] ?? ''],
      [
        'Approver',
        project.approverEmail === null ? 'at the console' : h('code', {}, project.approverEmail),
      ],
      ['Requests expire', `after ${project.approvalHours} hours`],
    ]),
    h(
      'div',
      { class: 'actions' },
      button('Change sending', () => change(project, save), { needs: 'owner' }),
    ),
  )

const change = (project: Project, save: Save): void => {
  const chosen = POLICIES.filter(([name]) => name === project.sendPolicy)
  const others = POLICIES.filter(([name]) => name !== project.sendPolicy)
  openDialog({
    title: 'Change sending',
    action: 'Save',
    body: [
      choice('Mail leaves', 'sendPolicy', [...chosen, ...others]),
      field(
        'Approver',
        'approverEmail',
        { type: 'email', value: project.approverEmail ?? '', maxlength: 254 },
        'Gets a link for each mail that waits. The address must lie outside of this service. Empty: nobody.',
      ),
      field('Hours until a request expires', 'approvalHours', {
        type: 'number',
        min: 1,
        max: 720,
        required: true,
        value: project.approvalHours,
      }),
    ],
    act: (form) => {
      const approverEmail = String(form.get('approverEmail') ?? '').trim()
      const given = {
        sendPolicy: form.get('sendPolicy'),
        approverEmail: approverEmail === '' ? null : approverEmail,
        approvalHours: Number(form.get('approvalHours')),
      }
      return save(changesOf(project, given), 'Sending changed')
    },
  })
}
