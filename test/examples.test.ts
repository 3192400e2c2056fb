/** Runs every example program on a real service, as a reader of the documentation would. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { DEVNET_ACCOUNTS } from '../shared/till/devnetAccounts.ts'
import { heldAgent, heldPath, requestOf } from './support/mail/held.ts'
import { deliverRaw } from './support/mail/smtpTalk.ts'
import { answering, closeServers, serve } from './support/process/localServer.ts'
import {
  printed,
  type ServiceProcess,
  startCommand,
  startProcess,
} from './support/process/process.ts'
import { newCertificate, serveTls } from './support/process/tlsServer.ts'
import { newBuyer } from './support/purse/purseScene.ts'
import { type Agent, messagePath, waitForMessages } from './support/service.ts'
import { startTestTill, type TestTill } from './support/till/till.ts'
import { waitFor } from './support/waitFor.ts'
import './support/long.ts'

const hasPython = Bun.which('python3') !== null
if (!hasPython)
  process.stderr.write('SKIPPED: the examples in Python, because there is no python3\n')

const certificate = newCertificate('bank.example')
let till: TestTill
let agent: Agent
const started: ServiceProcess[] = []
const tried = new Set<string>()

beforeAll(async () => {
  till = await startTestTill({
    env: { ALLOW_PRIVATE_NETWORKS: 'true' },
    parts: {
      ...{ smtp: true, pools: ['inbound', 'outbound', 'webhooks', 'vault', 'purse'] },
      ...{ ca: certificate.ca, resolve: answering('127.0.0.1') },
    },
  })
  agent = await till.newSeller()
})
afterAll(async () => {
  await Promise.all(started.map((process) => process[Symbol.asyncDispose]()))
  await till[Symbol.asyncDispose]()
  closeServers()
})

/**
 * Starts an example program and waits until it has printed `pattern`. @returns the text of the first capture group
 */
async function run(file: string, pattern: RegExp, env: Record<string, string> = {}) {
  tried.add(file)
  const settings = { KEY: agent.key, API: till.service.url, PORT: '0', ...env }
  const process = file.endsWith('.py')
    ? startCommand(['python3', `examples/${file}`], settings)
    : startProcess(`examples/${file}`, settings)
  started.push(process)
  const [, found = ''] = await printed(process, pattern)
  return { process, found }
}

const buy = async (url: string): Promise<string> => {
  const { process } = await run('buyer.ts', /transaction: 0x[0-9a-f]{64}/, {
    PAYER_KEY: DEVNET_ACCOUNTS.payer.privateKey,
    URL: url,
  })
  expect(await process.exited).toBe(0)
  return process.stdout()
}

for (const file of ['seller.ts', 'sellerExpress.ts', 'sellerHono.ts']) {
  test(`the buyer in the example buyer.ts buys a resource from the example ${file}`, async () => {
    const { found } = await run(file, /selling at (\S+)/)
    await agent.put('/v0/sellers/endpoints', { urlPattern: found, priceUsdc: '0.01' })
    expect((await fetch(found)).status).toBe(402)
    expect(await buy(found)).toStartWith('200 The weather is fine.')
  })
}

for (const file of ['buyerWithMandate.ts', 'buyer.py']) {
  test.skipIf(file.endsWith('.py') && !hasPython)(`${file} buys within a mandate`, async () => {
    const { found } = await run('sellerHono.ts', /selling at (\S+)/)
    await agent.put('/v0/sellers/endpoints', { urlPattern: found, priceUsdc: '0.01' })
    const buyer = await newBuyer(till)
    await buyer.giveMandate({ hosts: [new URL(found).host] })
    const { process } = await run(file, /(?:200|answered) The weather/, {
      KEY: buyer.key,
      URL: found,
    })
    expect(await process.exited).toBe(0)
  })
}

test.skipIf(!hasPython)(
  'the example buyer.py buys a second time in a container, even if its process id is the same as before',
  async () => {
    const { found } = await run('sellerHono.ts', /selling at (\S+)/)
    await agent.put('/v0/sellers/endpoints', { urlPattern: found, priceUsdc: '0.01' })
    const buyer = await newBuyer(till)
    await buyer.giveMandate({ hosts: [new URL(found).host] })
    const container = "import os, runpy; os.getpid = lambda: 1; runpy.run_path('examples/buyer.py')"
    for (const purchases of [1, 2]) {
      await using again = startCommand(['python3', '-c', container], {
        ...{ KEY: buyer.key, API: till.service.url, URL: found },
      })
      expect(await again.exited).toBe(0)
      const { rows } = await till.service.database.pool.query(
        `select from purchases where kind = 'payment' and project_id = $1`,
        [buyer.project.id],
      )
      expect(rows).toHaveLength(purchases)
    }
  },
)

