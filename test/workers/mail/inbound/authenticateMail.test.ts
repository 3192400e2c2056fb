import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { sealMessage } from 'mailauth'
import { dkimSign } from 'mailauth/lib/dkim/sign'
import type { AuthenticationWord } from '../../../../shared/mail/parse/authentication.ts'
import { parseMail } from '../../../../shared/mail/parse/parseMail.ts'
import type { InboundMail } from '../../../../sql/mail/inbound/inboundMails.ts'
import { authenticateMail, findAnswers } from '../../../../workers/mail/inbound/authenticateMail.ts'
import { fakeDns, type Zone as MailZone } from '../../../support/mail/fakeDns.ts'
import { dnsError, fakeLookUp, type Zone } from '../../../support/mail/fakeLookUp.ts'
import { addVerifiedDomain } from '../../../support/mail/ownDomain.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import {
  type Agent,
  messagePath,
  startTestService,
  type TestService,
} from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const dkimRecord = `v=DKIM1; k=rsa; p=${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`

const ZONE: Zone = {
  'honest.test TXT': [['v=spf1 ip4:127.0.0.1 -all']],
  's1._domainkey.honest.test TXT': [[dkimRecord.slice(0, 200), dkimRecord.slice(200)]],
  '_dmarc.honest.test TXT': [['v=DMARC1; p=reject']],
  // The SPF record of victim.test allows only an IP address from which the test client does not send.
  'victim.test TXT': [['v=spf1 ip4:192.0.2.1 -all']],
  '_dmarc.victim.test TXT': [['v=DMARC1; p=none']],
  'client.test TXT': [['v=spf1 ip4:127.0.0.1 -all']],
  'mail.client.test TXT': [['v=spf1 ip4:127.0.0.1 -all']],
  // The host of the test client may send for mail.strict.test. This name belongs to another owner than strict.test, so
  // it proves nothing for strict.test.
  'mail.strict.test TXT': [['v=spf1 ip4:127.0.0.1 -all']],
  'strict.test TXT': [['v=spf1 ip4:127.0.0.1 -all']],
  's1._domainkey.strict.test TXT': [[dkimRecord]],
  's1._domainkey.mail.strict.test TXT': [[dkimRecord]],
  'soft.test TXT': [['v=spf1 ~all']],
  'away.test TXT': dnsError('ETIMEOUT'),
  '_dmarc.away.test TXT': dnsError('ETIMEOUT'),
  'endless.test TXT': [['v=spf1 include:endless.test -all']],
}

/** Holds the DNS zone with the mail domains of the service. */
const mailZone: MailZone = {}
const answering = fakeLookUp(ZONE)

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({
    dns: fakeDns(mailZone),
    // The silent name servers of the test never answer, and all others take 5 ms for an answer.
    async lookUp(name, type) {
      if (name.endsWith('silent.test')) return await new Promise(() => {})
      await Bun.sleep(5)
      return await answering(name, type)
    },
  })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

let mails = 0

/** Returns the text of a message with CRLF line ends. */
const write = (from: string, headers = '', body = 'Hello there.') =>
  `From: ${from}\r\nTo: ${agent.address}\r\nSubject: Test\r\nMessage-ID: <${++mails}@x.test>\r\n${headers}\r\n${body}\r\n`

const signed = async (
  message: string,
  domain = 'honest.test',
  {
    headerList,
    ...options
  }: { maxBodyLength?: number; algorithm?: string; headerList?: string } = {},
): Promise<string> => {
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const key = { signingDomain: domain, selector: 's1', privateKey: pem, ...options }
  // Without signTime, the DKIM signer reads the clock twice, and a new second may begin between the two readings. This
  // previously made 1 of 1,500 signatures invalid.
  const signTime = new Date()
  const { signatures } = await dkimSign(message, {
    ...{ ...key, signTime, signatureData: [key] },
    ...(headerList === undefined ? {} : { headerList: headerList as never }),
  })
  return signatures + message
}

