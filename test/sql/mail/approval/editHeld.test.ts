/**
 * Tests that an owner can change only the version of the mail that the owner saw, and that all stored parts of the mail
 * change together.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { subjectKey } from '../../../../shared/mail/threading.ts'
import { findApprovalOf } from '../../../../sql/account/approvals.ts'
import type { Blobs } from '../../../../sql/blobs/blobs.ts'
import { editHeld, type HeldEdit } from '../../../../sql/mail/approval/editHeld.ts'
import { heldBytes, readHeldMails } from '../../../../sql/mail/approval/heldReads.ts'
import { cancelMail } from '../../../../sql/mail/outbound/cancelMail.ts'
import type { SendIntent } from '../../../../sql/mail/outbound/sendIntents.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { KEYRING } from '../../../support/events/eventRows.ts'
import { newSent, type SentRow } from '../../../support/mail/mailRows.ts'
import { whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

type Held = SentRow & { id: string }
async function hold(changes: Partial<SendIntent> = {}): Promise<Held> {
  const sent = await newSent(pool, { held: true, ...changes })
  const about = { projectId: sent.projectId, kind: 'mail', subject: sent.messageId } as const
  return { ...sent, id: (await findApprovalOf(pool, about))!.id }
}

const stores = () => ({ pool, blobs: noBlobs, keyring: async () => KEYRING })
const actorOf = (projectId: string) => ({ projectId, keyPrefix: 'owner', requestId: 'r' })
const bytesOf = async (held: Held) => (await heldBytes(stores(), held))!
const edit = (held: Held, seen: Buffer, change: HeldEdit, by = held.projectId) =>
  editHeld(stores(), actorOf(by), { id: held.id, seen, edit: change })
const messageAt = async ({ row }: Held) =>
  (await pool.query('select * from messages where row = $1', [row])).rows[0]
const storageOf = async ({ projectId }: Held): Promise<number> => {
  const { rows } = await pool.query(
    'select bytes::int from project_storage where project_id = $1',
    [projectId],
  )
  return rows[0]?.bytes ?? 0
}

test('an edit of a mail that waits for approval changes its bytes, its search words and its stored size together', async () => {
  const held = await hold({ subject: 'Old', text: 'short', cc: ['bob@example.com'] })
  const [before, stored, used] = [
    await bytesOf(held),
    (await messageAt(held)).stored_bytes,
    await storageOf(held),
  ]
  expect(await edit(held, before.hash, { subject: 'New', text: 'a longer text' })).toBe('done')
  const { bytes, hash } = await bytesOf(held)
  expect(hash).toEqual(createHash('sha256').update(bytes).digest())
  expect(bytes.toString()).toContain('Subject: New')
  expect(bytes.toString()).toContain('a longer text')
  const message = await messageAt(held)
  expect(message).toMatchObject({
    subject: 'New',
    text_body: 'a longer text',
    stored_bytes: `${Number(stored) + 'a longer text'.length - 'short'.length}`,
  })
  for (const word of ['longer', 'new', 'bob']) expect(message.search).toContain(`:${word}'`)
  expect(message.search).not.toContain(":short'")
  expect((await storageOf(held)) - used).toBe('a longer text'.length - 'short'.length)
  const { rows } = await pool.query(
    `select action, subject, detail from audit_log where project_id = $1`,
    [held.projectId],
  )
  expect(rows).toEqual([
    {
      action: 'approval.edit',
      subject: held.messageId,
      detail: `sha256:${before.hash.toString('hex')} sha256:${hash.toString('hex')}`,
    },
  ])
})

test.each<[name: string, change: HeldEdit, after: { text: string; html: string | null }]>([
  ['a new subject keeps the text and the HTML', { subject: 'S' }, { text: 'T', html: '<p>T</p>' }],
  ['a new text removes the HTML', { text: 'N' }, { text: 'N', html: null }],
  ['a new HTML keeps the text', { html: '<p>N</p>' }, { text: 'T', html: '<p>N</p>' }],
  ['an HTML of null keeps the text', { html: null }, { text: 'T', html: null }],
  [
    'a new text with a new HTML changes both',
    { text: 'N', html: '<p>N</p>' },
    { text: 'N', html: '<p>N</p>' },
  ],
])('in an edit of a mail that waits for approval, %s', async (_, change, { text, html }) => {
  const held = await hold({ subject: 'Old', text: 'T', html: '<p>T</p>' })
  expect(await edit(held, (await bytesOf(held)).hash, change)).toBe('done')
  const mails = await readHeldMails(pool, held.projectId, [held.messageId], 100)
  expect(mails.get(held.messageId)).toMatchObject({ subject: change.subject ?? 'Old', text, html })
})

test('a new subject of the first message in a thread becomes the subject of the thread, whereas a new subject of a later message changes only this message', async () => {
  const threadOf = async ({ threadRow }: Held) =>
    (await pool.query('select subject, subject_key from threads where row = $1', [threadRow]))
      .rows[0]
  const first = await hold({ subject: 'Secret offer' })
  expect(await edit(first, (await bytesOf(first)).hash, { subject: 'Offer' })).toBe('done')
  expect(await threadOf(first)).toEqual({ subject: 'Offer', subject_key: subjectKey('Offer') })
  const { projectId, threadRow } = first
  const reply = await hold({ projectId, threadRow, subject: 'Offer' })
  expect(await edit(reply, (await bytesOf(reply)).hash, { subject: 'Other' })).toBe('done')
  expect((await threadOf(first)).subject).toBe('Offer')
})

test('an edit with a wrong hash of the mail stores nothing, and an edit with the right hash stores the new bytes for the mail’s project', async () => {
  const held = await hold({ text: 'Text' })
  const { hash } = await bytesOf(held)
  const kept: (string | null)[] = []
  let reads = 0
  const blobsOf = (projectId: string | null): Blobs => ({
    ...noBlobs,
    keep: async () => {
      kept.push(projectId)
      return null
    },
    read: (stored) => {
      reads++
      return noBlobs.read(stored)
    },
    of: blobsOf,
  })
  const watched = { ...stores(), blobs: blobsOf(null) }
  const attempt = (seen: Buffer) =>
    editHeld(watched, actorOf(held.projectId), { id: held.id, seen, edit: { text: 'New' } })
  expect(await attempt(Buffer.alloc(32))).toBe('changed')
  expect([kept, reads]).toEqual([[], 0])
  expect(await attempt(hash)).toBe('done')
  expect(kept).toEqual([held.projectId])
})

test('an edit of a mail that waits for approval changes nothing if the owner saw other bytes than the stored ones, or if another project requests the edit', async () => {
  const [held, other] = [await hold({ text: 'Text' }), await hold()]
  const { hash } = await bytesOf(held)
  expect(await edit(held, Buffer.alloc(32), { text: 'New' })).toBe('changed')
  expect(await edit(held, hash, { text: 'New' }, other.projectId)).toBeNull()
  expect(await edit({ ...held, id: 'apr_none' }, hash, { text: 'New' })).toBeNull()
  expect((await messageAt(held)).text_body).toBe('Text')
  expect(await edit(held, hash, { text: 'New' })).toBe('done')
  expect(await edit(held, hash, { text: 'Newer' })).toBe('changed')
})

test('an approval request for a payment cannot be edited like an approval request for a mail', async () => {
  const held = await hold()
  const { hash } = await bytesOf(held)
  await pool.query(`update approvals set kind = 'payment' where id = $1`, [held.id])
  expect(await edit(held, hash, { text: 'New' })).toBeNull()
})

test('a mail cannot be edited if its approval request is decided, expired or deleted', async () => {
  const [withdrawn, late, gone] = [await hold(), await hold(), await hold()]
  const hashes = new Map<Held, Buffer>()
  for (const held of [withdrawn, late, gone]) hashes.set(held, (await bytesOf(held)).hash)
  await cancelMail(pool, actorOf(withdrawn.projectId), withdrawn.messageId)
  await pool.query('update approvals set expires_at = clock_timestamp() where id = $1', [late.id])
  await pool.query('delete from messages where row = $1', [gone.row])
  for (const [held, hash] of hashes) expect(await edit(held, hash, { text: 'New' })).toBe('decided')
  for (const held of [withdrawn, late]) expect((await messageAt(held)).text_body).toBe('Text')
})

test('if two owners edit the same waiting mail at once, only one edit takes effect', async () => {
  const held = await hold()
  const { hash } = await bytesOf(held)
  const lock = 'select from outbound_mails where message_row = $1 for update'
  const ends = await whileHeld(pool, lock, [held.row], () =>
    ['One', 'Two'].map((text) => edit(held, hash, { text })),
  )
  expect(ends.toSorted()).toEqual(['changed', 'done'])
})

test('a mail that waits for approval shows the refused recipients, and only its own project can read it', async () => {
  const refused = [{ address: 'no@b.example', reason: 'rule' as const }]
  const held = await hold({ to: ['ada@example.com', 'no@b.example'], refused, text: 'long text' })
  const other = await hold({ projectId: held.projectId })
  const read = async (projectId: string, ids: string[]) =>
    await readHeldMails(pool, projectId, ids, 4)
  const mails = await read(held.projectId, [held.messageId])
  expect([...mails.keys()]).toEqual([held.messageId])
  expect(mails.get(held.messageId)).toMatchObject({ refused: ['no@b.example'], text: 'long' })
  const stranger = await hold()
  expect((await read(stranger.projectId, [held.messageId, other.messageId])).size).toBe(0)
})
