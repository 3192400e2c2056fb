import { ask, at } from '../../kit/ask.ts'
import { h } from '../../kit/dom.ts'
import { moment, plural } from '../../kit/format.ts'
import { bulk } from '../../kit/list/bulk.ts'
import { list } from '../../kit/list/list.ts'
import type { ShownList } from '../../kit/list/pages.ts'
import { ofProject } from '../../kit/screen.ts'
import type { DraftHead } from '../../kit/types.ts'
import { badge, button, empty } from '../../kit/ui.ts'
import { openDraft, writeMail } from './compose.ts'

const REFRESH_MS = 5_000

const titleOf = ({ subject = '', inReplyTo }: DraftHead): string =>
  subject.trim() !== '' ? subject : inReplyTo === undefined ? '(no subject)' : '(an answer)'

/** Shows the unfinished mails of a project that its agent, or a person at the console, is still writing. */
export const drafts = ofProject('drafts', (project, { signal }) => {
  const path = at`/projects/${project.projectId}/v0/messages/drafts`
  const shown: ShownList = list<'drafts', DraftHead>({
    label: 'Drafts',
    name: 'drafts',
    signal,
    everyMs: REFRESH_MS,
    path,
    none: () => empty('No drafts', 'What is written and not sent is kept here.'),
    choosing: {
      needs: 'owner',
      word: 'draft',
      describe: (draft) => ({ id: draft.draftId, name: titleOf(draft) }),
      acts: [
        {
          label: 'Delete',
          danger: true,
          act: (chosen, after) =>
            bulk({
              title: 'Delete drafts',
              text: `${plural(chosen.length, 'draft')} will be deleted for good.`,
              action: 'Delete',
              danger: true,
              ids: chosen.map(({ id }) => id),
              act: (id) => ask(path + at`/${id}`, { method: 'DELETE' }),
              done: (number) => `${plural(number, 'draft')} deleted`,
              after,
            }),
        },
      ],
    },
    columns: [
      {
        name: 'Subject',
        kind: 'main',
        cell: (draft) => [
          h('span', { dir: 'auto' }, titleOf(draft)),
          draft.sendAt === undefined ? null : [' ', badge('scheduled', 'has a time')],
        ],
      },
      {
        name: 'To',
        cell: ({ to = [], cc = [], bcc = [] }) => [...to, ...cc, ...bcc].join(', ') || '–',
      },
      { name: 'Changed', cell: ({ updatedAt }) => moment(updatedAt) },
      {
        name: 'Action',
        kind: 'end',
        cell: (draft) =>
          button('Open', () => openDraft(project, draft.draftId, () => shown.refresh()), {
            keep: `open ${draft.draftId}`,
            label: `Open ${titleOf(draft)}`,
            needs: 'owner',
          }),
      },
    ],
  })
  const write = button('Write', () => writeMail(project), { needs: 'owner', keep: 'write' })
  return [h('div', { class: 'actions' }, write), shown.element]
})
