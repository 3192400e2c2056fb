import { createHash } from 'node:crypto'
import { domainOf } from '../../../shared/mail/address.ts'
import { composeSigned } from '../../../shared/mail/compose/composeSigned.ts'
import type { Batcher } from '../../../shared/process/batcher.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { Pool, Queryable } from '../../db.ts'
import type { KeyringSource } from '../../keyring/keyring.ts'
import { packBytes } from '../../packedBytes.ts'
import { findDkimSigners } from '../domains/dkimKeys.ts'
import { listSentAttachments } from '../messages/attachments.ts'
import { readRawMail } from '../messages/rawMails.ts'
import type { OutboundContent } from './outboundMails.ts'

/** Holds the stores from which the bytes of sent messages are read, and in which composed bytes are kept. */
export type MailStores = {
  pool: Pool
  keyring: KeyringSource
  blobs: Blobs
  /**
   * Stores the composed bytes of several messages in one statement. If `keep` is absent, the composed bytes of each
   * message are stored in a separate statement.
   */
  keep?: Batcher<Composed, Kept | null>
}

/**
 * Holds the composed bytes of a message. The field `blob` is the object in the object store that holds the bytes. Null
 * means that no object in the object store holds the bytes.
 */
export type Composed = {
  messageRow: string
  sourceKey: string
  bytes: Buffer
  blob: Buffer | null
}

/**
 * Describes the stored raw mail of a sent message. The field `isOurs` tells whether the stored bytes are the caller's
 * own bytes, or those of another process.
 */
export type Kept = { rawId: string; isOurs: boolean }

/**
 * Returns the stored bytes of a message. If no bytes are stored, the function composes and signs the message now, once
 * for all readers and attempts. @returns null for a deleted message.
 */
export async function composedMail(
  stores: MailStores,
  mail: OutboundContent,
): Promise<{ rawId: string; bytes: Buffer } | null> {
  const { pool, keep } = stores
  const blobs = stores.blobs.of(mail.projectId)
  const { messageRow, rawId } = mail
  if (rawId !== null) return { rawId, bytes: await readRawMail(pool, blobs, rawId) }
  const bytes = await composeOutbound(stores, mail)
  const composed = {
    messageRow,
    sourceKey: sourceKey(mail.messageId),
    bytes,
    blob: await blobs.keep(bytes),
  }
  const kept =
    keep === undefined ? (await keepComposed(pool, [composed]))[0]! : await keep.submit(composed)
  if (kept === null) return null
  if (kept.isOurs) return { rawId: kept.rawId, bytes }
  return { rawId: kept.rawId, bytes: await readRawMail(pool, blobs, kept.rawId) }
}

/** Reads the attachments and the DKIM keys of a mail, and returns the composed and signed mail. */
export async function composeOutbound(
  { pool, keyring, blobs }: MailStores,
  mail: OutboundContent,
): Promise<Buffer> {
  const attachments = mail.hasAttachments
    ? await listSentAttachments(pool, blobs.of(mail.projectId), mail.messageRow)
    : []
  const signers = await findDkimSigners(pool, () => keyring(pool), domainOf(mail.fromAddress))
  return composeSigned({ ...mail, attachments }, signers)
}

/** Derives a UUID from the Message-ID, so that a message that is composed twice is stored only once. */
function sourceKey(messageId: string): string {
  const hex = createHash('sha256').update(messageId).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * Stores the composed bytes of different messages in one statement, before the first transmission, so that every
 * attempt sends the same bytes. If a message already has stored bytes, it keeps them.
 * @returns one result for each message of `composed`, in order. Null means that the message is deleted.
 */
export async function keepComposed(
  db: Queryable,
  composed: readonly Composed[],
): Promise<(Kept | null)[]> {
  const { bytes, starts, lengths } = packBytes(
    composed.map((one) => (one.blob === null ? one.bytes : NO_BYTES)),
  )
  const { rows } = await db.query<{ row: string; raw_id: string; is_ours: boolean }>({
    name: 'keep-composed',
    text: `
      with given as (
        select * from unnest($1::bigint[], $2::uuid[], $3::int[], $4::int[], $5::bytea[])
          g (row, source_key, start, length, blob)
      ), locked as (
        select m.row, m.raw_id from messages m where m.row = any ($1::bigint[]) order by m.row for update
      ), kept as (
        insert into raw_mails (source_key, bytes, blob)
        select g.source_key, substring($6::bytea from g.start for g.length), g.blob
        from locked l join given g using (row) where l.raw_id is null
        returning id, source_key
      ), named as (
        update messages m set raw_id = k.id from kept k join given g using (source_key) where m.row = g.row
        returning m.row, k.id
      )
      select l.row, coalesce(n.id, l.raw_id) as raw_id, n.id is not null as is_ours
      from locked l left join named n using (row)`,
    values: [
      composed.map(({ messageRow }) => messageRow),
      composed.map((one) => one.sourceKey),
      starts,
      lengths,
      composed.map(({ blob }) => blob),
      bytes,
    ],
  })
  const byRow = new Map(rows.map((row) => [row.row, row]))
  return composed.map(({ messageRow }) => {
    const row = byRow.get(messageRow)
    return row === undefined ? null : { rawId: row.raw_id, isOurs: row.is_ours }
  })
}

const NO_BYTES = new Uint8Array()
