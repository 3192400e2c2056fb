/**
 * Pastes the code blocks of README.md, docs/agent.md and docs/seller.md into terminals, in their order, as a newcomer
 * would. The tests replace only ports, host names and the placeholders that the reader fills in.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { freePort } from '../../support/process/process.ts'
import { deliverMail } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import { hasLine } from '../goingLive/page.ts'
import { type Block, readBlocks } from './blocks.ts'
import { type Reader, startReader } from './reader.ts'
import type { Terminal } from './terminal.ts'
import '../../support/long.ts'

/** Lists the code blocks of the pages that these tests do not paste: the page, the first line, and the reason. */
const NOT_PASTED: [page: string, name: string, reason: string][] = [
  [
    'README.md',
    'npm start      #',
    'the tests start the service by this command, and are themselves the tests',
  ],
  ['docs/seller.md', 'SELL_API_KEY=', 'these lines belong into the file .env of a container'],
  [
    'docs/seller.md',
    'docker compose',
    'it needs the image, which test/e2e/container.test.ts builds',
  ],
  ['docs/seller.md', 'docker run', 'it needs the image, which test/e2e/container.test.ts builds'],
]
const LANGUAGES = ['sh', 'js', 'ts', 'python']

const blocks = ['README.md', 'docs/agent.md', 'docs/seller.md']
  .flatMap(readBlocks)
  .filter(({ language }) => LANGUAGES.includes(language))
const pasted = new Set<string>()

let reader: Reader
beforeAll(async () => {
  reader = await startReader()
}, 180_000)
afterAll(() => reader[Symbol.asyncDispose]())

const keyOf = ({ page, text }: Block) => `${page}\n${text}`

/**
 * Returns the code block of a page that contains a text. @throws {Error} unless exactly one block contains the text.
 */
function blockOf(page: string, part: string) {
  const found = blocks.filter((block) => block.page === page && block.text.includes(part))
  const [block] = found
  if (block === undefined || found.length > 1)
    throw new Error(`${found.length} blocks of ${page} hold ${part}`)
  pasted.add(keyOf(block))
  return block
}

/**
 * Pastes a code block of a documentation page, and checks that it prints what the page shows. @returns what the
 * terminal shows.
 */
async function paste(terminal: Terminal, page: string, part: string, until?: RegExp) {
  const block = blockOf(page, part)
  const shown = await terminal.paste(reader.filled(block), until)
  for (const line of block.prints) expect([shown, hasLine(shown, line)]).toEqual([shown, true])
  return shown
}

const deliver = (subject: string, text: string, messageId: string) =>
  deliverMail(reader.smtpPort, {
    ...{ from: 'no-reply@example.com', to: 'agent@mail.localhost' },
    ...{ subject, text, messageId },
  })
const unread = async () => (await reader.agent.get('/v0/messages?labels=unread')).body.messages

test('a terminal of these tests finds a command that fails and an error response of the service', async () => {
  const terminal = reader.openTerminal()
  await paste(terminal, 'docs/agent.md', 'export KEY')
  await expect(terminal.paste('curl -s "$API/v0/whoami"')).rejects.toThrow('unauthorized')
  await expect(terminal.paste('false | cat')).rejects.toThrow('exit 1')
  await expect(reader.openTerminal().paste('bun --version')).rejects.toThrow('exit 127')
})

test('the commands and programs of README.md work as pasted', async () => {
  const page = 'README.md'
  await using terminal = reader.openTerminal()
  expect(await paste(terminal, page, 'export KEY')).toContain('"email":"agent@mail.localhost"')
  await paste(terminal, page, 'curl smtp://')
  await waitFor('the mail', async () => (await unread()).length === 1)
  const read = await paste(terminal, page, '/reply')
  expect(read).toContain('"messageId":"<offer-1@example.com>"')
  expect(read).toContain('"subject":"Re: Offer"')
  expect(read).toContain('"messageCount":2')
  expect(await paste(terminal, page, '/v0/vault/github')).toContain('"password":"correct horse"')
  const sold = await paste(terminal, page, 'examples/seller.ts')
  expect(sold).toMatch(/^HTTP\/1.1 402 /m)
  expect(sold).toContain('{"x402Version":1,"error":"X-PAYMENT header is required","accepts":[{')
})

