/** Changes the labels of many messages or threads, and deletes many messages or threads. */
import { ask, at } from '../kit/ask.ts'
import { field } from '../kit/dialog.ts'
import { plural } from '../kit/format.ts'
import { bulk } from '../kit/list/bulk.ts'
import type { Choosing, Chosen } from '../kit/list/choose.ts'
import { FieldError } from '../kit/trouble.ts'
import type { Message, Thread } from '../kit/types.ts'

const LABELS_HELP = 'Labels, separated by commas.'
const LABEL_MAX_LENGTH = 64

const labelsOf = (form: FormData, name: string): string[] =>
  String(form.get(name) ?? '')
    .split(',')
    .map((label) => label.trim())
    .filter((label) => label !== '')

/** Formats the number of items that the user has chosen, for example `3 threads with 7 messages`. */
function numberOf(chosen: readonly Chosen[], word: string): string {
  const messages = chosen.reduce((total, { weight }) => total + weight, 0)
  return word === 'message'
    ? plural(chosen.length, word)
    : `${plural(chosen.length, word)} with ${plural(messages, 'message')}`
}

const acts = (path: string, word: string): Choosing<unknown>['acts'] => [
  {
    label: 'Label',
    act: (chosen, after) =>
      bulk({
        title: `Label ${word}s`,
        text: `The change is made to ${numberOf(chosen, word)}.`,
        fields: [
          field('Add', 'addLabels', { maxlength: 1_000 }, LABELS_HELP),
          field('Remove', 'removeLabels', { maxlength: 1_000 }),
        ],
        action: 'Label',
        ids: chosen.map(({ id }) => id),
        check: (form) => {
          const given = ['addLabels', 'removeLabels'].flatMap((name) => labelsOf(form, name))
          if (given.length === 0) throw new FieldError('addLabels', 'Name at least one label')
          if (given.some((label) => label.length > LABEL_MAX_LENGTH)) {
            throw new FieldError('addLabels', `A label has at most ${LABEL_MAX_LENGTH} characters`)
          }
        },
        act: (id, form) =>
          ask(`${path}/${encodeURIComponent(id)}`, {
            method: 'PATCH',
            body: {
              addLabels: labelsOf(form, 'addLabels'),
              removeLabels: labelsOf(form, 'removeLabels'),
            },
          }),
        done: (number) => `${plural(number, word)} labelled`,
        after,
      }),
  },
  {
    label: 'Delete',
    danger: true,
    act: (chosen, after) =>
      bulk({
        title: `Delete ${word}s`,
        text: `${numberOf(chosen, word)} will be deleted for good, with attachments and originals. What waits is not sent.`,
        action: 'Delete',
        danger: true,
        ids: chosen.map(({ id }) => id),
        act: (id) => ask(`${path}/${encodeURIComponent(id)}`, { method: 'DELETE' }),
        done: (number) => `${plural(number, word)} deleted`,
        after,
      }),
  },
]

const named = (subject: string): string => (subject.trim() === '' ? '(no subject)' : subject)

export const messageChoosing = (
  projectId: string,
): Choosing<Pick<Message, 'messageId' | 'subject'>> => ({
  needs: 'owner',
  word: 'message',
  describe: ({ messageId, subject }) => ({ id: messageId, name: named(subject) }),
  acts: acts(at`/projects/${projectId}/v0/messages`, 'message'),
})

export const threadChoosing = (projectId: string): Choosing<Thread> => ({
  needs: 'owner',
  word: 'thread',
  describe: ({ threadId, subject, messageCount }) => ({
    id: threadId,
    name: named(subject),
    weight: messageCount,
  }),
  acts: acts(at`/projects/${projectId}/v0/threads`, 'thread'),
})
