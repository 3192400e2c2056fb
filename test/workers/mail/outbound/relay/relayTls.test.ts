/** Tests how the service sends its credentials to a smarthost (a mail relay) over real SMTP. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import { SMTPServer } from 'smtp-server'
import { ConfigError, parseConfig } from '../../../../../shared/config/config.ts'
import type { RecipientOutcome } from '../../../../../sql/mail/outbound/mailAttempts.ts'
import { createDns } from '../../../../../workers/mail/dns.ts'
import { createTransport } from '../../../../../workers/mail/outbound/createTransport.ts'

const TLS = join(import.meta.dir, '../../../../fixtures/tls')
const FIRST = join(TLS, 'first.crt')

type Offer = { startTls: boolean; implicit?: boolean }

/** Starts a mail relay that requests credentials and has a self-signed certificate. */
async function startRelay({ startTls, implicit = false }: Offer) {
  const logins: { pass: string; secure: boolean }[] = []
  const mails: string[] = []
  const server = new SMTPServer({
    secure: implicit,
    cert: readFileSync(FIRST),
    key: readFileSync(join(TLS, 'first.key')),
    disabledCommands: startTls ? [] : ['STARTTLS'],
    // The mail relay in this test accepts credentials even in plain text, so only the service itself prevents that the
    // password is sent in plain text.
    allowInsecureAuth: true,
    disableReverseLookup: true,
    logger: false,
    onAuth(auth, session, callback) {
      logins.push({ pass: auth.password ?? '', secure: session.secure })
      callback(null, { user: 'purser' })
    },
    onData(stream, _session, callback) {
      stream.on('data', (chunk) => mails.push(String(chunk))).on('end', () => callback())
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as AddressInfo
  return {
    url: `${implicit ? 'smtps' : 'smtp'}://purser:hunter2@127.0.0.1:${port}`,
    plainUrl: `smtp://127.0.0.1:${port}`,
    logins,
    mails,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** Sends two mails with the given settings. @returns the outcomes of the mails and the log. */
async function sendUnder(env: Record<string, string>) {
  const lines: { msg: string; reason: string }[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const direct = { dns: createDns(), ownName: 'own.test', allowPrivate: true }
  const transport = createTransport(parseConfig(env), direct, log)
  const outcomes: RecipientOutcome[] = []
  try {
    await transport.check()
    for (const to of ['ada@example.com', 'bob@example.com']) {
      const mail = {
        envelopes: [{ from: 'a@own.test', to }],
        raw: Buffer.from('Subject: x\r\n\r\nx\r\n'),
      }
      await transport.send(mail, async (reported) => void outcomes.push(...reported))
    }
  } finally {
    transport.close()
  }
  return { outcomes, lines }
}

test('mail is deferred if the relay would otherwise get the password in plain text, and the log states the reason once', async () => {
  await using relay = await startRelay({ startTls: false })
  const { outcomes, lines } = await sendUnder({ SMTP_RELAY_URL: relay.url })
  expect(outcomes.map(({ state }) => state)).toEqual(['deferred', 'deferred'])
  expect(outcomes[0]!.error).toContain('the relay offers no trusted TLS')
  expect([relay.logins, relay.mails]).toEqual([[], []])
  expect(lines.map(({ msg }) => msg)).toEqual(['a trusted connection to the smarthost is away'])
  expect(lines[0]!.reason).toContain('SMTP_RELAY_CA_FILE')
  expect(JSON.stringify(lines)).not.toContain('hunter2')
})

test('a relay with a self-signed certificate gets no password, unless the settings name the certificate file', async () => {
  for (const offer of [{ startTls: true }, { startTls: false, implicit: true }]) {
    await using relay = await startRelay(offer)
    const strange = await sendUnder({ SMTP_RELAY_URL: relay.url })
    expect([offer, strange.outcomes.map(({ state }) => state)]).toEqual([
      offer,
      ['deferred', 'deferred'],
    ])
    expect(strange.lines).toHaveLength(1)
    const other = { SMTP_RELAY_URL: relay.url, SMTP_RELAY_CA_FILE: join(TLS, 'second.crt') }
    expect((await sendUnder(other)).outcomes[0]!.state).toBe('deferred')
    expect([relay.logins, relay.mails]).toEqual([[], []])
    // The service connects to the mail relay by IP address, so the pinned certificate needs no host name.
    const named = await sendUnder({ SMTP_RELAY_URL: relay.url, SMTP_RELAY_CA_FILE: FIRST })
    expect([offer, named.outcomes.map(({ state }) => state)]).toEqual([offer, ['sent', 'sent']])
    expect(named.lines).toEqual([])
    expect(new Set(relay.logins.map((login) => JSON.stringify(login)))).toEqual(
      new Set([JSON.stringify({ pass: 'hunter2', secure: true })]),
    )
  }
})

test('a mail relay on this machine gets the password without TLS if SMTP_RELAY_TLS is off', async () => {
  await using relay = await startRelay({ startTls: true })
  const { outcomes } = await sendUnder({ SMTP_RELAY_URL: relay.url, SMTP_RELAY_TLS: 'off' })
  expect(outcomes.map(({ state }) => state)).toEqual(['sent', 'sent'])
  expect(relay.logins[0]).toEqual({ pass: 'hunter2', secure: false })
  for (const mode of ['off', 'opportunistic']) {
    const env = { SMTP_RELAY_URL: 'smtp://u:hunter2@relay.test:587', SMTP_RELAY_TLS: mode }
    expect(() => parseConfig(env)).toThrow(ConfigError)
    expect(() => parseConfig(env)).toThrow(/^SMTP_RELAY_TLS: must be required when/)
  }
})

test('if a relay without a login offers STARTTLS, its certificate must be trusted, unless SMTP_RELAY_TLS is off', async () => {
  await using relay = await startRelay({ startTls: true })
  const strange = await sendUnder({ SMTP_RELAY_URL: relay.plainUrl })
  expect(strange.outcomes[0]!.error).toContain('the relay offers no trusted TLS')
  // The mail relay in this test requires credentials, so the relay refuses the mail with the reply 530.
  for (const env of [{ SMTP_RELAY_TLS: 'off' }, { SMTP_RELAY_CA_FILE: FIRST }]) {
    const { outcomes } = await sendUnder({ SMTP_RELAY_URL: relay.plainUrl, ...env } as never)
    expect(outcomes[0]!.error).toStartWith('530 ')
  }
})

test('the service does not start if the certificate file for the mail relay is unusable', () => {
  const direct = { dns: createDns(), ownName: 'own.test', allowPrivate: true }
  for (const file of [join(TLS, 'none.crt'), join(TLS, 'first.key')]) {
    const config = parseConfig({ SMTP_RELAY_URL: 'smtp://relay.test', SMTP_RELAY_CA_FILE: file })
    expect(() => createTransport(config, direct, pino({ level: 'silent' }))).toThrow(
      /^SMTP_RELAY_CA_FILE: must /,
    )
  }
})
