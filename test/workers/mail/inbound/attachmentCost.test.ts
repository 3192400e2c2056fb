/** Tests how much the service writes to the database while it reads the many small attachments of one mail. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { queueReading } from '../../../../sql/mail/messages/attachmentTexts.ts'
import { deliverRaw } from '../../../support/mail/smtpTalk.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
// Every process of the PostgreSQL cluster writes to the WAL that this file measures, so no other test may run.
import '../../../support/process/alone.ts'
import '../../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ pools: ['inbound'] })
})
afterAll(() => service[Symbol.asyncDispose]())

/**
 * Sets the maximum WAL for reading attachments. It is a multiple of the mail’s size, plus additional bytes for the rows
 * and the event of each attachment.
 */
const WAL_SHARE = 10
const WAL_FILE_BYTES = 1_500
/** Sets the maximum size of all events about the attachments, as a multiple of the mail’s size. */
const EVENTS_SHARE = 10

/** Describes a mail with many small attachments. The numbers are the counts of attachments, links and characters. */
type Shape = {
  files: number
  filename: number
  contentId: number
  addresses: number
  subject: number
  links: number
  /** Returns the text of the n-th attachment. */
  content: (n: number) => string
}
const PLAIN: Shape = {
  ...{ files: 1_000, filename: 0, contentId: 0, addresses: 0, subject: 0, links: 0 },
  content: () => 'x',
}

/** Returns repeatable numbers from 0 to 1 (mulberry32). */
function drawn(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const SHAPES: [string, Shape][] = [
  ['plain attachments', PLAIN],
  ['long names', { ...PLAIN, filename: 240, contentId: 700 }],
  ['long addresses and a long subject', { ...PLAIN, addresses: 15_900, subject: 4_000 }],
  [
    'a code in each attachment and long links',
    { ...PLAIN, links: 50, content: (n) => `Your code is ${100_000 + 7 * n}.` },
  ],
  ...[1, 2, 3].map((seed): [string, Shape] => {
    const draw = drawn(seed)
    const upTo = (max: number) => Math.round(draw() * max)
    const text = 'word '.repeat(upTo(20))
    return [
      `the drawn shape ${seed}`,
      {
        ...{ files: 1 + upTo(999), filename: 5 + upTo(235), contentId: 3 + upTo(700) },
        ...{ addresses: upTo(15_900), subject: upTo(4_000), links: upTo(50) },
        content: (n) => `https://example.com/${n} ${text}`,
      },
    ]
  }),
]

/** Returns a text of random letters, which PostgreSQL can hardly compress. */
function letters(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length))
  return Buffer.from(bytes).toString('base64url').replace(/[-_]/g, 'x').slice(0, length)
}

function mailOf({ files, filename, contentId, addresses, subject, links, content }: Shape): string {
  const times = (count: number, text: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => text(n))
  const list = ['a@b.example', ...times(addresses / 300, () => `${letters(280)}@example.com`)]
  const name = filename === 0 ? '' : `; filename="${letters(filename - 4)}.txt"`
  return [
    `From: ${list.join(',\n ')}`,
    `To: ${list.join(',\n ')}`,
    `Subject: ${times(subject / 500, () => letters(499)).join('\n ')}`,
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    '',
    ...times(links, () => `https://example.com/${letters(900)}`),
    ...times(files, (n) =>
      [
        '--b',
        `Content-Disposition: attachment${name}`,
        ...(contentId === 0 ? [] : [`Content-ID: <${letters(contentId - 2)}>`]),
        '',
        content(n),
      ].join('\n'),
    ),
    '--b--',
    '',
  ].join('\n')
}

const walBytes = async () =>
  Number(
    // The test reads the insert position of the WAL. The write position can be behind it, because a commit of a job
    // need not wait for the disk.
    (await service.database.pool.query(`select pg_current_wal_insert_lsn() - '0/0' as bytes`))
      .rows[0].bytes,
  )

/** Delivers a mail, and reads its attachments only after the mail is stored. @returns the bytes of mail, WAL and events */
async function costOf(shape: Shape) {
  const { pool } = service.database
  const agent = await service.newAgent()
  const projectId = agent.project.id
  await pool.query(
    `insert into attachment_reading (project_id, day) values ($1, (clock_timestamp() at time zone 'UTC')::date)`,
    [projectId],
  )
  await pool.query('insert into project_limits (project_id, daily_text_bytes) values ($1, 0)', [
    projectId,
  ])
  const mail = mailOf(shape).replaceAll('\n', '\r\n')
  expect(await deliverRaw(service.smtp!.port, agent.address, mail)).toStartWith('250')
  const key = `read_attachments:${projectId}`
  await waitFor('the reading to wait for the next day', async () => {
    const { rows } = await pool.query(
      'select from graphile_worker.jobs where key = $1 and run_at > now() and locked_at is null',
      [key],
    )
    return rows.length === 1
  })
  const before = await walBytes()
  await pool.query('delete from project_limits where project_id = $1', [projectId])
  await queueReading(pool, projectId)
  await waitFor('the attachments to be read', async () => {
    const { rows } = await pool.query(
      `select from attachment_texts where project_id = $1 and state = 'pending'
       union all select from graphile_worker.jobs where key like $2 limit 1`,
      [projectId, `${key}%`],
    )
    return rows.length === 0
  })
  const wal = (await walBytes()) - before
  const { rows } = await pool.query<{ files: number; bytes: number }>(
    `select count(*)::int as files, sum(length(data::text))::int as bytes
     from events where project_id = $1 and type = 'attachment.read'`,
    [projectId],
  )
  expect(rows[0]!.files).toBe(shape.files)
  return { mail: mail.length, wal, events: rows[0]!.bytes }
}

test.each(SHAPES)(
  'reading a mail with %s writes a few times the bytes of the mail',
  async (_, shape) => {
    const { mail, wal, events } = await costOf(shape)
    expect(wal).toBeLessThan(WAL_SHARE * mail + WAL_FILE_BYTES * shape.files)
    expect(events).toBeLessThan(EVENTS_SHARE * mail)
  },
)
