import { expect, test } from 'bun:test'
import {
  documentId,
  findDocument,
  wantDocument,
} from '../../../sql/account/oauth/clientDocuments.ts'
import { createReadClientDocument } from '../../../workers/account/readClientDocument.ts'
import { createTestDatabase } from '../../support/database/database.ts'

test('while too many metadata documents of strangers are being fetched, the service postpones the fetch of the next document', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const url = 'https://app.example/oauth.json'
  const id = documentId(url)
  await wantDocument(pool, { id, url, network: '' })
  const lanes: unknown[] = []
  const enter = async (...lane: unknown[]) => {
    lanes.push(lane)
    return { granted: false, returnInMs: 60_000 }
  }
  const read = createReadClientDocument({ pool, lanes: { enter } } as never, {
    allowPrivate: false,
  })
  await read({ documentId: 'ocd_none' }, { attempt: 1 })
  await read({ documentId: id }, { attempt: 1 })
  expect(lanes).toEqual([['client document:app.example', 'client documents']])
  expect((await findDocument(pool, id))?.state).toBe('wanted')
  const { rows } = await pool.query(
    `select run_at > now() + interval '50 seconds' as is_later from graphile_worker.jobs
     where key = 'read_client_document:' || $1`,
    [id],
  )
  expect(rows).toEqual([{ is_later: true }])
})
