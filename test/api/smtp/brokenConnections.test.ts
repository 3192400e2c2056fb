import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { freePort, printed, startProcess } from '../../support/process/process.ts'

const DATA_DIR = mkdtempSync(join(tmpdir(), 'purser-broken-'))
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(async () => {
  await database[Symbol.asyncDispose]()
  rmSync(DATA_DIR, { recursive: true, force: true })
})

test('if a mail client resets its connection, the log does not report a database outage', async () => {
  const port = await freePort()
  await using smtp = startProcess('api/smtp/main.ts', {
    ...{ DATABASE_URL: database.url, DATA_DIR, MAIL_DOMAIN: 'mail.test' },
    SMTP_PORT: String(port),
  })
  await printed(smtp, /"msg":"ready"/)
  const socket = connect({ port, host: '127.0.0.1' }).setEncoding('latin1')
  const replyOf = (line: string) =>
    new Promise((resolve) => {
      socket.once('data', resolve)
      socket.write(line)
    })
  await replyOf('')
  await replyOf('EHLO client.test\r\n')
  await replyOf('MAIL FROM:<ada@example.com>\r\n')
  socket.resetAndDestroy()
  await printed(smtp, /smtp connection failed|the database is away/)
  expect(smtp.stdout()).not.toContain('the database is away')
})
