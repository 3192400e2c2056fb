/**
 * Packs the published client as an npm package, installs it into an empty folder, checks its types, and runs it in
 * Node.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { signWebhook } from '../../shared/events/webhookSignature.ts'
import { type ReceiptBody, signReceipt } from '../../shared/till/receipt.ts'
import { receiptJwks, receiptKey } from '../../shared/till/receiptKey.ts'
import { messagePath, startTestService, type TestService } from '../support/service.ts'
import '../support/whole.ts'

const ROOT = join(import.meta.dir, '../..')
const folder = mkdtempSync(join(tmpdir(), 'purser-pack-'))
const app = join(folder, 'app')

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  await run('npm', ['pack', '--pack-destination', folder], join(ROOT, 'api/client'))
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
  mkdirSync(app)
  writeFileSync(join(app, 'package.json'), '{"type":"module","private":true}')
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', join(folder, tarball)], app)
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs a program asynchronously, because this test process also runs the API. @returns the output of the program */
async function run(program: string, args: string[], cwd: string, env: Record<string, string> = {}) {
  const { PATH = '', HOME = '' } = process.env
  const { stdout } = await promisify(execFile)(program, args, { cwd, env: { PATH, HOME, ...env } })
  return stdout
}

test('the published client package has no dependencies and contains only built files', () => {
  expect(readdirSync(join(app, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
    'purser-client',
  ])
  const own = join(app, 'node_modules/purser-client')
  expect(readdirSync(own).toSorted()).toEqual(['README.md', 'dist', 'package.json'])
  expect(readdirSync(join(own, 'dist'))).toEqual(
    expect.arrayContaining(['main.js', 'main.d.ts', 'paywalls']),
  )
})

test('calls, pages, errors, webhooks, receipts and every entry point of the client package work under Node', async () => {
  const agent = await service.newAgent()
  for (const subject of ['1', '2', '3']) {
    await agent.post('/v0/messages/send', { to: ['a@example.com'], subject, text: 't' })
  }
  const key = receiptKey({ seed: new Uint8Array(32).fill(7), did: 'did:web:till.example.com' })
  const body: ReceiptBody = {
    version: 1,
    paymentId: 'pay_1',
    paymentInId: 'pay_1',
    endpointId: 'se_1',
    projectId: 'prj_1',
    identityId: 'prj_1',
    payerAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    recipientAddress: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
    amountUsdcRaw: '10000',
    network: 'base',
    resource: 'https://api.example.com/ü',
    txHash: `0x${'ab'.repeat(32)}`,
    timestamp: '2026-01-02T03:04:05.678Z',
  }
  const receipt = signReceipt({ body, key })
  const raw = JSON.stringify(receipt)
  writeFileSync(
    join(app, 'use.mjs'),
    `
    import { NotFoundError, Purser, verifyReceipt, verifyWebhook } from 'purser-client'
    for (const door of ['express', 'fetch', 'hono', 'mcp']) {
      const { requirePayment } = await import('purser-client/' + door)
      if (typeof requirePayment !== 'function') throw new Error(door)
    }
    const { KEY, API, RAW, SIGNATURE, JWKS } = process.env
    const purser = new Purser({ apiKey: KEY, baseUrl: API })
    const subjects = []
    for await (const { subject } of purser.messages.all({ limit: 2 })) subjects.push(subject)
    const { email } = await purser.whoami()
    const lost = await purser.messages.get('<no@where>').catch((error) => error)
    const headers = { 'x-service-signature': SIGNATURE, 'x-service-event': 'payment.received' }
    const { event, receipt } = await verifyWebhook({ body: RAW, headers, secret: 'whsec_x' })
    const { paymentId } = await verifyReceipt({ receipt, keys: JSON.parse(JWKS) })
    const forged = { ...receipt, body: { ...receipt.body, amountUsdcRaw: '1' } }
    const refused = await verifyReceipt({ receipt: forged, keys: JSON.parse(JWKS) }).catch((error) => error.reason)
    const found = [subjects, email, lost instanceof NotFoundError, event, paymentId, refused]
    console.log(JSON.stringify(found))
    `,
  )
  const printed = await run('node', ['--no-warnings', 'use.mjs'], app, {
    KEY: agent.key,
    API: service.url,
    RAW: raw,
    SIGNATURE: signWebhook({ secret: 'whsec_x', body: raw }),
    JWKS: JSON.stringify(receiptJwks([key])),
  })
  expect(JSON.parse(printed)).toEqual([
    ['3', '2', '1'],
    agent.address,
    true,
    'payment.received',
    'pay_1',
    'bad_signature',
  ])
})

test('the example code of docs/agent.md runs unchanged', async () => {
  const agent = await service.newAgent()
  await agent.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text: 't' })
  const [message] = (await agent.get('/v0/messages')).body.messages
  await agent.patch(messagePath(message.messageId), { addLabels: ['unread'] })
  const page = readFileSync(join(ROOT, 'docs/agent.md'), 'utf8')
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? []
  writeFileSync(join(app, 'guide.mjs'), code)
  const settings = { KEY: agent.key, API: service.url }
  await run('node', ['--no-warnings', 'guide.mjs'], app, settings)
  const { messages } = (await agent.get('/v0/messages')).body
  expect(messages.map(({ subject, labels }: any) => [subject, labels])).toEqual([
    ['Re: s', ['sent']],
    ['s', ['sent', 'read']],
  ])
})

test('the types of the client package compile in strict mode without other type packages', async () => {
  writeFileSync(
    join(app, 'use.ts'),
    `
    import { type Message, Purser, PurserPlatform, type Receipt, verifyReceipt } from 'purser-client'
    import { requirePayment } from 'purser-client/fetch'
    const purser = new Purser({ apiKey: 'loid-', baseUrl: 'http://127.0.0.1' })
    export const subject = async (): Promise<string> => (await purser.messages.get('<a@b>')).subject
    export const labels = (message: Message): string[] => message.labels
    export const paid = async (receipt: Receipt): Promise<string> =>
      (await verifyReceipt({ receipt, keys: 'ab' })).amountUsdcRaw
    export const handler = requirePayment({ purser, amount: '0.01' }, () => new Response('x'))
    export const key = async () => (await new PurserPlatform({ apiKey: 'lopk-' }).projects.create()).rawKey
    // @ts-expect-error: a mail needs a subject
    purser.messages.send({ to: ['a@b.test'], text: 't' })
    // @ts-expect-error: the type has no such member
    export const none = async () => (await purser.whoami()).nothing
    `,
  )
  const options =
    '--noEmit --strict --module nodenext --target es2022 --lib es2023,dom --types'.split(' ')
  await run(join(ROOT, 'node_modules/.bin/tsc'), [...options, '', 'use.ts'], app)
})
