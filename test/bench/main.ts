/**
 * Compares the service with the minimum cost of the same work. The service and the baseline run in rotation in one run:
 * `bun run bench [part …] [rounds]`. Only the ratios can be compared, because the absolute figures depend on the
 * machine and its load.
 */
import { cpus, loadavg, totalmem } from 'node:os'
import { apiRows } from './api.ts'
import { growthRows } from './inboxes/growth.ts'
import { inboxRows } from './inboxes/inbox.ts'
import { millionRows } from './inboxes/millions.ts'
import { oldRowRows } from './inboxes/oldRows.ts'
import { mailRows } from './mail/mail.ts'
import { mailPeerRows } from './mail/mailPeers.ts'
import { type Row, rounds, setRounds } from './measure.ts'
import { profileRows } from './profile.ts'
import { scaleRows } from './scale.ts'
import { createSetting, type Setting } from './setting.ts'
import { startRows } from './start.ts'
import { paymentRows } from './till/payments.ts'
import { purseRows } from './till/purse.ts'
import { vaultRows } from './vault.ts'
import { walRows } from './wal.ts'
import { webhookRows } from './webhooks.ts'

const PARTS: Record<string, (setting: Setting) => Promise<Row[]> | AsyncIterable<Row>> = {
  api: apiRows,
  mail: mailRows,
  postfix: mailPeerRows,
  inbox: inboxRows,
  growth: growthRows,
  millions: millionRows,
  old: oldRowRows,
  payments: paymentRows,
  profile: profileRows,
  purse: purseRows,
  scale: scaleRows,
  start: startRows,
  vault: vaultRows,
  wal: walRows,
  webhooks: webhookRows,
}

const given = process.argv.slice(2)
const wanted = given.filter((word) => !/^\d+$/.test(word))
const count = given.find((word) => /^\d+$/.test(word))
if (count !== undefined) setRounds(Math.max(1, Number(count)))
const print = (line: string) => process.stdout.write(`${line}\n`)

const postgres = await (async () => {
  await using setting = await createSetting()
  const { rows } = await setting.pool.query('show server_version')
  return rows[0].server_version as string
})()
print(
  `${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, load ${loadavg()[0]?.toFixed(2)}`,
)
print(`Bun ${Bun.version}, PostgreSQL ${postgres}, ${new Date().toISOString().slice(0, 10)}`)
print(`Medians of ${rounds()} rounds, ours and the baseline by turns.\n`)
print('| what | ours | baseline | ours / baseline | baseline is |')
print('|---|---|---|---|---|')
for (const [name, part] of Object.entries(PARTS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  await using setting = await createSetting()
  await setting.pool.query(
    'create table bench_intents (id bigint generated always as identity primary key, body text not null)',
  )
  for await (const row of await part(setting)) {
    const figure = (value: number) =>
      `${value >= 100 ? Math.round(value) : value.toPrecision(3)} ${row.unit}`
    print(
      `| ${row.name} | ${figure(row.ours)} | ${figure(row.baseline)} | ${row.ratio.toFixed(2)} | ${row.detail} |`,
    )
  }
}
