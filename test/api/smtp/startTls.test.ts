import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import pino from 'pino'
import { type SmtpServer, startSmtp } from '../../../api/smtp/server.ts'
import { parseConfig } from '../../../shared/config/config.ts'
import { silentLog } from '../../support/logs.ts'
import { talkSmtp } from '../../support/mail/smtpTalk.ts'
import { startTestService, type TestService, waitForMessages } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

const FIXTURES = join(import.meta.dir, '../../fixtures/tls')
const directory = mkdtempSync(join(tmpdir(), 'purser-tls-'))
const [certFile, keyFile] = [join(directory, 'tls.crt'), join(directory, 'tls.key')]

const install = (name: string) => {
  copyFileSync(join(FIXTURES, `${name}.key`), keyFile)
  copyFileSync(join(FIXTURES, `${name}.crt`), certFile)
}

const log: string[] = []
let service: TestService
let smtp: SmtpServer
beforeAll(async () => {
  service = await startTestService({ smtp: false })
  install('first')
  const tls = { certFile, keyFile }
  const config = { ...service.config, smtp: { ...service.config.smtp, tls } }
  const logger = pino({ level: 'warn' }, { write: (line: string) => void log.push(line) })
  smtp = await startSmtp(config, service.database.url, logger, { certificateCheckMs: 50 })
})
afterAll(async () => {
  await smtp.stop()
  await service[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true, force: true })
})

/** Sends a mail over STARTTLS, and accepts only the given certificate. */
async function send(to: string, subject: string, trusted: string): Promise<void> {
  const transport = nodemailer.createTransport({
    host: '127.0.0.1',
    port: smtp.port,
    requireTLS: true,
    tls: { ca: readFileSync(join(FIXTURES, `${trusted}.crt`)), servername: `${trusted}.mail.test` },
  })
  try {
    await transport.sendMail({ from: 'ada@example.com', to, subject, text: 'Sealed.' })
  } finally {
    transport.close()
  }
}

test('mail arrives both with and without STARTTLS', async () => {
  const agent = await service.newAgent()
  await send(agent.address, 'Sealed', 'first')
  expect((await waitForMessages(agent, 1))[0].subject).toBe('Sealed')
  await using talk = await talkSmtp(smtp.port)
  await talk.say('MAIL FROM:<a@example.com>')
  expect(await talk.say(`RCPT TO:<${agent.address}>`)).toStartWith('250')
})

test('commands sent in plain text before STARTTLS have no effect in the TLS session', async () => {
  await using talk = await talkSmtp(smtp.port)
  // In this test, one packet contains both STARTTLS and an injected MAIL FROM (CVE-2011-0411). The server must not run
  // the injected command in the TLS session.
  expect(await talk.send('STARTTLS\r\nMAIL FROM:<evil@example.com>\r\nRSET\r\n')).toStartWith('220')
  talk.write('not a TLS hello\r\n')
  await talk.closed
})

test('the SMTP listener uses a renewed TLS certificate without a restart, and ignores a broken one', async () => {
  const agent = await service.newAgent()
  install('second')
  await waitFor('the new certificate', () =>
    send(agent.address, 'Renewed', 'second').then(
      () => true,
      () => false,
    ),
  )
  const refused = log.length
  writeFileSync(certFile, 'nonsense')
  await waitFor('the refusal', () =>
    log.slice(refused).some((line) => line.includes('the certificate could not be renewed')),
  )
  await send(agent.address, 'Still there', 'second')
  await waitForMessages(agent, 2)
})

test('an unreadable TLS certificate or a wrong TLS key stops the start, and the output names the setting in one line', async () => {
  expect(() => parseConfig({ SMTP_TLS_CERT_FILE: certFile })).toThrow(/^SMTP_TLS_KEY_FILE: /)
  const [first, second] = [join(FIXTURES, 'first.crt'), join(FIXTURES, 'second.key')]
  for (const [tls, line] of [
    [
      { certFile: join(directory, 'none'), keyFile },
      'SMTP_TLS_CERT_FILE: must name a file that can be read (ENOENT)',
    ],
    [
      { certFile: second, keyFile: second },
      'SMTP_TLS_CERT_FILE: must hold a certificate in PEM form',
    ],
    [{ certFile: first, keyFile: first }, 'SMTP_TLS_KEY_FILE: must hold a private key in PEM form'],
    [
      { certFile: first, keyFile: second },
      'SMTP_TLS_KEY_FILE: must hold the key of the certificate',
    ],
  ] as const) {
    const config = { ...service.config, smtp: { ...service.config.smtp, tls } }
    const error = await startSmtp(config, service.database.url, silentLog).catch((thrown) => thrown)
    expect(error.message).toBe(line)
  }
})