test('the example paidMcpTool.ts demands a payment', async () => {
  const { found } = await run('paidMcpTool.ts', /the tool is at (\S+)/)
  const client = new Client({ name: 'buyer', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(found)) as never)
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['weather'])
  const answer: any = await client.callTool({ name: 'weather', arguments: { city: 'Oslo' } })
  expect(answer.isError).toBe(true)
  expect(answer.structuredContent).toMatchObject({ x402Version: 2, resource: { url: found } })
  await client.close()
})

for (const file of ['webhookReceiver.ts', 'webhook_receiver.py']) {
  test.skipIf(file.endsWith('.py') && !hasPython)(
    `${file} accepts a signed webhook with a valid receipt once, and refuses other webhooks`,
    async () => {
      const { found: shop } = await run('sellerHono.ts', /selling at (\S+)/)
      const secret = 'whsec_of_this_example_and_no_other'
      // The receipt key of the payment is published only after the receiver has started, so the receiver cannot rely on
      // keys from its start.
      let isPublished = false
      const port = await serve(async ({ url }, response) => {
        const keys = await fetch(`${till.service.url}${url}`)
        response.end(isPublished ? await keys.text() : '{"keys":[]}')
      })
      const receiver = await run(file, /receiving at (\S+)/, {
        ...{ WEBHOOK_SECRET: secret, API: `http://127.0.0.1:${port}` },
      })
      isPublished = true
      const registered = await agent.put('/v0/sellers/endpoints', {
        urlPattern: shop,
        priceUsdc: '0.01',
        webhookUrl: receiver.found,
        webhookSecret: secret,
      })
      expect(registered.status).toBe(200)
      await buy(shop)
      await printed(receiver.process, /payment \w+: 0.01 USDC/)
      const hmacOf = (body: string) => createHmac('sha256', secret).update(body).digest('hex')
      const post = async (body: string, signature: string, key: string) =>
        (
          await fetch(receiver.found, {
            method: 'POST',
            headers: {
              'x-service-signature': `sha256=${signature}`,
              'x-service-idempotency-key': key,
            },
            body,
          })
        ).status
      expect(await post('{}', '0'.repeat(64), 'whk_1')).toBe(400)
      const [payment] = (await agent.get('/v0/payments')).body.payments
      const { signedReceipt } = payment
      const body = { ...signedReceipt.body, amountUsdcRaw: '10001' }
      const forged = JSON.stringify({ ...signedReceipt, body })
      expect(await post(forged, hmacOf(forged), 'whk_2')).not.toBe(204)
      // A person who has seen a delivery can send its body and signature again under other idempotency keys, so the
      // receiver must recognise the payment itself.
      const seen = JSON.stringify(signedReceipt)
      const replays = ['whk_3', 'whk_4'].map((key) => post(seen, hmacOf(seen), key))
      expect(await Promise.all(replays)).toEqual([204, 204])
      expect(receiver.process.stdout().match(/payment \w+: 0.01 USDC/g)).toHaveLength(1)
    },
  )
}

test('if the example seller.ts has no webhook secret, it refuses a forged webhook', async () => {
  const { found } = await run('seller.ts', /selling at (\S+)/)
  const signature = createHmac('sha256', '').update('{}').digest('hex')
  const answer = await fetch(new URL('/hook', found), {
    method: 'POST',
    headers: { 'x-service-signature': `sha256=${signature}` },
    body: '{}',
  })
  expect(answer.status).toBe(400)
})

test.skipIf(!hasPython)(
  'the example webhook_receiver.py refuses to start with an empty webhook secret',
  async () => {
    await using receiver = startCommand(['python3', 'examples/webhook_receiver.py'], {
      ...{ WEBHOOK_SECRET: '', API: till.service.url, PORT: '0' },
    })
    await expect(printed(receiver, /receiving at/)).rejects.toThrow('WEBHOOK_SECRET')
  },
)