const signedTenTimes = async (message: string, domain: string): Promise<string> => {
  const whole = await signed(message, domain)
  const signature = whole.slice(0, -message.length)
  // Each signature names another DKIM selector, so each signature needs its own DNS lookup.
  return (
    Array.from({ length: 10 }, (_, n) => signature.replace('s=s1', `s=s${n}`)).join('') + message
  )
}

/**
 * Delivers a message with the given envelope sender, and returns the stored result of its SPF, DKIM and DMARC checks.
 */
async function receive(message: string, sender: string) {
  const id = /Message-ID: (<[^>]+>)/.exec(message)![1]!
  await deliverRaw(service.smtp!.port, agent.address, message, { sender })
  const { authentication, labels, from } = await waitFor('the message', async () => {
    const { status, body } = await agent.get(messagePath(id))
    return status === 200 ? body : null
  })
  authorsOf.set(message, from)
  return { ...authentication, labelled: labels.includes('unauthenticated') }
}

/** Maps the Message-ID of each received message to the authors in its From header. */
const authorsOf = new Map<string, string[]>()

test('a DKIM-signed message from the mail host of its domain passes SPF, DKIM and DMARC', async () => {
  expect(await receive(await signed(write('Ada <ada@honest.test>')), 'ada@honest.test')).toEqual({
    spf: 'pass',
    dkim: 'pass',
    dmarc: 'pass',
    arc: 'none',
    internal: false,
    aligned: true,
    labelled: false,
  })
})

test('a changed body breaks the DKIM signature of a mail, but SPF still passes', async () => {
  const message = (await signed(write('ada@honest.test'))).replace('Hello', 'Jello')
  expect(await receive(message, 'ada@honest.test')).toMatchObject({
    spf: 'pass',
    dkim: 'fail',
    dmarc: 'pass',
    labelled: false,
  })
})

test('the DKIM verdict of a mail is pass if one signature is valid and another signature is invalid', async () => {
  const message = await signed(await signed(write('ada@honest.test')), 'victim.test')
  expect(await receive(message, 'list@victim.test')).toMatchObject({ dkim: 'pass', dmarc: 'pass' })
})

test('a forwarded mail fails SPF, but its DKIM signature still passes', async () => {
  expect(await receive(await signed(write('ada@honest.test')), 'list@victim.test')).toMatchObject({
    spf: 'fail',
    dkim: 'pass',
    dmarc: 'pass',
    labelled: false,
  })
})

test('a mail with a forged From header fails DMARC and is labelled as unauthenticated, even if SPF and the DKIM signature of another domain pass', async () => {
  for (const message of [write('boss@victim.test'), await signed(write('boss@victim.test'))]) {
    expect(await receive(message, 'ada@honest.test')).toMatchObject({
      dmarc: 'fail',
      labelled: true,
    })
  }
})

test('a mail fails DMARC and is labelled as unauthenticated if the domain in its From header does not allow the sending host', async () => {
  expect(await receive(write('boss@victim.test'), 'boss@victim.test')).toMatchObject({
    spf: 'fail',
    dkim: 'none',
    dmarc: 'fail',
    labelled: true,
  })
})

test('a mail with a forged From header is labelled as unauthenticated in every spelling of the header, and the message shows all authors', async () => {
  const [boss, own] = ['boss@victim.test', 'ada@honest.test']
  const forms: [string, string, string[]][] = [
    ['fail', `g: ${boss};`, [boss]],
    ['fail', '=?utf-8?q?=3Cboss=40victim.test=3E?=', [boss]],
    ['fail', `${boss}, chief@victim.test`, [boss, 'chief@victim.test']],
    ['permerror', `${boss}, ${own}`, [boss, own]],
    ['permerror', `${own}, ${boss}`, [own, boss]],
    ['permerror', `${boss}\r\nFrom: ${own}`, [boss, own]],
    ['permerror', `${own}\r\nFrom: ${boss}`, [own, boss]],
    ['permerror', `<boss@victim.test(x>`, ['boss@victim.test(x']],
  ]
  for (const [dmarc, form, authors] of forms) {
    const message = await signed(write(form))
    const found = await receive(message, own)
    expect([form, found.dmarc, found.labelled]).toEqual([form, dmarc, true])
    expect([form, authorsOf.get(message)!.toSorted()]).toEqual([form, authors.toSorted()])
  }
  expect(await receive(await signed(write(`${own}, bob@honest.test`)), own)).toMatchObject({
    dmarc: 'pass',
    labelled: false,
  })
})

