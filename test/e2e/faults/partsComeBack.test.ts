import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '../../../shared/apiKey.ts'
import { some } from '../../support/database/extent.ts'
import { RECOVERY_LIMIT_MS } from '../../support/process/alone.ts'
import {
  freePort,
  printed,
  type ServiceProcess,
  startProcess,
} from '../../support/process/process.ts'
import { processesBelow } from '../../support/process/processTree.ts'
import { type Client, createClient, deliverMail, messagePath } from '../../support/service.ts'
import { PRICE, pay } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

/** Maps each part of the service to a pattern for the command line of its process. */
const PARTS = {
  database: /^\S*\/bin\/postgres -D /,
  devnet: /anvil/,
  api: /api\/main\.ts$/,
  smtp: /api\/smtp\/main\.ts$/,
  'mail workers': /workers\/main\.ts --pool mail$/,
  'request workers': /workers\/main\.ts --pool webhooks,vault,purse$/,
  'payment workers': /workers\/main\.ts --pool payments$/,
} as const
type Part = keyof typeof PARTS
const names = Object.keys(PARTS) as Part[]

const pairs = names.flatMap((one, n) => names.slice(n + 1).map((other) => [one, other]))
/**
 * Lists the pairs of service parts that the test kills at the same time. By default, the test kills two pairs.
 * PARTS_PAIRS=all chooses all pairs, which takes a minute.
 */
const chosenPairs: Part[][] =
  process.env.PARTS_PAIRS === 'all'
    ? pairs
    : [
        ['database', 'mail workers'],
        ['devnet', 'api'],
      ]

let dataDir: string
let service: ServiceProcess
let agent: Client
let smtpPort: number
let resource: string

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'purser-parts-'))
  const port = await freePort()
  smtpPort = await freePort()
  const key = generateKey('project')
  service = startProcess('api/start.ts', {
    PORT: String(port),
    SMTP_PORT: String(smtpPort),
    DEVNET_PORT: '0',
    DATA_DIR: dataDir,
    BOOTSTRAP_PROJECT_KEY: key,
    RATE_LIMIT_REQUESTS: '0',
    LOG_LEVEL: 'warn',
  })
  await printed(service, /Purser is running/)
  agent = createClient(`http://127.0.0.1:${port}`, key)
  resource = `http://127.0.0.1:${port}/nothing`
  await agent.put('/v0/sellers/endpoints', { urlPattern: resource, priceUsdc: PRICE })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(dataDir, { recursive: true, force: true })
})

function kill(part: Part): void {
  const found = processesBelow(service.child.pid!).filter(({ command }) =>
    PARTS[part].test(command),
  )
  expect(found.map(() => part)).toEqual([part])
  process.kill(found[0]!.pid, 'SIGKILL')
}

/**
 * Waits until a mail is received and a payment is redeemed, which together prove that every part of the service works.
 */
async function untilServing(): Promise<void> {
  const deadline = Date.now() + RECOVERY_LIMIT_MS
  const eventually = async (wanted: string, work: () => Promise<boolean>) => {
    await waitFor(wanted, () => work().catch(() => false), deadline - Date.now())
  }
  const messageId = `<${crypto.randomUUID()}@x.test>`
  const mail = { from: 'a@x.test', to: 'agent@mail.localhost', text: 'x', messageId }
  await eventually('the listener to take mail', async () => {
    await deliverMail(smtpPort, mail)
    return true
  })
  const { header: paymentHeader } = await pay()
  await eventually('a payment to be granted', async () => {
    const { body } = await agent.post('/v0/payments/redeem', {
      paymentHeader,
      resource,
      amount: PRICE,
    })
    return body.ok
  })
  await eventually(
    'the message',
    async () => (await agent.get(messagePath(messageId))).status === 200,
  )
  await eventually('/readyz', async () => (await agent.get('/readyz')).status === 200)
}

const killed: (readonly string[])[] = [
  ...some([names, ...chosenPairs, ...names.map((name) => [name])], 2),
]

test.each(killed.map((parts) => [parts.join(', '), parts] as const))(
  'the service works again within 15 s after a kill of: %s',
  async (_, parts) => {
    await untilServing()
    for (const part of parts) kill(part as Part)
    await untilServing()
  },
)

test('the log reports the end and the restart of each part of the service, in few lines without a stack trace', () => {
  const lines = service
    .stderr()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  for (const part of names) {
    const ofPart = lines.filter((line) => line.part === part)
    const ended = ofPart.filter(({ msg }) => msg === 'a part ended; starting it again')
    expect(ended.length).toBeGreaterThanOrEqual(
      killed.filter((parts) => parts.includes(part)).length,
    )
    expect(ofPart.filter(({ msg }) => msg === 'a part is back')).toHaveLength(ended.length)
  }
  expect(lines.length).toBeLessThan(40 * (names.length + chosenPairs.length + 1))
  expect(service.stderr()).not.toContain('    at ')
})
