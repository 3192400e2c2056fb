import { printed, startProcess } from '../support/process.ts'
import { waitFor } from '../support/waitFor.ts'
import { compare, type Row } from './measure.ts'
import { hasPostfix, type Postfix, smtpSource, startPostfix, startSmtpSink } from './postfix.ts'
import type { Setting } from './setting.ts'

const LOADS = [
  { name: '4 KB, 1 connection', sessions: 1, messages: 150, bytes: 4 * 1024 },
  { name: '4 KB, 20 connections', sessions: 20, messages: 1_000, bytes: 4 * 1024 },
  { name: '1 MB, 1 connection', sessions: 1, messages: 20, bytes: 1024 * 1024 },
  { name: '1 MB, 20 connections', sessions: 20, messages: 60, bytes: 1024 * 1024 },
]

/** Mail in beside Postfix: accepted, and all the way to where it is read. */
export async function mailPeerRows(setting: Setting): Promise<Row[]> {
  if (!hasPostfix()) {
    process.stderr.write("Left out: Debian's package postfix is not there, or this is not root.\n")
    return []
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
  const stored = async () => {
    const { rows } = await setting.pool.query(
      `select count(*)::int as n from inbound_mails where state = 'stored'`,
    )
    return rows[0].n as number
  }
  const rows: Row[] = []
  for (const load of LOADS) {
    const accepted = (to: number) => rate(load.messages, () => smtpSource(to, load))
    /** What was accepted must be gone before the other one's turn. */
    const ours = async (measure: 'accepted' | 'stored') => {
      const before = await stored()
      const startMs = performance.now()
      const acceptedRate = await accepted(port)
      await waitFor('the inbox', async () => (await stored()) === before + load.messages, 120_000)
      return measure === 'accepted' ? acceptedRate : perSecondSince(startMs, load.messages)
    }
    const theirs = async (measure: 'accepted' | 'delivered') => {
      const before = postfix.delivered()
      const startMs = performance.now()
      const acceptedRate = await accepted(postfix.port)
      await delivered(postfix, before + load.messages)
      return measure === 'accepted' ? acceptedRate : perSecondSince(startMs, load.messages)
    }
    const row = { unit: 'messages/s' }
    rows.push(
      await compare({
        ...row,
        name: `accepted, ${load.name}`,
        detail: 'smtp-source into smtp-sink, which forgets',
        ours: () => ours('accepted'),
        baseline: () => accepted(sink.port),
      }),
      await compare({
        ...row,
        name: `accepted, ${load.name}`,
        detail: 'Postfix, into its queue',
        ours: () => ours('accepted'),
        baseline: () => theirs('accepted'),
      }),
      await compare({
        ...row,
        name: `in the inbox, ${load.name}`,
        detail: 'Postfix, delivered to a maildir: neither parsed nor threaded nor searchable',
        ours: () => ours('stored'),
        baseline: () => theirs('delivered'),
      }),
    )
  }
  return rows
}

const rate = async (messages: number, work: () => Promise<number>): Promise<number> =>
  messages / (await work())

const perSecondSince = (startMs: number, messages: number): number =>
  (messages * 1_000) / (performance.now() - startMs)

const delivered = (postfix: Postfix, count: number) =>
  waitFor('the maildir', () => postfix.delivered() >= count, 120_000)
