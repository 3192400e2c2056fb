/**
 * Lets a person write and answer mail in the name of a project. The console stores the typed text as a draft. The audit
 * log names the person who wrote the mail.
 */
import { ask, at } from '../../kit/ask.ts'
import { askWay, field, openDialog, textArea } from '../../kit/dialog.ts'
import { type Child, h } from '../../kit/dom.ts'
import { localMinute, moment, zoneName } from '../../kit/format.ts'
import { FieldError } from '../../kit/trouble.ts'
import type { Draft, Message, Project } from '../../kit/types.ts'
import { toast } from '../../kit/ui.ts'
import { chosenFiles } from './chosenFiles.ts'
import { type Content, draftKeeper } from './draftKeeper.ts'

const RECIPIENTS = ['to', 'cc', 'bcc'] as const

/** Matches one address of a list. A comma within quotes belongs to a name, such as `"Doe, Jane"` (RFC 5322 §3.2.4). */
const ADDRESS = /(?:"(?:\\.|[^"\\])*"|[^,])+/gs

const addresses = (text: FormDataEntryValue | null): string[] =>
  (String(text ?? '').match(ADDRESS) ?? [])
    .map((address) => address.trim())
    .filter((address) => address !== '')

/** Tells whether a typed email address is complete. Otherwise the user is probably still typing it. */
const isWhole = (address: string): boolean => /^[^@]+@[^@\s]+\.[^@\s.>]+>?$/.test(address)

type Reply = { inReplyTo: string; replyAll: boolean }
type Writing = {
  title: string
  draft: Draft | null
  reply: Reply | null
  done?: () => Promise<void>
}

/** Opens the form for a new message. */
export const writeMail = (project: Project): void =>
  write(project, { title: 'New message', draft: null, reply: null })

/** Opens the form for a reply to the sender or to all recipients of a message. */
export const answerMail = (project: Project, message: Message, replyAll: boolean): void =>
  write(project, {
    title: replyAll ? 'Answer all' : 'Answer',
    draft: null,
    reply: { inReplyTo: message.messageId, replyAll },
  })

/** Opens a draft (a mail that is still being written) in a dialog. @param done is called when the dialog has closed. */
export async function openDraft(
  project: Project,
  draftId: string,
  done: () => Promise<void>,
): Promise<void> {
  const draft = await ask<Draft>(at`/projects/${project.projectId}/v0/messages/drafts/${draftId}`)
  const { inReplyTo, replyAll = false } = draft
  const reply = inReplyTo === undefined ? null : { inReplyTo, replyAll }
  write(project, { title: reply === null ? 'Draft' : 'Draft of an answer', draft, reply, done })
}

const SUBJECT_MAX_LENGTH = 998

const fieldsOf = (draft: Draft | null, reply: Reply | null): Child =>
  reply !== null
    ? null
    : [
        ...RECIPIENTS.map((name) =>
          field(
            `${name[0]!.toUpperCase()}${name.slice(1)}`,
            name,
            { value: draft?.[name]?.join(', ') },
            name === 'to' ? 'Addresses, separated by commas.' : null,
          ),
        ),
        field('Subject', 'subject', { maxlength: SUBJECT_MAX_LENGTH, value: draft?.subject }),
      ]

function write(project: Project, { title, draft, reply, done }: Writing): void {
  const { projectId } = project
  const status = h('p', { class: 'note', role: 'status' })
  const files = chosenFiles(draft?.attachments ?? [], () => keeper.changed())
  const text = textArea('Text', 'text', { rows: 10 }, draft?.text)
  const later = field(
    'Send later',
    'sendAt',
    { type: 'datetime-local', value: draft?.sendAt && localMinute(new Date(draft.sendAt)) },
    `In ${zoneName()}. Empty: at once.`,
  )
  const body = h(
    'div',
    {
      class: 'compose',
      on: {
        input: () => keeper.changed(),
        // Only Ctrl+Enter sends the mail, because with Enter alone, the user could send an unfinished mail by accident.
        keydown: (event) => {
          if (event.key !== 'Enter') return
          const isMeant = event.ctrlKey || event.metaKey
          if (isMeant) body.closest('form')?.requestSubmit()
          const isLine = event.target instanceof HTMLInputElement && event.target.type !== 'file'
          if (isMeant || isLine) event.preventDefault()
        },
      },
    },
    h(
      'p',
      { class: 'note' },
      'From ',
      h('code', {}, project.emailAddress),
      ', on record as yours.',
    ),
    fieldsOf(draft, reply),
    text,
    files.element,
    later,
    draft === null ? null : h('p', { class: 'note' }, 'Last kept ', moment(draft.updatedAt)),
    draft?.html === undefined
      ? null
      : h('p', { class: 'note' }, 'It also has an HTML part, which stays as it is.'),
    status,
  )
  const contentOf = (isSent: boolean): Content => {
    const form = new FormData(body.closest('form') ?? undefined)
    const typed = String(form.get('sendAt') ?? '')
    const time = typed === '' ? undefined : new Date(typed)
    const lists = RECIPIENTS.map((name) => {
      const given = addresses(form.get(name))
      return [name, isSent ? given : given.filter(isWhole)] as const
    })
    return {
      ...(reply ?? {
        ...Object.fromEntries(lists),
        subject: String(form.get('subject') ?? ''),
      }),
      text: String(form.get('text') ?? ''),
      sendAt: time === undefined || Number.isNaN(time.getTime()) ? undefined : time.toISOString(),
      ...(files.read() === undefined ? {} : { attachments: files.read() }),
    }
  }
  let sending: Promise<{ deliveryStatus?: string }> | null = null
  openDialog({
    title,
    action: 'Send',
    body,
    act: async (form) => {
      if (reply === null && addresses(form.get('to')).length === 0) {
        throw new FieldError('to', 'To must name an address')
      }
      sending = files.whenRead().then(() => keeper.send())
      const { deliveryStatus } = await sending
      return () => toast(ENDS[deliveryStatus ?? ''] ?? 'Accepted; Outgoing shows its delivery')
    },
    leaving: async () => {
      // The dialog first waits for a running send request, because while the service sends the mail, the user can
      // neither keep nor delete its draft.
      const isSent = await sending?.then(
        () => true,
        () => false,
      )
      if (isSent || !keeper.isBegun()) return true
      const way = await askWay('Keep this draft?', 'A draft waits under Drafts until it is sent.', [
        ['stay', 'Go on writing'],
        ['delete', 'Delete it', 'danger'],
        ['keep', 'Keep it', 'primary'],
      ])
      if (way === 'stay') return false
      if (way === 'keep') {
        await files.whenRead()
        const end = await keeper.keep()
        if (end === false) return false
        toast(KEPT[end])
      } else {
        const end = await keeper.forget()
        toast(end === 'sent' ? 'The mail was accepted before' : 'The draft is deleted')
      }
      return true
    },
    closed: () => void done?.(),
  })
  const keeper = draftKeeper({
    projectId,
    read: () => contentOf(false),
    readAnyway: () => contentOf(true),
    say: (words) => {
      status.textContent = words
    },
    opened: draft,
  })
}

const KEPT = {
  kept: 'The draft is kept',
  sent: 'The mail was accepted before',
  changed: 'The mail was accepted before; the changed mail is a draft',
}

const ENDS: Readonly<Record<string, string>> = {
  scheduled: 'Accepted; it leaves at its time. Outgoing can cancel it',
  held: 'Accepted; it waits for an approval',
}