test('a mail with a forged From header is labelled as unauthenticated even if the name servers do not answer', async () => {
  const found = await Promise.all([
    receive(write('boss@victim.test'), 'x@silent.test'),
    receive(await signed(write('boss@victim.test'), 'silent.test'), 'x@silent.test'),
    receive(await signed(write('ada@honest.test')), 'x@silent.test'),
    receive(write('x@silent.test'), 'x@honest.test'),
    // The DNS never answers the queries for the DKIM keys of the ten signatures. The service waits for ten keys only as
    // long as for one key, so that enough time is left to check SPF.
    receive(await signed(write('ada@honest.test'), 'silent.test'), 'ada@honest.test'),
    receive(await signedTenTimes(write('boss@victim.test'), 'silent.test'), 'x@silent.test'),
  ])
  expect(found.map(({ spf, dmarc, labelled }) => [spf, dmarc, labelled])).toEqual([
    ['temperror', 'fail', true],
    ['temperror', 'fail', true],
    ['temperror', 'pass', false],
    ['pass', 'temperror', true],
    ['pass', 'pass', false],
    ['temperror', 'fail', true],
  ])
})

test('mail from a domain without DNS records gets the verdict none from SPF, DKIM and DMARC, and is labelled as unauthenticated', async () => {
  expect(await receive(write('x@nowhere.test'), 'x@nowhere.test')).toEqual({
    spf: 'none',
    dkim: 'none',
    dmarc: 'none',
    arc: 'none',
    internal: false,
    aligned: false,
    labelled: true,
  })
  expect(await receive(write('x@soft.test'), 'x@soft.test')).toMatchObject({
    spf: 'softfail',
    dmarc: 'none',
  })
})

test('a mail is stored and labelled as unauthenticated if the name servers of the sender’s domain fail', async () => {
  expect(await receive(write('x@away.test'), 'x@away.test')).toMatchObject({
    spf: 'temperror',
    dmarc: 'temperror',
    labelled: true,
  })
})

test('an SPF record that includes itself gives the SPF verdict permerror', async () => {
  expect(await receive(write('x@endless.test'), 'x@endless.test')).toMatchObject({
    spf: 'permerror',
  })
})

test('a mail from outside is labelled as unauthenticated if its sender address is an address of an inbox or of a verified domain', async () => {
  const colleague = await service.newAgent()
  expect(await receive(write(colleague.address), 'x@nowhere.test')).toMatchObject({
    labelled: true,
  })
  const claimed = write('sales@shop.test')
  expect(await receive(claimed, 'x@nowhere.test')).toMatchObject({ dmarc: 'none', labelled: true })
  // SPF passes for the domain in the From header of this mail, and the domain has no DMARC policy.
  expect(await receive(write('sales@client.test'), 'x@mail.client.test')).toMatchObject({
    dmarc: 'none',
    labelled: false,
  })
  await addVerifiedDomain(service, mailZone, 'shop.test')
  expect(await receive(write('sales@shop.test'), 'x@nowhere.test')).toMatchObject({
    dmarc: 'none',
    labelled: true,
  })
})

test('mail from one inbox of the service to another inbox is authenticated as internal', async () => {
  const colleague = await service.newAgent()
  await colleague.post('/v0/messages/send', {
    to: [agent.address],
    subject: 'Between us',
    text: 'Hello',
  })
  const found = await waitFor('the message', async () => {
    const { body } = await agent.get('/v0/messages?subject=between+us')
    return body.count === 1 ? body.messages[0] : null
  })
  const { body } = await agent.get(messagePath(found.messageId))
  expect(body.authentication).toEqual({
    spf: 'none',
    dkim: 'none',
    dmarc: 'none',
    arc: 'none',
    internal: true,
    aligned: true,
  })
  expect(body.labels).not.toContain('unauthenticated')
})