test('the example useSecret.ts sends a secret token to a server, but the example itself cannot read the token', async () => {
  const TOKEN = 'tok_8f7a6b5c4d3e2f1a'
  const port = await serveTls(certificate, ({ headers }, response) => {
    const isRight = headers.authorization === `Bearer ${TOKEN}`
    response
      .writeHead(isRight ? 200 : 401)
      .end(`{"you are":"ada","with":"${headers.authorization}"}`)
  })
  const { process } = await run('useSecret.ts', /using it: (.*)/, {
    ...{ TOKEN, URL: `https://bank.example:${port}/me` },
  })
  expect(await process.exited).toBe(0)
  expect(process.stdout().trim().split('\n')).toEqual([
    'reading it: refused',
    'using it: answered, 200',
    'writing it elsewhere: refused',
    '{"you are":"ada","with":"Bearer [masked]"}',
  ])
})

for (const file of ['agent.ts', 'agent.py']) {
  test.skipIf(file.endsWith('.py') && !hasPython)(
    `${file} answers a message once and marks it as read`,
    async () => {
      const [writer, answering] = [await till.service.newAgent(), await till.service.newAgent()]
      const { process } = await run(file, /answering the mail of (\S+)/, { KEY: answering.key })
      await writer.post('/v0/messages/send', {
        to: [answering.address],
        subject: 'Offer',
        text: 'Shall I order?',
      })
      const [answer] = await waitFor('the answer', async () => {
        const messages = await waitForMessages(writer, 2)
        return messages.filter(({ labels }: any) => labels.includes('received'))
      })
      expect(answer).toMatchObject({ subject: 'Re: Offer', from: [answering.address] })
      const { body } = await writer.get(messagePath(answer.messageId))
      expect(body.text).toContain('Shall I order?')
      await waitFor('the message to be read', async () => {
        const { body: unread } = await answering.get('/v0/messages?labels=unread')
        return unread.messages.length === 0
      })
      expect(process.child.exitCode).toBeNull()
    },
  )
}

for (const file of ['agent.ts', 'agent.py']) {
  test.skipIf(file.endsWith('.py') && !hasPython)(
    `${file} answers two messages whose long ids differ only at their start`,
    async () => {
      const answering = await till.service.newAgent()
      const id = `${'0'.repeat(250)}@mail.example`
      for (const n of ['1', '2']) {
        await deliverRaw(
          till.service.smtp!.port,
          answering.address,
          `From: Ada <ada@example.com>\nMessage-ID: <${n}${id}>\nSubject: Offer ${n}\n\nHello.\n`,
        )
      }
      await waitForMessages(answering, 2)
      const { process } = await run(file, /answering the mail of (\S+)/, { KEY: answering.key })
      await waitFor('both messages to be read', async () => {
        expect(process.child.exitCode).toBeNull()
        const { body: unread } = await answering.get('/v0/messages?labels=unread')
        return unread.messages.length === 0
      })
      expect((await answering.get('/v0/messages?labels=sent')).body.messages).toHaveLength(2)
    },
  )
}

test('the example signUp.ts prints the code of a sign-up after the mail arrives', async () => {
  const reader = await till.service.newAgent()
  const { process, found } = await run('signUp.ts', /sign up with (\S+)/, { KEY: reader.key })
  expect(found).toBe(reader.address)
  await till.service.deliver({
    from: 'no-reply@example.com',
    to: reader.address,
    subject: 'Confirm your address',
    text: 'Your verification code is 482913.\n\nOr confirm: https://s.example/verify?token=Ab12Cd34Ef56\n',
  })
  expect(await process.exited).toBe(0)
  expect(process.stdout()).toContain('code: 482913\nor confirm at https://s.example/verify?token=')
})

test('the example askFirst.ts waits until the owner has approved or rejected the mail', async () => {
  const { service } = till
  for (const [decision, said] of [
    ['approve', 'sent: as approved'],
    ['reject', 'rejected: rejected by the owner: Not yet.'],
  ] as const) {
    const asking = await heldAgent(service)
    const { process, found } = await run('askFirst.ts', /held: (\S+)/, { KEY: asking.key })
    const { approvalId, sha256 } = await requestOf(service, asking, found)
    const body = decision === 'approve' ? { sha256 } : { reason: 'Not yet.' }
    await service.platform.post(`${heldPath(asking, approvalId)}/${decision}`, body)
    expect(await process.exited).toBe(0)
    expect(process.stdout()).toContain(said)
  }
})

test('the tests of the examples run every example program in the folder', () => {
  const programs = readdirSync(join(import.meta.dir, '../examples')).filter(
    (file) => file.endsWith('.ts') || (file.endsWith('.py') && hasPython),
  )
  expect([...tried].toSorted()).toEqual(programs.toSorted())
})
