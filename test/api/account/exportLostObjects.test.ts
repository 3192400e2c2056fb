/** Tests the export of mail whose objects are missing in the object store. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { type Bucket, startBucket } from '../../support/database/bucket.ts'
import {
  type Agent,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import '../../support/long.ts'

let bucket: Bucket
let service: TestService
beforeAll(async () => {
  bucket = await startBucket()
  service = await startTestService({ pools: ['inbound'], env: bucket.env })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await bucket[Symbol.asyncDispose]()
})

const FILE = Buffer.alloc(150_000, 'marker of an attachment ')
const MARKER = FILE.toString('base64').slice(0, 60)

/**
 * Delivers a mail with a large attachment.
 * @returns the names of the mail's objects in the object store, the largest object first.
 */
async function deliver(agent: Agent, subject: string, count: number): Promise<string[]> {
  const before = new Set(bucket.names())
  const attachments = [{ filename: 'a.bin', content: FILE }]
  const mail = { from: 'ada@example.com', to: agent.address, subject, text: 'See it.' }
  await service.deliver({ ...mail, attachments })
  await waitForMessages(agent, count)
  const size = (name: string) => bucket.bytesOf(name).length
  return bucket
    .names()
    .filter((name) => !before.has(name))
    .toSorted((one, other) => size(other) - size(one))
}

test('an export holds every mail, even if the object store has lost the original or the attachments of a mail', async () => {
  const agent = await service.newAgent()
  await deliver(agent, 'Whole', 1)
  const [original] = await deliver(agent, 'Without original', 2)
  const both = await deliver(agent, 'Without both', 3)
  for (const name of [original!, ...both]) rmSync(bucket.path(name))
  const response = await fetch(
    `${service.url}/v0/platform/projects/${agent.project.id}/export?part=mail`,
    { headers: { authorization: `Bearer ${service.platform.key}` } },
  )
  const mails = (await response.text()).split(/^From /m).slice(1)
  expect(mails.map((mail) => /^Subject: (.*)$/m.exec(mail)?.[1])).toEqual([
    'Whole',
    'Without original',
    'Without both',
  ])
  expect(mails.map((mail) => mail.includes(MARKER))).toEqual([true, true, false])
  expect(mails.map((mail) => /^X-Purser-Original: (.*)$/m.exec(mail)?.[1])).toEqual([
    undefined,
    'composed again from the stored parts',
    'composed again from the stored parts, without 1 lost attachment(s)',
  ])
})