test('a mail whose header would take minutes to parse gets the verdict permerror', async () => {
  const folded = write('Ceo <ceo@honest.test>', `X-A: b\r\n${' \r\n'.repeat(300_000)}`)
  const authors = write(`${'a@honest.test, '.repeat(60_000)}ceo@honest.test`)
  for (const message of [folded, authors]) {
    const { spf, dmarc, labelled } = await receive(message, 'ceo@honest.test')
    expect([spf, dmarc, labelled]).toEqual(['permerror', 'permerror', true])
  }
})

test('the body of a mail is not hashed for DKIM if the body has more blank lines than any real mail', async () => {
  const message = await signed(write('Ada <ada@honest.test>', '', '\r\n'.repeat(20_000)))
  const { spf, dkim, dmarc } = await receive(message, 'ada@honest.test')
  expect([spf, dkim, dmarc]).toEqual(['pass', 'none', 'pass'])
})

test('a message without an author in the From header gets the DMARC verdict none', async () => {
  const message = write('ada@honest.test').replace(/^From: .*\r\n/, '')
  const { dmarc, labelled } = await receive(message, 'ada@honest.test')
  expect([dmarc, labelled]).toEqual(['none', false])
})

test('if the envelope has no sender, SPF checks the HELO name and not the From header', async () => {
  const returned = 'Return-Path: <ada@victim.test>\r\n'
  const trace =
    'Received: from x.test (x.test [127.0.0.1]) (envelope-from <a@victim.test>) by y\r\n'
  for (const header of ['', returned, trace]) {
    // The HELO name client.test of the test client is checked, because the envelope has no sender.
    expect((await receive(header + write('x@nowhere.test'), '')).spf).toBe('pass')
  }
})

const CHECKS = {
  ownHost: 'mail.test',
  authors: ['ada@honest.test'],
  signal: new AbortController().signal,
}

const inboundOf = (message: string): InboundMail => ({
  id: '1',
  projectId: 'p',
  traceparent: null,
  provider: null,
  inboxAddress: agent.address,
  rawId: '1',
  receivedAt: new Date(),
  bytes: Buffer.from(message, 'latin1'),
  envelopeFrom: 'ada@honest.test',
  envelopeTo: agent.address,
  remoteIp: '127.0.0.1',
  helo: 'client.test',
})

/**
 * Returns the result of the SPF, DKIM and DMARC checks, and lists the DKIM keys and DMARC policies that were looked up.
 */
async function authenticated(message: string, lookUp = answering) {
  const keys: string[] = []
  const policies: string[] = []
  const { authentication, isAligned } = await authenticateMail(inboundOf(message), {
    ...CHECKS,
    lookUp(name, type) {
      if (name.includes('_domainkey.')) keys.push(name)
      if (name.startsWith('_dmarc.')) policies.push(name)
      return lookUp(name, type)
    },
  })
  return { ...authentication, isAligned, keys, policies }
}

/** Returns a message with one signature of honest.test and `count` signatures of domains without a key. */
async function withSignatures(
  count: number,
  { position = 0, name = 'DKIM-Signature', body = '' } = {},
) {
  const message = write('ada@honest.test') + body
  const good = (await signed(message)).slice(0, -message.length)
  const others = Array.from({ length: count }, (_, n) => good.replace('d=honest', `d=other${n}`))
  const all = [...others.slice(0, position), good, ...others.slice(position)]
  return all.map((one) => one.replace('DKIM-Signature', name)).join('') + message
}

test('the service checks only ten DKIM signatures of a mail, beginning with the author’s, whatever the spelling of the field name DKIM-Signature', async () => {
  const names = ['DKIM-Signature', 'dkim-signature ', 'DKIM-Signature\r\n ']
  for (const name of names) {
    const tenth = await authenticated(await withSignatures(20, { position: 9, name }))
    expect([name, tenth.keys.length, tenth.dkim]).toEqual([name, 10, 'pass'])
    const eleventh = await authenticated(await withSignatures(20, { position: 10, name }))
    expect([name, eleventh.keys.length, eleventh.dkim]).toEqual([name, 10, 'pass'])
  }
  const first = await authenticated(` ${await withSignatures(20)}`)
  expect(first.keys).toHaveLength(10)
})

