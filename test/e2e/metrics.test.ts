/** Tests the metrics page `/metrics` of a running service, and the alarms and the dashboard that use the metrics. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dashboard, PANELS } from '../../deploy/grafana/dashboard.ts'
import { generateKey } from '../../shared/apiKey.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { createProject } from '../../sql/account/projects/projects.ts'
import { type Devnet, startDevnet } from '../../workers/devnet/devnet.ts'
import { createTestDatabase, type TestDatabase } from '../support/database/database.ts'
import { deliverRaw, talkSmtp } from '../support/mail/smtpTalk.ts'
import {
  freePort,
  printed,
  type ServiceProcess,
  startCommand,
  startProcess,
} from '../support/process/process.ts'
import { waitFor } from '../support/waitFor.ts'
import '../support/whole.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'purser-metrics-'))
const processes: ServiceProcess[] = []
let database: TestDatabase
let devnet: Devnet
let url: string
let smtpPort: number
beforeAll(async () => {
  database = await createTestDatabase()
  devnet = await startDevnet({
    port: 0,
    stateFile: join(dataDir, 'devnet'),
    log: { info() {}, warn() {} },
  })
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
    RPC_URL: devnet.rpcUrl,
  }
  processes.push(startProcess('api/main.ts', env))
  processes.push(startProcess('api/smtp/main.ts', env))
  processes.push(startProcess('workers/main.ts', env, ['--pool', 'mail']))
  processes.push(startProcess('workers/main.ts', env, ['--pool', 'payments']))
  for (const process of processes) await printed(process, /"msg":"ready"/)
})
afterAll(async () => {
  await Promise.all(processes.map((process) => process[Symbol.asyncDispose]()))
  await database[Symbol.asyncDispose]()
  await devnet.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

/**
 * Reads the metric samples of /metrics. The result maps each metric name with its labels to the value. The label
 * `process` is left out.
 */
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

test('the SMTP listener and the workers report the metrics of their own processes', async () => {
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
    const workers = 'part="workers inbound outbound"'
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
  expect(found.get('purser_pools{pool="webhooks"}')).toBe(0)
  expect(found.get('purser_database_connections{state="waiting"}')).toBe(0)
})

const ROOT = join(import.meta.dir, '../..')
const RULES = join(ROOT, 'deploy/prometheus')
const rules = readFileSync(join(RULES, 'rules.yml'), 'utf8')
const namesIn = (text: string) => new Set(text.match(/\bpurser_\w+/g))

/** Returns the names of all metrics, and the names of the series of histograms. */
async function knownNames(): Promise<Set<string>> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const declared = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)]
  return new Set(
    declared.flatMap(([, name, type]) =>
      type === 'histogram' ? [name!, `${name}_bucket`, `${name}_count`, `${name}_sum`] : [name!],
    ),
  )
}

test('the dashboard and the alarms query only metrics that exist', async () => {
  const known = await waitFor('all reports', async () => {
    const names = await knownNames()
    return (
      names.has('purser_smtp_connections') && names.has('purser_gas_wallet_balance_ether') && names
    )
  })
  const stored = JSON.parse(readFileSync(join(ROOT, 'deploy/grafana/purser.json'), 'utf8'))
  expect(stored).toEqual(dashboard())
  const asked = [...namesIn(rules), ...namesIn(JSON.stringify(stored.panels))]
  expect(asked.length).toBeGreaterThan(20)
  expect(asked.filter((name) => !known.has(name))).toEqual([])
})

test('each alarm has a section in docs/operating.md, and the runbook link of the alarm leads to this section', () => {
  const guide = readFileSync(join(ROOT, 'docs/operating.md'), 'utf8')
  const alarms = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name!)
  const runbooks = [...rules.matchAll(/runbook: docs\/operating\.md#(\w+)/g)].map(([, to]) => to)
  const headings = [...guide.matchAll(/^### (Purser\w+)$/gm)].map(([, name]) => name!)
  expect(runbooks).toEqual(alarms.map((name) => name.toLowerCase()))
  expect(headings.toSorted()).toEqual(alarms.toSorted())
})

const hasPrometheus = Bun.which('prometheus') !== null && Bun.which('promtool') !== null
if (!hasPrometheus) {
  process.stderr.write('SKIPPED: the tests of alarms and panels, because there is no prometheus\n')
}

test.skipIf(!hasPrometheus)(
  'the program promtool accepts the alarm rules, and the tests of the alarms pass',
  async () => {
    for (const args of [
      ['check', 'rules', 'rules.yml'],
      ['test', 'rules', 'rules.test.yml'],
    ]) {
      const run = Bun.spawnSync(['promtool', ...args], {
        cwd: RULES,
        stdout: 'pipe',
        stderr: 'pipe',
      })
      expect([args, run.exitCode, run.stderr.toString()]).toEqual([args, 0, ''])
    }
  },
)

test.skipIf(!hasPrometheus)(
  'Prometheus scrapes the service, and every panel of the dashboard has data',
  async () => {
    const port = await freePort()
    const configFile = join(dataDir, 'prometheus.yml')
    writeFileSync(
      configFile,
      `global: { scrape_interval: 1s }
scrape_configs:
  - { job_name: purser, static_configs: [{ targets: ["${new URL(url).host}"] }] }
`,
    )
    await using prometheus = startCommand(
      [
        'prometheus',
        `--config.file=${configFile}`,
        `--storage.tsdb.path=${join(dataDir, 'prometheus')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      {},
    )
    await printed(prometheus, /Server is ready/)
    const answer = async (query: string) => {
      const asked = encodeURIComponent(query.replaceAll('$__rate_interval', '30s'))
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${asked}`)
      return (await response.json()) as { status: string; data?: { result: unknown[] } }
    }
    await waitFor('two scrapes of every part', async () => {
      const { data } = await answer('count_over_time(purser_jobs_ended_total[30s]) > 1')
      return (data?.result.length ?? 0) > 0
    })
    // Some metrics have no data in this test, because the service spends no gas, signs no transaction and has no object
    // store.
    const silent = /open_transactions|project_(?:purse_)?gas|blob_request/
    for (const { title, queries } of PANELS) {
      for (const [query] of queries) {
        const { status, data } = await answer(query)
        expect([title, query, status]).toEqual([title, query, 'success'])
        if (!silent.test(query)) expect([title, data!.result.length > 0]).toEqual([title, true])
      }
    }
  },
)
