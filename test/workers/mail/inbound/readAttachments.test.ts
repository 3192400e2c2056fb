/** Tests that the reading job brings the reading of every attachment to an end. */
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { BlobsAwayError } from '../../../../shared/blobs/objectStore.ts'
import type { Blobs } from '../../../../sql/blobs/blobs.ts'
import { LostObjectError } from '../../../../sql/blobs/sealedBlob.ts'
import { insertPendingTexts } from '../../../../sql/mail/messages/attachmentTexts.ts'
import { createReadAttachments } from '../../../../workers/mail/inbound/readAttachments.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { messageOf, receive } from '../../../support/mail/mailRows.ts'
import { silentLog } from '../../../support/service.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/**
 * Stores a message with an attachment that the reading job has not read yet.
 * @param read returns the content of the attachment.
 * @returns a function that runs the reading job, and a function that returns the state of the attachment and allows
 * another run to take the attachment.
 */
async function waiting(filename: string, read: () => Promise<Buffer>) {
  const { pool } = database
  const projectId = await newProject(pool)
  const { messageId } = await receive(pool, projectId)
  const { row } = (await messageOf(pool, projectId, messageId))!
  await pool.query('update messages set attachments = $2 where row = $1', [
    row,
    JSON.stringify([{ attachmentId: 'att_1', filename, contentType: 'application/octet-stream' }]),
  ])
  await insertPendingTexts(pool, { projectId, messageRow: row }, ['att_1'])
  const blobs: Blobs = { keep: async () => null, read, of: () => blobs }
  const task = createReadAttachments({ pool, log: silentLog } as never, { blobs })
  return {
    run: () => task({ projectId }, { attempt: 1 }),
    /** Runs the waiting jobs of the project, also jobs whose time has not come. */
    async runWaiting() {
      const { rows } = await pool.query(
        `select payload from graphile_worker._private_jobs j where key like 'read_attachments:' || $1 || '%'`,
        [projectId],
      )
      for (const { payload } of rows) await task(payload, { attempt: 1 })
    },
    setTries: (tries: number) =>
      pool.query('update attachment_texts set tries = $2 where message_row = $1', [row, tries]),
    async searched() {
      const { rows } = await pool.query('select search::text from messages where row = $1', [row])
      return rows[0].search
    },
    async state() {
      const { rows } = await pool.query(
        `update attachment_texts set claimed_at = null where message_row = $1 returning state, reason, content`,
        [row],
      )
      return rows[0]
    },
  }
}

test('an attachment that is missing in the object store waits for three job runs, and then counts as damaged', async () => {
  const { run, state } = await waiting('a.pdf', async () => {
    throw new LostObjectError('the object is missing')
  })
  for (let n = 0; n < 3; n++) {
    await expect(run()).rejects.toThrow('the object is missing')
    expect(await state()).toMatchObject({ state: 'pending' })
  }
  await run()
  expect(await state()).toMatchObject({ state: 'failed', reason: 'malformed' })
})

test('an attachment waits while the system cannot start the process that reads attachments, and is read later', async () => {
  const { run, state } = await waiting('a.txt', async () => Buffer.from('Lorem ipsum'))
  const spawn = spyOn(Bun, 'spawn').mockImplementation(() => {
    throw new Error('EAGAIN')
  })
  try {
    for (let n = 0; n < 5; n++) {
      await expect(run()).rejects.toThrow('EAGAIN')
      expect(await state()).toMatchObject({ state: 'pending' })
    }
  } finally {
    spawn.mockRestore()
  }
  await run()
  expect(await state()).toEqual({ state: 'ready', reason: null, content: 'Lorem ipsum' })
})

test('an attachment waits while the object store is unreachable, and is read later', async () => {
  let isAway = true
  const { run, state } = await waiting('a.txt', async () => {
    if (isAway) throw new BlobsAwayError('the object store is away')
    return Buffer.from('Lorem ipsum')
  })
  for (let n = 0; n < 5; n++) {
    await expect(run()).rejects.toThrow('the object store is away')
    expect(await state()).toMatchObject({ state: 'pending' })
  }
  isAway = false
  await run()
  expect(await state()).toEqual({ state: 'ready', reason: null, content: 'Lorem ipsum' })
})

test('an attachment counts as failed after three runs that killed the worker', async () => {
  const { run, state, setTries } = await waiting('a.txt', async () => Buffer.from('Lorem ipsum'))
  await setTries(3)
  await run()
  expect(await state()).toMatchObject({ state: 'failed', reason: 'too_slow' })
})

test('the text of an attachment is extracted even if its file name ends with the name of a built-in JavaScript object property', async () => {
  const { run, state } = await waiting('notes.constructor', async () => Buffer.from('Some words'))
  await run()
  expect(await state()).toEqual({ state: 'ready', reason: null, content: 'Some words' })
})

test('a search finds the words of an attachment even if the job ends directly after the text is recorded', async () => {
  const { run, runWaiting, searched } = await waiting('a.txt', async () => Buffer.from('Zanzibar'))
  const { pool } = database
  const query = pool.query.bind(pool)
  const cut = spyOn(pool, 'query').mockImplementation(((...given: [{ name?: string }]) => {
    if (given[0].name === 'store-searched') throw new Error('the process ends')
    return query(...(given as unknown as [string]))
  }) as never)
  try {
    await expect(run()).rejects.toThrow('the process ends')
  } finally {
    cut.mockRestore()
  }
  expect(await searched()).not.toContain('zanzibar')
  await runWaiting()
  expect(await searched()).toContain('zanzibar')
})
