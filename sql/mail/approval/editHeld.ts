import { createHash } from 'node:crypto'
import { searchVector } from '../../../shared/mail/search/searchTerms.ts'
import { subjectKey } from '../../../shared/mail/threading.ts'
import { findApproval } from '../../account/approvals.ts'
import { type Actor, writeAudit } from '../../account/audit.ts'
import type { StoredContent } from '../../blobs/blobs.ts'
import { type Queryable, transaction } from '../../db.ts'
import { composedMail, composeOutbound, type MailStores } from '../outbound/composedMails.ts'
import { findOutboundContent, type OutboundContent } from '../outbound/outboundMails.ts'
import { lockUnsent } from '../outbound/unsentMails.ts'
import { storedHash } from './heldMails.ts'
import { storedHeldHash } from './heldReads.ts'

/** Holds the parts of a mail held for approval that an owner may change. */
export type HeldEdit = { subject?: string; text?: string; html?: string | null }

/**
 * Changes a mail that is held for the owner's approval. The function changes the row and the bytes of the mail in one
 * transaction, and only if the mail is still the version that the owner saw. Therefore an owner always reads exactly
 * the mail that the service will send.
 * @returns the result of the change. The result `changed` means that the held mail differs from the version that the
 * owner saw. Null means that the project has no approval request with the id.
 */
export async function editHeld(
  stores: MailStores,
  actor: Actor,
  { id, seen, edit }: { id: string; seen: Buffer; edit: HeldEdit },
): Promise<'done' | 'decided' | 'changed' | null> {
  const { pool } = stores
  const approval = await findApproval(pool, id)
  if (approval?.kind !== 'mail' || approval.projectId !== actor.projectId) return null
  if (approval.state !== 'waiting' || approval.isLate) return 'decided'
  const { projectId, subject: messageId } = approval
  const mail = await findOutboundContent(pool, projectId, messageId)
  if (mail === null) return 'decided'
  const readHash = () => storedHeldHash(pool, { projectId, messageId })
  let present = await readHash()
  if (present === null) {
    if ((await composedMail(stores, mail)) === null) return 'decided'
    present = await readHash()
  }
  // The function checks the hash before it reads or composes a mail of up to 25 MB, so that a request with a wrong hash
  // causes no such work.
  if (present?.equals(seen) !== true) return 'changed'
  // The text and the HTML of a mail must have the same content. Therefore a new text without new HTML removes the HTML.
  const html = edit.html !== undefined ? edit.html : edit.text === undefined ? mail.html : null
  const next = {
    ...mail,
    subject: edit.subject ?? mail.subject,
    text: edit.text ?? mail.text,
    html,
  }
  const bytes = await composeOutbound(stores, next)
  const blob = await stores.blobs.of(projectId).keep(bytes)
  return transaction(pool, async (db) => {
    const held = await lockUnsent(db, projectId, messageId)
    const locked = await findApproval(db, id, { lock: true })
    if (held === null || locked?.state !== 'waiting' || locked.isLate) return 'decided'
    const hash = await storedHash(db, held.messageRow)
    if (hash === null || !hash.equals(seen)) return 'changed'
    await replace(db, projectId, next, blob === null ? { bytes, blob } : { bytes: NO_BYTES, blob })
    const after = createHash('sha256').update(bytes).digest('hex')
    await writeAudit(db, actor, {
      action: 'approval.edit',
      subject: messageId,
      detail: `sha256:${seen.toString('hex')} sha256:${after}`,
      outcome: 'ok',
    })
    return 'done'
  })
}

const NO_BYTES = Buffer.alloc(0)

async function replace(
  db: Queryable,
  projectId: string,
  { messageRow, subject, text, html, ...mail }: OutboundContent,
  { bytes, blob }: StoredContent,
): Promise<void> {
  const { rows } = await db.query<{
    bcc: string[]
    names: string[]
    grown: number
    before: string
  }>(
    `select bcc_addresses as bcc, subject as before,
       array(select a ->> 'filename' from jsonb_array_elements(attachments) a) as names,
       octet_length($2) + coalesce(octet_length($3), 0) - octet_length(text_body)
         - coalesce(octet_length(html_body), 0) as grown
     from messages where row = $1`,
    [messageRow, text, html],
  )
  const { bcc, names, grown, before } = rows[0]!
  const search = searchVector(projectId, {
    subject,
    from: [mail.fromAddress],
    to: [...mail.to, ...mail.cc, ...bcc],
    text: [text, ...names].join('\n'),
  })
  await db.query(
    `with changed as (
       update messages set subject = $2, text_body = $3, html_body = $4, search = $5::tsvector,
         text_bytes = octet_length($3) + octet_length(attachments::text),
         stored_bytes = greatest(0, stored_bytes + $6)
       where row = $1 returning row, raw_id, project_id, thread_row
     ), titled as (
       -- A thread has the subject of its first message.
       update threads t set subject = $2, subject_key = $9 from changed c
       where t.row = c.thread_row and t.subject = $10
         and not exists (select from messages m where m.thread_row = c.thread_row and m.row < c.row)
     ), counted as (
       update project_storage s set bytes = greatest(0, s.bytes + $6) from changed c where s.project_id = c.project_id
     )
     update raw_mails r set bytes = $7, blob = $8 from changed c where r.id = c.raw_id`,
    [
      ...[messageRow, subject, text, html, search, grown, bytes, blob],
      ...[subjectKey(subject), before],
    ],
  )
}
