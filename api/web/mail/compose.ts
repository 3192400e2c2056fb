/** Writing and answering mail as a project. The audit log names the operator. */
import { ask, at } from '../kit/ask.ts'
import { field, openDialog, textArea } from '../kit/dialog.ts'
import { h } from '../kit/dom.ts'
import { FieldError } from '../kit/trouble.ts'
import type { Message, Project } from '../kit/types.ts'
import { toast } from '../kit/ui.ts'

const RECIPIENTS_HELP = 'Addresses, separated by commas.'

const addresses = (text: FormDataEntryValue | null): string[] =>
  String(text ?? '')
    .split(',')
    .map((address) => address.trim())
    .filter((address) => address !== '')

const asProject = (project: Project) =>
  h('p', { class: 'note' }, 'From ', h('code', {}, project.emailAddress), ', on record as yours.')

/** Opens a new message. */
export const writeMail = (project: Project): void =>
  openDialog({
    title: 'New message',
    action: 'Send',
    body: [
      asProject(project),
      field('To', 'to', { required: true }, RECIPIENTS_HELP),
      field('Cc', 'cc'),
      field('Subject', 'subject', { maxlength: 998 }),
      textArea('Text', 'text'),
    ],
    act: async (form) => {
      const to = addresses(form.get('to'))
      if (to.length === 0) throw new FieldError('to', 'To must name an address')
      const cc = addresses(form.get('cc'))
      await ask(at`/projects/${project.projectId}/v0/messages/send`, {
        method: 'POST',
        body: {
          to,
          ...(cc.length === 0 ? {} : { cc }),
          subject: form.get('subject'),
          text: form.get('text'),
        },
      })
      return () => toast('Accepted; Outgoing shows its delivery')
    },
  })

/** Opens an answer to a message, to its sender or to all its recipients. */
export const answerMail = (project: Project, message: Message, replyAll: boolean): void =>
  openDialog({
    title: replyAll ? 'Answer all' : 'Answer',
    action: 'Send',
    body: [asProject(project), textArea('Text', 'text', { required: true })],
    act: async (form) => {
      await ask(at`/projects/${project.projectId}/v0/messages/${message.messageId}/reply`, {
        method: 'POST',
        body: { text: form.get('text'), ...(replyAll ? { replyAll } : {}) },
      })
      return () => toast('Accepted; Outgoing shows its delivery')
    },
  })
