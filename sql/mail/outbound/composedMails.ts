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

/** Holds the stores for the composed bytes of sent messages. */
export type MailStores = {
  pool: Pool
  keyring: KeyringSource
  blobs: Blobs
  /**
   * Stores the composed bytes of several messages in one SQL statement. If `keep` is absent, each message has a
   * separate statement.
   */
  keep?: Batcher<Composed, Kept | null>
}

/**
 * Holds the composed bytes of a message. The field `blob` names the object with these bytes in the object store. Null
 * means that the object store does not hold them.
 */
export type Composed = {
  messageRow: string
  sourceKey: string
  bytes: Buffer
  blob: Buffer | null
}

/**
 * Describes the stored raw mail of a sent message. The field `isOurs` tells whether the caller's own bytes are stored,
 * or the bytes of another process.
 */
export type Kept = { rawId: string; isOurs: boolean }

/**
 * Returns the stored bytes of a message. If no bytes are stored, the function composes and signs the message once. All
 * readers and delivery attempts then use the same bytes.
 * @returns null if the message is deleted, or if its bytes were removed after the project's retention time. The
 * function does not compose removed bytes again, because the result would differ from the mail that was sent.
 */
export async function composedMail(
  stores: MailStores,
  mail: OutboundContent,
): Promise<{ rawId: string; bytes: Buffer } | null> {
  const { pool, keep } = stores
  const blobs = stores.blobs.of(mail.projectId)
  const { messageRow, rawId, isRawExpired } = mail
  if (isRawExpired) return null
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

/**
 * Derives a UUID from the Message-ID of a message. With this UUID, the database stores a message only once, even if two
 * processes compose it.
 */
function sourceKey(messageId: string): string {
  const hex = createHash('sha256').update(messageId).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * Stores the composed bytes of different messages in one SQL statement. This happens before the first delivery attempt,
 * so that every attempt sends the same bytes. A message that already has stored bytes keeps them.
 * @returns one result for each message, in the order of `composed`. Null means that the message is deleted.
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