test('to check the DKIM signatures of a mail, the service hashes at most 16 MB in all, but it always checks one signature', async () => {
  const keysOf = async (megabytes: number) => {
    const body = `${'x'.repeat(998)}\r\n`.repeat(megabytes * 1_000)
    const { keys, dkim } = await authenticated(await withSignatures(20, { body }))
    expect(dkim).toBe('pass')
    return keys.length
  }
  expect([await keysOf(1), await keysOf(5), await keysOf(20)]).toEqual([10, 3, 1])
  // A forwarder puts its signature above the author's signature, but only the author's signature proves who wrote the
  // mail.
  const body = `${'x'.repeat(998)}\r\n`.repeat(9_000)
  const forwardedMail = await authenticated(await withSignatures(2, { position: 2, body }))
  expect([forwardedMail.keys.length, forwardedMail.dkim, forwardedMail.isAligned]).toEqual([
    1,
    'pass',
    true,
  ])
})

test('the DMARC policy of the author’s domain is looked up only once for each mail', async () => {
  expect((await authenticated(write('ada@honest.test'))).policies).toEqual(['_dmarc.honest.test'])
})

/** Returns the message with an ARC seal that a forwarder adds. */
async function forwarded(message: string): Promise<string> {
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  // The two signatures of the ARC seal must state the same time. Without signTime, each of them would state the second
  // in which it was made.
  const signTime = new Date()
  const seal = { signingDomain: 'honest.test', selector: 's1', privateKey: pem, signTime }
  const authResults = 'honest.test; spf=pass smtp.mailfrom=x.test'
  const chain = await sealMessage(message, { ...seal, authResults, cv: 'none', i: 1 } as never)
  return chain + message
}

test('with only the header of a signed mail, the service can make all DNS queries that the whole mail needs', async () => {
  const whole = await signed(write('ada@honest.test', '', 'word '.repeat(1_000)))
  const header = whole.slice(0, whole.indexOf('\r\n\r\n') + 4)
  const asked: string[] = []
  const answers = await findAnswers(inboundOf(header), {
    ...CHECKS,
    async lookUp(name, type) {
      asked.push(`${name} ${type}`)
      return await answering(name, type)
    },
  })
  expect(new Set(asked).size).toBe(asked.length)
  expect(await authenticated(whole, answers)).toMatchObject({
    spf: 'pass',
    dkim: 'pass',
    dmarc: 'pass',
  })
})

test('the service asks for each DNS record of a mail once, although the SPF record names it twice', async () => {
  const asked: string[] = []
  const twice = 'v=spf1 include:honest.test include:HONEST.test -all'
  const mail = inboundOf(write('ada@twice.test'))
  const foreign = { ...mail, envelopeFrom: 'ada@twice.test', remoteIp: '192.0.2.77' }
  await findAnswers(foreign, {
    ...CHECKS,
    async lookUp(name, type) {
      asked.push(`${name.toLowerCase()} ${type}`)
      return name === 'twice.test' && type === 'TXT' ? [[twice]] : await answering(name, type)
    },
  })
  expect(asked.filter((one) => one === 'honest.test TXT')).toHaveLength(1)
})

test('the service asks for no DNS record of a mail whose header would take minutes to parse', async () => {
  const asked: string[] = []
  const header = write(
    'ada@honest.test',
    `DKIM-Signature: v=1; d=honest.test; s=s1; b=x\r\nX-A: b\r\n${' \r\n'.repeat(300_000)}`,
  )
  await findAnswers(inboundOf(header), {
    ...CHECKS,
    async lookUp(name, type) {
      asked.push(name)
      return await answering(name, type)
    },
  })
  expect(asked).toEqual([])
})

test('the service looks up the keys of a mail’s signatures in every spelling of their tags', async () => {
  const asked: string[] = []
  const header = write(
    'ada@honest.test',
    'DKIM-Signature: v=1; d=honest.test (the domain); s=old;\r\n s=s1 (a comment); b=x\r\nARC-Seal : i=1; s=arc; d=honest.test\r\n',
  )
  await findAnswers(inboundOf(header), {
    ...CHECKS,
    async lookUp(name, type) {
      asked.push(name)
      return await answering(name, type)
    },
  })
  expect(asked).toContain('s1._domainkey.honest.test')
  expect(asked).toContain('arc._domainkey.honest.test')
})

