import { expect, test } from 'bun:test'
import { readMailApart } from '../../../workers/mail/readMailApart.ts'
import { captureTransport } from '../../../workers/mail/transport.ts'
import { RUNNERS } from '../../../workers/main.ts'
import { startPool } from '../../../workers/pool.ts'
import { fakeLookUp } from '../../support/fakeLookUp.ts'
import { silentLog, startTestService, waitForMessages } from '../../support/service.ts'
import { deliverRaw } from '../../support/smtpTalk.ts'
import { waitFor } from '../../support/waitFor.ts'

test('a message whose job ended badly several times, through no fault of its own, is still read', async () => {
  await using service = await startTestService({ workers: false })
  const agent = await service.newAgent()
  await deliverRaw(
    service.smtp!.port,
    agent.address,
    'From: ada@example.com\nSubject: Innocent\nMessage-ID: <i@x.test>\nReferences: <r@x.test>\n\nHello.\n',
  )
  const { pool, url } = service.database
  await waitFor('the arrival', async () => {
    const { rowCount } = await pool.query('update graphile_worker._private_jobs set attempts = 7')
    return rowCount === 1
  })
  const worker = await startPool(
    { ...RUNNERS.inbound, name: 'inbound', databaseUrl: url },
    {
      log: silentLog,
      mailDomain: 'mail.test',
      transport: captureTransport,
      allowPrivateNetworks: false,
      lookUp: fakeLookUp(),
    },
  )
  try {
    const [item] = await waitForMessages(agent, 1)
    expect(item).toMatchObject({
      messageId: '<i@x.test>',
      subject: 'Innocent',
      from: ['ada@example.com'],
      extractedText: 'Hello.',
      labels: ['received', 'unread'],
    })
  } finally {
    await worker.stop()
  }
})

test('apart, a message that no parser can read is an error, not the end of the worker', async () => {
  const parts = Array.from(
    { length: 150 },
    (_, n) => `Content-Type: multipart/mixed; boundary="b${n}"\n\n--b${n}\n`,
  )
  await expect(readMailApart(Buffer.from(parts.join('')), 'mail.test')).rejects.toThrow(
    /ended with/,
  )
})
