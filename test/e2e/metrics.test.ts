/** What `/metrics` says of all parts, and what Prometheus makes of it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateKey } from '../../shared/apiKey.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { createProject } from '../../sql/account/projects.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { freePort, printed, type ServiceProcess, startProcess } from '../support/process.ts'
import { deliverRaw, talkSmtp } from '../support/smtpTalk.ts'
import { waitFor } from '../support/waitFor.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'purser-metrics-'))
const processes: ServiceProcess[] = []
let database: TestDatabase
let url: string
let smtpPort: number
beforeAll(async () => {
  database = await createTestDatabase()
  const [port, smtp] = [await freePort(), await freePort()]
  url = `http://127.0.0.1:${port}`
  smtpPort = smtp
  const env = {
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    MAIL_DOMAIN: 'mail.test',
    PORT: String(port),
    SMTP_PORT: String(smtp),
    DNS_SERVERS: '127.0.0.1:1',
  }
  processes.push(startProcess('api/main.ts', env))
  processes.push(startProcess('api/smtp/main.ts', env))
  processes.push(startProcess('workers/main.ts', env, ['--pool', 'inbound,outbound,webhooks']))
  for (const process of processes) await printed(process, /"msg":"ready"/)
})
afterAll(async () => {
  await Promise.all(processes.map((process) => process[Symbol.asyncDispose]()))
  await database[Symbol.asyncDispose]()
  rmSync(dataDir, { recursive: true, force: true })
})

/** The samples: name with labels, and value. The label `process` is left out. */
async function samples(): Promise<Map<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text.split('\n').filter((line) => /^\w/.test(line))
  return new Map(
    lines.map((line) => {
      const [, name = '', value] = /^(.+) (\S+)$/.exec(line.replace(/,?process="\w+"/, ''))!
      return [name, Number(value)]
    }),
  )
}

test('the listener and the workers report their figures, each as a process of its own', async () => {
  await createProject(database.pool, {
    name: 'Ada',
    purpose: 'SELLER',
    emailAddress: 'ada@mail.test',
    scopes: PROJECT_SCOPES,
    key: generateKey('project'),
  })
  await using talk = await talkSmtp(smtpPort)
  await talk.say('MAIL FROM:<a@x.test>')
  expect(await talk.say('RCPT TO:<nobody@mail.test>')).toStartWith('550')
  await waitFor('the mail to be taken', async () =>
    (await deliverRaw(smtpPort, 'ada@mail.test', 'Subject: x\n\nx\n')).startsWith('250'),
  )
  const found = await waitFor('the figures', async () => {
    const now = await samples()
    const workers = 'part="workers inbound outbound webhooks"'
    const ended = now.get(`purser_jobs_ended_total{task="parse_inbound",outcome="done",${workers}}`)
    const accepted = now.get('purser_smtp_messages_accepted_total{part="smtp"}')
    return ended === 1 && accepted === 1 && now
  })
  const refusal = '{reply="550 5.1.1 No such inbox",part="smtp"}'
  expect(found.get(`purser_smtp_refusals_total${refusal}`)).toBeGreaterThan(0)
  expect(found.get('purser_smtp_connections{part="smtp"}')).toBeGreaterThan(0)
  expect(found.get('purser_spool_mails{part="smtp"}')).toBe(0)
  expect(found.get('purser_spool_has_room{part="smtp"}')).toBe(1)
  expect(found.get('purser_pools{pool="inbound"}')).toBe(1)
  expect(found.get('purser_pools{pool="payments"}')).toBe(0)
  expect(found.get('purser_database_connections{state="waiting"}')).toBe(0)
})