test('the service looks up no key for a signature that names no domain or no selector', async () => {
  const asked: string[] = []
  const header = write(
    'ada@honest.test',
    'DKIM-Signature: v=1; d=honest.test; b=x\r\nDKIM-Signature: v=1; s=s1; b=x\r\n',
  )
  await findAnswers(inboundOf(header), {
    ...CHECKS,
    async lookUp(name, type) {
      asked.push(name)
      return await answering(name, type)
    },
  })
  expect(asked.filter((name) => name.includes('_domainkey'))).toEqual([])
})

test('a DNS record that was not looked up for the header of a mail counts as unanswered at once, so the check of the mail does not wait', async () => {
  const answers = await findAnswers(inboundOf(write('ada@honest.test')), {
    ...CHECKS,
    lookUp: answering,
  })
  await expect(answers('other.test', 'TXT')).rejects.toMatchObject({ code: 'ETIMEOUT' })
  const unsigned = await authenticated(await signed(write('ada@honest.test')), answers)
  expect(unsigned).toMatchObject({ spf: 'pass', dkim: 'temperror' })
})

test('the ARC chain of a mail is checked, unless hashing the body would cost too much', async () => {
  expect((await authenticated(await forwarded(write('ada@honest.test')))).arc).toBe('pass')
  const among = await authenticated(await forwarded(await withSignatures(9, { position: 9 })))
  expect([among.arc, among.dkim]).toEqual(['pass', 'pass'])
  const changed = (await forwarded(write('ada@honest.test'))).replace('Hello', 'Jello')
  expect((await authenticated(changed)).arc).toBe('fail')
  const endless = write('ada@honest.test', '', '\r\n'.repeat(20_000))
  expect((await authenticated(await forwarded(endless))).arc).toBe('none')
})

describe('if a domain demands strict alignment, only exactly this domain can prove the author (RFC 7489 §3.1)', () => {
  /** Checks a mail from a@strict.test with the given envelope sender, DKIM signer and DMARC record. */
  async function checked(signer: string | null, sender: string, record: string) {
    const message = write('a@strict.test')
    const mail = inboundOf(signer === null ? message : await signed(message, signer))
    const zone = fakeLookUp({ ...ZONE, '_dmarc.strict.test TXT': [[record]] })
    const { authentication, isAligned } = await authenticateMail(
      { ...mail, envelopeFrom: sender },
      { ...CHECKS, authors: ['a@strict.test'], lookUp: zone },
    )
    return [authentication.dmarc, isAligned] as const
  }
  const PASS = ['pass', true] as const
  const FAIL = ['fail', false] as const

  test.each([
    ['v=DMARC1; p=reject; adkim=s; aspf=s', 'mail.strict.test', 'a@mail.strict.test', FAIL],
    ['v=DMARC1; p=reject; adkim=s; aspf=s', 'strict.test', 'a@victim.test', PASS],
    ['v=DMARC1; p=reject; adkim=s; aspf=s', null, 'a@strict.test', PASS],
    ['v=DMARC1; p=reject; adkim=s', 'mail.strict.test', 'a@victim.test', FAIL],
    ['v=DMARC1; p=reject; adkim=s', null, 'a@mail.strict.test', PASS],
    ['v=DMARC1; p=reject; aspf=s', null, 'a@mail.strict.test', FAIL],
    ['v=DMARC1; p=reject; aspf=s', 'mail.strict.test', 'a@victim.test', PASS],
    ['v=DMARC1; p=none; ADKIM = S ;aspf= s', 'mail.strict.test', 'a@mail.strict.test', FAIL],
    ['v=DMARC1; p=reject; adkim=r; aspf=r', 'mail.strict.test', 'a@mail.strict.test', PASS],
  ] as const)(
    'a mail is aligned or not with the DMARC record %p, the DKIM signer %p and the envelope sender %p',
    async (record, signer, sender, result) => {
      expect(await checked(signer, sender, record)).toEqual(result)
    },
  )
})

