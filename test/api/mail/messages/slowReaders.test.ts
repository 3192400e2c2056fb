/** Tests that clients that do not read their responses cannot fill the memory of the API process. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'

import { LoopTime } from '../../../../api/http/limits/loopTime.ts'
import { testWhole } from '../../../support/database/extent.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

/**
 * Holds the time in milliseconds of the test clock. While this time passes, projects regain the right to costly reads.
 */
let paceMs = 0
let service: TestService
beforeAll(async () => {
  service = await startTestService({ loopTime: new LoopTime(() => paceMs) })
})
afterAll(() => service[Symbol.asyncDispose]())

const MAIL = (megabytes: number) =>
  [
    'Message-ID: <large@example.com>',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    // The sender of a mail chooses the media type of an attachment. Here it equals the media type of this API's own
    // responses.
    'Content-Type: application/json; name=a.json',
    'Content-Disposition: attachment; filename=a.json',
    '',
    `${'x'.repeat(998)}\r\n`.repeat(megabytes * 1_000),
    '--b--',
    '',
  ].join('\r\n')

async function holding(megabytes: number): Promise<{ agent: Agent; mail: string }> {
  const agent = await service.newAgent()
  const mail = MAIL(megabytes)
  await deliverRaw(service.smtp!.port, agent.address, mail)
  await waitForMessages(agent, 1)
  return { agent, mail }
}

const RAW = `${messagePath('<large@example.com>')}/raw`
const ATTACHMENT = `${messagePath('<large@example.com>')}/attachments/att_1`

/** Requests a path and reads only the first bytes of the response. */
async function readNothing(agent: Agent, path: string): Promise<{ socket: Socket; head: string }> {
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname).on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.key}\r\n\r\n`)
  const head = await new Promise<string>((resolve) =>
    socket.once('data', (bytes) => {
      socket.pause()
      resolve(bytes.toString('latin1'))
    }),
  )
  return { socket, head }
}

testWhole(
  'responses with large contents that clients do not read get a limited part of the memory, and other projects can still read',
  async () => {
    const { agent, mail } = await holding(25)
    const other = await holding(1)
    const sockets: Socket[] = []
    const status = async (path: string) => {
      const { status } = await fetch(`${service.url}${path}`, {
        headers: { authorization: `Bearer ${agent.key}` },
      })
      return status
    }
    for (let n = 0; n < 5; n++) {
      sockets.push((await readNothing(agent, n % 2 === 0 ? RAW : ATTACHMENT)).socket)
    }
    for (const path of [RAW, ATTACHMENT]) {
      const refused = await agent.get(path)
      expect([refused.status, refused.body.error]).toEqual([503, 'unavailable'])
      expect(refused.headers.get('retry-after')).toBe('2')
    }
    // Requests for small responses of the same project, and for large contents of another project, are not refused.
    expect((await agent.get('/v0/messages')).status).toBe(200)
    const whole = await fetch(`${service.url}${RAW}`, {
      headers: { authorization: `Bearer ${other.agent.key}` },
    })
    expect((await whole.text()).includes(other.mail)).toBe(true)
    for (const socket of sockets) socket.destroy()
    await waitFor('the memory of the ended connections', async () => (await status(RAW)) === 200)
    const response = await fetch(`${service.url}${RAW}`, {
      headers: { authorization: `Bearer ${agent.key}` },
    })
    expect((await response.text()).includes(mail)).toBe(true)
  },
)

test('responses with large lists that clients do not read get a limited part of the memory', async () => {
  const agent = await service.newAgent()
  const other = await service.newAgent()
  for (const inbox of [agent, other]) {
    const count = inbox === agent ? 4 : 1
    for (let n = 0; n < count; n++) {
      const text = `${'x'.repeat(998)}\r\n`.repeat(990)
      const head = `Message-ID: <list${n}@example.com>\r\nSubject: ${n}\r\n\r\n`
      await deliverRaw(service.smtp!.port, inbox.address, head + text)
    }
    await waitForMessages(inbox, count)
  }
  const list = '/v0/messages?limit=100'
  const sockets: Socket[] = []
  try {
    await waitFor('the share of the project to be used up', async () => {
      paceMs += 1_000
      const { socket, head } = await readNothing(agent, list)
      sockets.push(socket)
      if (head.startsWith('HTTP/1.1 200')) return false
      expect(head).toStartWith('HTTP/1.1 503')
      expect(head.toLowerCase()).toContain('retry-after: 2\r\n')
      return true
    })
    expect(sockets.length).toBeWithin(5, 30)
    expect((await other.get(list)).body.messages).toHaveLength(1)
    expect((await agent.get('/v0/whoami')).status).toBe(200)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  await waitFor('the memory of the ended connections', async () => {
    paceMs += 2_000
    const { status } = await agent.get(list)
    return status === 200
  })
  // The test clock stands still, so that the project does not regain its right to large responses on a slow machine.
  await waitFor('the reads of the project to be paced', async () => {
    const response = await fetch(service.url + list, {
      headers: { authorization: `Bearer ${agent.key}` },
    })
    const body = await response.text()
    if (response.status === 200) return false
    expect(response.status).toBe(429)
    expect(body).toContain('Too many large responses: read smaller pages or wait')
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    return true
  })
  expect((await other.get(list)).body.messages).toHaveLength(1)
})

test('after HEAD requests for large messages and attachments are answered, they occupy no memory', async () => {
  const { agent } = await holding(1)
  const headers = { authorization: `Bearer ${agent.key}` }
  // The memory limit of a project is 128 MB, so the contents of 140 requests are too large.
  for (const path of [RAW, ATTACHMENT]) {
    const whole = await fetch(service.url + path, { headers })
    const { byteLength: length } = await whole.arrayBuffer()
    for (let n = 0; n < 70; n++) {
      const response = await fetch(service.url + path, { method: 'HEAD', headers })
      expect([path, response.status]).toEqual([path, 200])
      expect(response.headers.get('content-length')).toBe(String(length))
    }
  }
})
