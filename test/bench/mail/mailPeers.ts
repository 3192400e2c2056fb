import type { Queryable } from '../../../sql/db.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import { waitFor } from '../../support/waitFor.ts'
import { byTurns, type Row, rowOf } from '../measure.ts'
import type { Setting } from '../setting.ts'
import { hasPostfix, smtpSource, startPostfix, startSmtpSink } from './postfix.ts'

const LOADS = [
  { name: '4 KB, 1 connection', sessions: 1, messages: 150, bytes: 4 * 1024 },
  { name: '4 KB, 20 connections', sessions: 20, messages: 1_000, bytes: 4 * 1024 },
  { name: '1 MB, 1 connection', sessions: 1, messages: 20, bytes: 1024 * 1024 },
  { name: '1 MB, 20 connections', sessions: 20, messages: 60, bytes: 1024 * 1024 },
]

/**
 * Holds two rates of one measurement, in messages per second: until the server has accepted all messages, and until all
 * messages are in the inbox.
 */
type Turn = { accepted: number; stored: number }

/** Compares this service with Postfix in the acceptance of mail and in the delivery to the inbox. */
export async function* mailPeerRows(setting: Setting): AsyncGenerator<Row> {
  if (!hasPostfix()) {
    process.stderr.write("Left out: Debian's package postfix is not there, or this is not root.\n")
    return
  }
  using postfix = await startPostfix()
  await using sink = await startSmtpSink()
  await using _workers = startProcess('workers/main.ts', setting.env, ['--pool', 'mail'])
  await using smtp = startProcess('api/smtp/main.ts', {
    ...setting.env,
    SMTP_PORT: '0',
    LOG_LEVEL: 'info',
  })
  const port = Number((await printed(smtp, /"port":(\d+)/))[1])
  for (const load of LOADS) {
    const turns = [
      () => turn(load, port, () => stored(setting.pool)),
      () => turn(load, postfix.port, async () => postfix.delivered()),
      () => turn(load, sink.port),
    ]
    const [ours, theirs, floor] = await byTurns(turns)
    const row = (label: string, key: keyof Turn, baseline: Turn[], detail: string) =>
      rowOf(
        { name: `${label}, ${load.name}`, unit: 'messages/s', detail },
        ours!.map((turn) => turn[key]),
        baseline.map((turn) => turn[key]),
      )
    yield row('accepted', 'accepted', floor!, 'smtp-source into smtp-sink, which forgets')
    yield row('accepted', 'accepted', theirs!, 'Postfix, into its queue')
    yield row(
      'in the inbox',
      'stored',
      theirs!,
      'Postfix, delivered to a maildir: neither parsed nor threaded nor searchable',
    )
  }
}

/**
 * Delivers a load of mail to one server, and waits until all mail is stored. The wait is needed so that the remaining
 * work of one server does not slow down the measurement of the next.
 */
async function turn(
  load: (typeof LOADS)[number],
  port: number,
  count?: () => Promise<number>,
): Promise<Turn> {
  const before = (await count?.()) ?? 0
  const startMs = performance.now()
  const accepted = load.messages / (await smtpSource(port, load))
  if (count !== undefined) {
    await waitFor('the inbox', async () => (await count()) >= before + load.messages, 120_000)
  }
  const stored = (load.messages * 1_000) / (performance.now() - startMs)
  return { accepted, stored }
}

async function stored(db: Queryable): Promise<number> {
  const { rows } = await db.query(
    `select count(*)::int as n from inbound_mails where state = 'stored'`,
  )
  return rows[0].n
}
