import { Type as t } from '@sinclair/typebox'
import { DraftBody, DraftChange, DraftParams, WholeDraft } from '../../mail/approval/draftInput.ts'
import {
  addDraft,
  DraftPage,
  editDraft,
  readDraft,
  readDrafts,
  removeDraft,
  sendDraft,
} from '../../mail/approval/draftRoutes.ts'
import { RepliedMessage, WholeMessage } from '../../mail/messages/messageDocs.ts'
import { MessageParams } from '../../mail/messages/messageRoutes.ts'
import { cancel } from '../../mail/outbound/cancelRoutes.ts'
import { acceptedText, moreText, PageInput, pageOf, SENDS } from './mailTools.ts'
import { defineTool, READS, STRICT, type Tool } from './tool.ts'
import { UNTRUSTED, UntrustedMark } from './untrusted.ts'

const CHANGES = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
} as const

const WRONG_DRAFT = 'Take draftId from mail.list_drafts.'

const listDrafts = defineTool({
  name: 'mail.list_drafts',
  title: 'List drafts',
  description:
    'Lists the drafts of this inbox, newest first, without their text. Drafts are not in mail.list_messages. Use it to find a draftId. Answers drafts, count, and nextPageToken if there are more. Example: {"limit":20}',
  scope: 'mail:read',
  input: t.Object(PageInput, STRICT),
  output: DraftPage,
  hints: READS,
  async run({ services, projectId }, input) {
    const page = await readDrafts(services, { projectId, ...pageOf(input) })
    const lines = page.drafts.map(
      ({ draftId, to = [], subject = '' }) => `${draftId} to ${to.join(', ')}: ${subject}`,
    )
    return { data: page, text: [`${page.count} drafts.${moreText(page)}`, ...lines].join('\n') }
  },
})

const getDraft = defineTool({
  name: 'mail.get_draft',
  title: 'Read a draft',
  description:
    'Reads one draft whole. Use it before you change or send it. Example: {"draftId":"dft_0a1b2c3d4e5f60718293a4b5"}',
  scope: 'mail:read',
  input: t.Object(DraftParams.properties, STRICT),
  output: WholeDraft,
  hints: READS,
  fixes: { not_found: WRONG_DRAFT },
  async run({ services, projectId }, { draftId }) {
    const draft = await readDraft(services, projectId, draftId)
    return { data: draft, text: JSON.stringify(draft) }
  },
})

const createDraft = defineTool({
  name: 'mail.create_draft',
  title: 'Write a draft',
  description:
    'Stores a mail without sending it. Every field may come later by mail.update_draft. With inReplyTo it becomes an answer to that message and takes recipients and subject from it. Send it with mail.send_draft. Answers the draft with its draftId. Example: {"to":["ada@example.com"],"subject":"Offer","text":"Shall I order?"}',
  scope: 'mail:send',
  input: t.Object(DraftBody.properties, STRICT),
  output: WholeDraft,
  hints: { ...CHANGES, idempotentHint: false },
  async run({ services, projectId }, input) {
    const draft = await addDraft(services, projectId, input)
    return { data: draft, text: `Stored as ${draft.draftId}; nothing is sent.` }
  },
})

const updateDraft = defineTool({
  name: 'mail.update_draft',
  title: 'Change a draft',
  description:
    'Changes a draft: given fields replace the present ones, others stay, remove names fields to remove. Answers the whole draft. Example: {"draftId":"dft_0a1b2c3d4e5f60718293a4b5","text":"Shall I order two?"}',
  scope: 'mail:send',
  input: t.Composite([DraftParams, DraftChange], STRICT),
  output: WholeDraft,
  hints: CHANGES,
  fixes: { not_found: WRONG_DRAFT },
  async run({ services, projectId }, { draftId, ...change }) {
    const draft = await editDraft(services, projectId, { draftId, change })
    return { data: draft, text: `${draftId} is changed; nothing is sent.` }
  },
})

const sendDraftTool = defineTool({
  name: 'mail.send_draft',
  title: 'Send a draft',
  description:
    'Sends a draft, once: a repeated call gets the first answer. The draft is gone then. Answers messageId and threadId; deliveryStatus held means that the owner must approve it first. Example: {"draftId":"dft_0a1b2c3d4e5f60718293a4b5"}',
  scope: 'mail:send',
  input: t.Object(DraftParams.properties, STRICT),
  output: RepliedMessage,
  hints: { ...SENDS, idempotentHint: true },
  fixes: { not_found: WRONG_DRAFT },
  async run({ services, caller, projectId, inboxAddress }, { draftId }) {
    const sent = await sendDraft(services, caller, { projectId, inboxAddress }, draftId)
    return { data: sent, text: acceptedText(sent) }
  },
})

const deleteDraft = defineTool({
  name: 'mail.delete_draft',
  title: 'Delete a draft',
  description:
    'Deletes a draft; nothing is sent. Answers the id. Example: {"draftId":"dft_0a1b2c3d4e5f60718293a4b5"}',
  scope: 'mail:send',
  input: t.Object(DraftParams.properties, STRICT),
  output: t.Object({ draftId: t.String(), deleted: t.Boolean() }),
  hints: { ...CHANGES, destructiveHint: true },
  fixes: { not_found: WRONG_DRAFT },
  async run({ services, projectId }, { draftId }) {
    await removeDraft(services, projectId, draftId)
    return { data: { draftId, deleted: true }, text: `${draftId} is deleted.` }
  },
})

const cancelTool = defineTool({
  name: 'mail.cancel',
  title: 'Cancel waiting mail',
  description:
    'Cancels a mail whose deliveryStatus is scheduled, or withdraws one that is held for the owner. It is never sent then. mail.list_messages with labels ["scheduled"] or ["held"] finds them. Answers the message. Example: {"messageId":"<4f2a@mail.example.com>"}',
  scope: 'mail:send',
  input: t.Object(MessageParams.properties, STRICT),
  output: t.Composite([WholeMessage, UntrustedMark]),
  hints: { ...CHANGES, destructiveHint: true },
  fixes: { conflict: 'It is on its way or has ended: mail.get_message shows its deliveryStatus.' },
  async run({ services, caller }, { messageId }) {
    const message = await cancel(services, caller, messageId)
    return { data: { ...message, ...UNTRUSTED }, text: `${messageId} is cancelled.` }
  },
})

/** Lists the MCP tools for drafts, and for mail that waits for its sending time or for an approval. */
export const draftTools: readonly Tool[] = [
  createDraft,
  updateDraft,
  sendDraftTool,
  listDrafts,
  getDraft,
  deleteDraft,
  cancelTool,
]
