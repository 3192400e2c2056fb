import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { dkimRecord, dkimSign, txtStrings } from '../../../../shared/mail/compose/dkim.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const SIGNER = { domain: 'mail.test', selector: 's1', privateKey }
const RECORD = dkimRecord(publicKey)

/** Returns the verdicts of the library mailauth, which shares no code with the service's DKIM signer. */
async function verdicts(message: Buffer, records: Record<string, string> = {}): Promise<string[]> {
  const known: Record<string, string> = { 's1._domainkey.mail.test': RECORD, ...records }
  const { results } = await dkimVerify(message, {
    resolver: async (name: string) => {
      if (known[name] !== undefined) return [[known[name]]]
      throw Object.assign(new Error('none'), { code: 'ENOTFOUND' })
    },
  } as any)
  return results.map(({ status }: any) => status.result)
}

const HEADER = [
  'From: Agent <agent@mail.test>',
  'To: ada@example.com,',
  '  bob@example.com',
  'Subject:  Two   spaces \tand a tab ',
  'Date: Mon, 05 Jan 2026 09:30:00 +0000',
  'Message-ID: <a@mail.test>',
  'MIME-Version: 1.0',
  'Content-Type: text/plain; charset=utf-8',
]
const message = (body: string, header = HEADER) =>
  Buffer.from(`${header.join('\r\n')}\r\n\r\n${body}`, 'utf8')

test('the library mailauth accepts the DKIM signature for each tested form of mail body', async () => {
  for (const body of [
    '',
    '\r\n',
    '\r\n\r\n\r\n',
    'x',
    'x\r\n',
    'x\r\n\r\n\r\n',
    ' leading and trailing  \r\n\t \r\nnext \t \r\n \r\n',
    'no end of line, spaces at the end   ',
    'Grüße ✓\r\n.\r\n..dots\r\n',
    `${'long '.repeat(200)}\r\n`.repeat(50),
  ]) {
    expect([body.slice(0, 20), await verdicts(dkimSign(message(body), [SIGNER]))]).toEqual([
      body.slice(0, 20),
      ['pass'],
    ])
  }
})

test('a DKIM signature stays valid after changes that relays usually make, and breaks if visible content changes', async () => {
  const signed = dkimSign(message('Pay 10 to Ada.\r\n'), [SIGNER]).toString()
  const changed = (from: string, to: string) => Buffer.from(signed.replace(from, to))
  expect(await verdicts(changed('Two   spaces', 'Two spaces'))).toEqual(['pass'])
  expect(await verdicts(changed('Ada.\r\n', 'Ada. \r\n\r\n'))).toEqual(['pass'])
  const relayed = Buffer.from(`Received: by x\r\nList-Id: <x>\r\n${signed}`)
  expect(await verdicts(relayed)).toEqual(['pass'])
  for (const [from, to] of [
    ['Pay 10', 'Pay 99'],
    ['Two   spaces', 'Three spaces'],
    ['ada@example.com', 'eve@example.com'],
    ['charset=utf-8', 'charset=utf-7'],
  ] as const) {
    expect([to, await verdicts(changed(from, to))]).not.toEqual([to, ['pass']])
  }
  for (const added of [
    'From: eve@example.com',
    'Subject: Pay',
    'Reply-To: eve@example.com',
    'Cc: x@y.z',
  ]) {
    expect([added, await verdicts(Buffer.from(`${added}\r\n${signed}`))]).not.toEqual([
      added,
      ['pass'],
    ])
  }
})

test('several DKIM keys sign one message, and each signature is valid by itself', async () => {
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signed = dkimSign(message('x\r\n'), [
    SIGNER,
    { domain: 'mail.test', selector: 's2', privateKey: other.privateKey },
  ])
  const both = { 's2._domainkey.mail.test': dkimRecord(other.publicKey) }
  expect(await verdicts(signed, both)).toEqual(['pass', 'pass'])
  expect((await verdicts(signed)).toSorted()).toEqual(['neutral', 'pass'])
  expect(dkimSign(message('x'), []).equals(message('x'))).toBe(true)
})

test('even for a long domain, the lines of a DKIM signature have less than 120 characters, and the signed message stays unchanged', () => {
  const original = message('x\r\n')
  const signed = dkimSign(original, [{ ...SIGNER, domain: `${'x'.repeat(60)}.mail.test` }])
  expect(signed.subarray(-original.length).equals(original)).toBe(true)
  const lines = signed.toString().split('\r\n')
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(120)
})

test('a DNS TXT record is split into strings of at most 255 bytes', () => {
  const strings = [...txtStrings(RECORD).matchAll(/"([^"]*)"/g)].map(([, text]) => text!)
  expect(strings.length).toBe(2)
  expect(strings.every((text) => text.length <= 255)).toBe(true)
  expect(strings.join('')).toBe(RECORD)
  expect(txtStrings('say "x" \\')).toBe('"say \\"x\\" \\\\"')
  expect(txtStrings('')).toBe('""')
})

test('if there is no DKIM key, a message is not changed', () => {
  const plain = message('x\r\n')
  expect(dkimSign(plain, [])).toBe(plain)
})

test('a message without a body is signed like a message with an empty body', async () => {
  const bare = Buffer.from(`${HEADER.join('\r\n')}\r\n`)
  const signed = dkimSign(bare, [SIGNER]).toString('latin1')
  expect(await verdicts(Buffer.from(`${signed}\r\n`, 'latin1'))).toEqual(['pass'])
})

test('a DKIM signature is folded into lines of at most 78 characters, and its list of signed fields still ends with a field name', () => {
  const signed = dkimSign(message('x\r\n'), [SIGNER]).toString('latin1')
  const field = signed.slice(0, signed.indexOf('\r\nFrom:'))
  for (const line of field.split('\r\n')) expect(line.length).toBeLessThanOrEqual(78)
  const fields = /h=([^;]*);/.exec(field)![1]!
  expect(fields).toContain(':\r\n ')
  expect(fields).toEndWith('list-unsubscribe-post')
})