test('the commands and programs on the page docs/agent.md work as pasted', async () => {
  const page = 'docs/agent.md'
  const terminal = reader.openTerminal()
  await paste(terminal, page, 'export KEY')
  await paste(terminal, page, 'npm pack ./api/client')
  reader.save('my-agent/answer.mjs', reader.filled(blockOf(page, 'messages.all')))
  await deliver('Question', 'Is it ready?', '<question@example.com>')
  await waitFor('the mail', async () =>
    (await unread()).some(({ subject }: any) => subject === 'Question'),
  )
  await terminal.paste('node my-agent/answer.mjs')
  expect(await unread()).toEqual([])
  const { body } = await reader.agent.get('/v0/messages?labels=sent&subject=Question')
  expect(body.messages).toMatchObject([{ subject: 'Re: Question', text: 'Thank you.' }])
  // While the commands wait for a mail with a code, the test delivers such mails.
  let mails = 0
  const arriving = setInterval(
    () =>
      void deliver(
        'Your code',
        'Your verification code is 482913.',
        `<code-${++mails}@example.com>`,
      ),
    1_000,
  )
  try {
    const shown = await paste(terminal, page, '/v0/events', /^data: .*message\.received/m)
    expect(shown).toMatch(/"codes":\[\{[^\]]*"value":"482913"/)
  } finally {
    clearInterval(arriving)
  }
})

test('the commands and programs on the page docs/seller.md work as pasted', async () => {
  const page = 'docs/seller.md'
  const open = async () => {
    const terminal = reader.openTerminal()
    await paste(terminal, page, 'export KEY')
    return terminal
  }
  const [first, buyer] = [await open(), await open()]
  const buy = async (prefix = '') => {
    const shown = await buyer.paste(prefix + reader.filled(blockOf(page, 'examples/buyer.ts')))
    for (const line of blockOf(page, 'examples/buyer.ts').prints) {
      expect([shown, hasLine(shown, line)]).toEqual([shown, true])
    }
  }
  const registered = await paste(first, page, '"webhookUrl"')
  const [, secret = ''] = /"webhookSecret":"(whsec_\w+)"/.exec(registered) ?? []
  reader.fill('whsec_…', secret)
  // A person takes longer to open a terminal than the service needs to find that nobody sells yet. Therefore the test
  // waits for the check of the endpoint.
  await waitFor('the check of the endpoint', async () => {
    const { body } = await reader.agent.get('/v0/sellers/endpoints')
    return body.endpoints.every(({ verification }: any) => verification.status !== 'pending')
  })
  let rawBody = ''
  {
    await using seller = await open()
    await paste(seller, page, 'examples/seller.ts', /^selling at /m)
    await buy()
    rawBody = await waitFor(
      'the webhook',
      () => /webhook, signature valid: (.*)/.exec(seller.shown())?.[1],
    )
  }
  const [prices] = readBlocks(page).filter(({ language }) => language === 'json')
  reader.save('prices.json', prices!.text)
  {
    await using _server = plainServer()
    for (const part of ['/weather 0.01', '--prices prices.json\n']) {
      await using proxy = await open()
      const port = await freePort()
      const command = reader.filled(blockOf(page, part)).trimEnd()
      await proxy.paste(`${command} --port ${port}`, new RegExp(`127\\.0\\.0\\.1:${port}`))
      await buy(`URL=http://127.0.0.1:${port}/weather `)
    }
  }
  {
    await using shop = await open()
    reader.save('my-agent/shop.mjs', reader.filled(blockOf(page, 'purser-client/express')))
    await shop.paste('node my-agent/shop.mjs &')
    await waitFor('the paywall', () => offerOf('payment-required'))
    await buy()
  }
  {
    await using shop = await open()
    reader.save('my-agent/own.mjs', reader.filled(blockOf(page, 'HTTPFacilitatorClient')))
    await shop.paste('node my-agent/own.mjs &')
    const offer = await waitFor('the middleware', () => offerOf('payment-required'))
    expect(JSON.parse(atob(offer))).toMatchObject({
      accepts: [{ network: 'eip155:84532', amount: '10000' }],
    })
  }
  const list = blockOf(page, 'discoverable: true')
  reader.save('my-agent/found.mjs', `${CLIENT}${reader.filled(list)}`)
  await first.paste('node my-agent/found.mjs')
  const { body } = await reader.agent.get('/v0/sellers/endpoints')
  expect(body.endpoints).toContainEqual(expect.objectContaining({ serviceName: 'Weather of Oslo' }))

  const signature = createHmac('sha256', secret).update(rawBody).digest('hex')
  const received = {
    WEBHOOK_SECRET: secret,
    rawBody,
    headers: { 'x-service-signature': `sha256=${signature}` },
  }
  const names = Object.keys(received).join(', ')
  reader.save(
    'my-agent/verify.mjs',
    `const { ${names} } = ${JSON.stringify(received)}
const jwks = await (await fetch(process.env.API + '/.well-known/jwks.json')).json()
${reader.filled(blockOf(page, 'verifyWebhook({'))}
process.stdout.write([amountUsdcRaw, new URL(resource).pathname, paymentId].join(' '))`,
  )
  expect(await first.paste('node my-agent/verify.mjs')).toMatch(/^10000 \/weather pay_\w+$/m)
})

test('the commands that npm start proposes work as pasted', async () => {
  await using terminal = reader.openTerminal()
  const shown = await terminal.paste(reader.proposed)
  expect(shown).toContain('"email":"agent@mail.localhost"')
  expect(shown).toContain('"subject":"Hello"')
})

test('these tests paste every code block of the pages, except for the blocks in the table NOT_PASTED', () => {
  const left = blocks.filter((block) => !pasted.has(keyOf(block)))
  const reasons = NOT_PASTED.map(([page, name]) =>
    left.find((block) => block.page === page && block.name.startsWith(name)),
  )
  expect(reasons).not.toContain(undefined)
  expect(left.filter((block) => !reasons.includes(block))).toEqual([])
  expect(pasted.size).toBeGreaterThan(14)
})

/** Makes the API client that an earlier code block of the page has made. */
const CLIENT = `import { Purser } from 'purser-client'
const purser = new Purser({ apiKey: process.env.KEY, baseUrl: process.env.API })
`

/**
 * Returns a header of an unpaid response of the seller that the page starts, or null if this seller does not answer.
 */
const offerOf = async (header: string): Promise<string | null> => {
  const response = await fetch(`http://127.0.0.1:${reader.shopPort}/weather`).catch(() => null)
  return response?.headers.get(header) ?? null
}

/** Serves the page for which the proxy asks for money. */
function plainServer() {
  const server = Bun.serve({
    port: reader.shopPort,
    hostname: '127.0.0.1',
    fetch: () => new Response('The weather is fine.\n'),
  })
  return { [Symbol.asyncDispose]: () => server.stop(true) }
}