test('the DKIM verdict of a mail is `policy` if text was appended after the signed length of its body', async () => {
  const message = write('ada@honest.test')
  const whole = await signed(message, 'honest.test', { maxBodyLength: 'Hello there.\r\n'.length })
  expect(await authenticated(whole)).toMatchObject({ dkim: 'pass', dmarc: 'pass' })
  const longer = await authenticateMail(
    { ...inboundOf(`${whole}Pay to another account.\r\n`), envelopeFrom: 'list@victim.test' },
    { ...CHECKS, lookUp: answering },
  )
  expect(longer).toMatchObject({
    authentication: { spf: 'fail', dkim: 'policy', dmarc: 'fail' },
    isAligned: false,
  })
})

test('a DKIM signature by rsa-sha1 proves nothing (RFC 8301 §3.1)', async () => {
  const message = write('ada@honest.test')
  const mail = await signed(message, 'honest.test', { algorithm: 'rsa-sha1' })
  expect(
    await authenticateMail(
      { ...inboundOf(mail), envelopeFrom: 'list@victim.test' },
      { ...CHECKS, lookUp: answering },
    ),
  ).toMatchObject({ authentication: { dkim: 'policy', dmarc: 'fail' }, isAligned: false })
})

test.each([
  ['mail.strict.test', false],
  ['strict.test', true],
])(
  'while the DMARC record cannot be read, the signer %p is aligned: %p',
  async (signer, aligned) => {
    const { authentication, isAligned } = await authenticateMail(
      {
        ...inboundOf(await signed(write('a@strict.test'), signer)),
        envelopeFrom: 'a@victim.test',
      },
      {
        ...{ ...CHECKS, authors: ['a@strict.test'] },
        lookUp: fakeLookUp({ ...ZONE, '_dmarc.strict.test TXT': dnsError('ESERVFAIL') }),
      },
    )
    expect([authentication.dmarc, isAligned]).toEqual(['temperror', aligned])
  },
)

