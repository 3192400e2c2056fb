import { createHash } from 'node:crypto'
import { domainOf } from '../../shared/mail/address.ts'
import { composeMail } from '../../shared/mail/composeMail.ts'
import { dkimSign } from '../../shared/mail/dkim.ts'
import type { Blobs } from '../blobs/blobs.ts'
import { type Pool, transaction } from '../db.ts'
import type { KeyringSource } from '../keyring/keyring.ts'
import { listSentAttachments } from './attachments.ts'
import { findDkimSigners } from './dkimKeys.ts'
import type { OutboundContent } from './outboundMails.ts'
import { readRawMail } from './rawMails.ts'

/** The stores that the bytes of a message come from and go to. */
export type MailStores = { pool: Pool; keyring: KeyringSource; blobs: Blobs }

/**
 * The stored bytes of a message, or bytes composed and signed now, once for all readers and attempts. Null for a deleted
 * message.
 */
export async function composedMail(
  given: MailStores,
  mail: OutboundContent,
): Promise<{ rawId: string; bytes: Buffer } | null> {
  const { pool } = given
  const blobs = given.blobs.of(mail.projectId)
  const stores = { ...given, blobs }
  if (mail.rawId !== null) {
    return { rawId: mail.rawId, bytes: await readRawMail(pool, blobs, mail.rawId) }
  }
  return await keepComposed(stores, {
    messageRow: mail.messageRow,
    sourceKey: sourceKey(mail.messageId),
    bytes: await composeOutbound(stores, mail),
  })
}

/** Composes and signs a mail. Each call makes other bytes: boundaries and signatures differ. */
export async function composeOutbound(
  { pool, keyring, blobs }: MailStores,
  mail: OutboundContent,
): Promise<Buffer> {
  const attachments = await listSentAttachments(pool, blobs.of(mail.projectId), mail.messageRow)
  const message = await composeMail({ ...mail, attachments })
  const signers = await findDkimSigners(pool, () => keyring(pool), domainOf(mail.fromAddress))
  return dkimSign(message, signers)
}

/** A UUID derived from the Message-ID: a message composed twice is stored once. */
function sourceKey(messageId: string): string {
  const hex = createHash('sha256').update(messageId).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * Stores the composed bytes of a message before the first transmission: every attempt sends the same bytes.
 * @returns the id and the bytes of the raw mail; if another run stored first, its bytes. Null: the message is deleted.
 */
export async function keepComposed(
  { pool, blobs }: Pick<MailStores, 'pool' | 'blobs'>,
  { messageRow, sourceKey, bytes }: { messageRow: string; sourceKey: string; bytes: Buffer },
): Promise<{ rawId: string; bytes: Buffer } | null> {
  const blob = await blobs.keep(bytes)
  const kept = await transaction(pool, async (db) => {
    const { rows } = await db.query<{ raw_id: string | null }>(
      'select raw_id from messages where row = $1 for update',
      [messageRow],
    )
    if (rows[0] === undefined) return null
    if (rows[0].raw_id !== null) return { rawId: rows[0].raw_id, isOurs: false }
    const inserted = await db.query<{ id: string }>(
      'insert into raw_mails (source_key, bytes, blob) values ($1, $2, $3) returning id',
      [sourceKey, blob === null ? bytes : '', blob],
    )
    const rawId = inserted.rows[0]!.id
    await db.query('update messages set raw_id = $2 where row = $1', [messageRow, rawId])
    return { rawId, isOurs: true }
  })
  if (kept === null) return null
  const { rawId, isOurs } = kept
  return { rawId, bytes: isOurs ? bytes : await readRawMail(pool, blobs, rawId) }
}