describe('a forger cannot prove a false author of a mail by exploiting how mail libraries read the mail', () => {
  const VICTIM = 'boss@victim.test'
  /**
   * Holds the DNS records of victim.test. The SPF record allows no host, so that only a DKIM signature can prove that a
   * mail is from victim.test.
   */
  const zone: Zone = {
    'victim.test TXT': [['v=spf1 -all']],
    '_dmarc.victim.test TXT': [['v=DMARC1; p=reject']],
    's1._domainkey.victim.test TXT': [[dkimRecord]],
  }
  const forger = { envelopeFrom: 'a@forger.test', helo: 'forger.test' }

  async function judge(message: string, more: { zone?: Zone; from?: Partial<InboundMail> } = {}) {
    const { from } = await parseMail(Buffer.from(message, 'latin1'), 'mail.test')
    const { authentication, isAligned } = await authenticateMail(
      { ...inboundOf(message), ...forger, ...more.from },
      { ...CHECKS, authors: from, lookUp: fakeLookUp({ ...zone, ...more.zone }) },
    )
    return { from, ...authentication, isAligned }
  }

  test('a DKIM signature by the author’s domain proves the author', async () => {
    const message = await signed(write(VICTIM), 'victim.test')
    expect(await judge(message)).toMatchObject({ dkim: 'pass', dmarc: 'pass', isAligned: true })
  })

  test.each([
    'victim.test/.forger.test',
    'victim.test:80.forger.test',
    'victim.test?.forger.test',
    'victim.test#.forger.test',
    'x@victim.test/.forger.test',
    'http://victim.test/.forger.test',
  ])(
    'the signer %p, whose key stands in the zone of the forger, proves nothing',
    async (signer) => {
      const message = await signed(write(VICTIM), signer)
      const key = { [`s1._domainkey.${signer} TXT`]: [[dkimRecord]] }
      const { dkim, dmarc, isAligned } = await judge(message, { zone: key })
      expect(dkim).not.toBe('pass')
      expect([dmarc, isAligned]).toEqual(['fail', false])
    },
  )

  test('text before a line of CR CR LF, which precedes the signed header, does not count as signed', async () => {
    const genuine = await signed(write('news@victim.test'), 'victim.test')
    const forged = `From: ${VICTIM}\r\nSubject: pay\r\n\r\r\nFORGED\r\n${genuine}`
    for (const message of [forged, `X: y\r\n\0\r\n${forged}`]) {
      expect(await judge(message)).toMatchObject({ dkim: 'permerror', isAligned: false })
    }
  })

  test.each([
    [
      'an added From field of the same domain',
      (genuine: string) => `From: ${VICTIM}\r\n${genuine}`,
    ],
    [
      'an added From field after a byte order mark',
      (genuine: string) => `\xef\xbb\xbfFrom: ${VICTIM}\r\n${genuine}`,
    ],
    [
      'an added From field, while a vertical tab hides the signed field',
      (genuine: string) =>
        `\xef\xbb\xbfFrom: ${VICTIM}\r\n${genuine.replace('\nFrom:', '\nFrom\x0b:')}`,
    ],
    [
      'an added Subject field after a byte order mark',
      (genuine: string) => `\xef\xbb\xbfSubject: pay\r\n${genuine}`,
    ],
  ])('the author is not proven by a genuine signature after %s', async (_, forge) => {
    const genuine = await signed(write('news@victim.test'), 'victim.test')
    const { dmarc, isAligned } = await judge(forge(genuine))
    expect([dmarc, isAligned]).toEqual(['permerror', false])
  })

  test.each(['Subject: pay', 'To: other@victim.test', 'Message-ID: <other@victim.test>'])(
    'the added field %p, which the signature does not cover, makes the DKIM verdict policy',
    async (field) => {
      const genuine = await signed(write('news@victim.test'), 'victim.test')
      expect(await judge(`${field}\r\n${genuine}`)).toMatchObject({
        ...{ dkim: 'policy', dmarc: 'fail', isAligned: false },
      })
    },
  )

  test('if a mail has two header fields with the same name and the signature covers both, both fields count as signed', async () => {
    const message = await signed(`Subject: one\r\n${write(VICTIM)}`, 'victim.test')
    expect(await judge(message)).toMatchObject({ dkim: 'pass', dmarc: 'pass' })
  })

  test('a signature that leaves out the From field proves nothing', async () => {
    const message = await signed(write(VICTIM), 'victim.test', { headerList: 'subject' })
    expect(await judge(message)).toMatchObject({ dkim: 'permerror', dmarc: 'fail' })
  })

  test.each([
    ['s=tlsrpt', 'permerror'],
    ['s=other:Email', 'pass'],
    ['s=*', 'pass'],
    ['h=sha1', 'permerror'],
    ['h=sha1 : sha256', 'pass'],
    ['t=s', 'pass'],
  ])('a key with the tag %p gives the DKIM verdict %p', async (tag, dkim) => {
    const record = dkimRecord.replace('v=DKIM1;', `v=DKIM1; ${tag};`)
    const message = await signed(write(VICTIM), 'victim.test')
    const key = { 's1._domainkey.victim.test TXT': [[record]] }
    expect((await judge(message, { zone: key })).dkim).toBe(dkim as AuthenticationWord)
  })
})

test.each([
  ['include:broken.test', 'broken.test TXT'],
  ['redirect=broken.test', 'broken.test TXT'],
  ['a:broken.test', 'broken.test A'],
  ['mx:broken.test', 'broken.test MX'],
])('the SPF verdict is temperror if the name server of %p fails', async (term, name) => {
  for (const code of ['ESERVFAIL', 'ENOSERVER', 'ECONNREFUSED', 'ETIMEOUT']) {
    const zone: Zone = {
      'honest.test TXT': [[`v=spf1 ${term}${term.startsWith('redirect') ? '' : ' -all'}`]],
      [name]: dnsError(code),
    }
    const { spf } = await authenticated(write('ada@honest.test'), fakeLookUp(zone))
    expect([code, spf]).toEqual([code, 'temperror'])
  }
})
