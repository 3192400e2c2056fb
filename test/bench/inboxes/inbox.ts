import { generateKey } from '../../../shared/apiKey.ts'
import { searchKey } from '../../../shared/mail/search/searchTerms.ts'
import { PROJECT_SCOPES } from '../../../shared/scopes.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import type { Queryable } from '../../../sql/db.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import { messagePath } from '../../support/service.ts'
import { compare, perSecond, type Row } from '../measure.ts'
import type { Setting } from '../setting.ts'
import { loadInBulk } from './bulkMessages.ts'

const SIZES = [1_000, 100_000, 1_000_000]
const SLICE_MS = 1_000
/** Holds the time of the newest message in each inbox of the benchmark. */
const NEWEST_MS = Date.parse('2026-06-01')
const THREADS_EACH = 20

/**
 * Lists the requests that the benchmark measures. In every inbox, ten messages contain the rare word, and a fixed
 * fraction of the messages contains each of the other words.
 */
const QUERIES: readonly [name: string, query: string][] = [
  ['list 20', '?limit=20'],
  ['list 20, a page in the middle', '?limit=20&before=MIDDLE'],
  ['list by a label of every tenth', '?limit=20&labels=tenth'],
  ['search a word in 10 messages', '?limit=20&q=rare'],
  ['search a word in 1 % of them', '?limit=20&q=some'],
  ['search a word in all of them', '?limit=20&q=common'],
  ['search a phrase that nobody wrote', `?limit=20&q=${encodeURIComponent('"start common"')}`],
  ['search a phrase', `?limit=20&q=${encodeURIComponent('"common start"')}`],
  ['search a sender', '?limit=20&from=sender7@example.com'],
]

type Inbox = { projectId: string; size: number; key: string }

/**
 * Compares the same requests to inboxes of 1 k, 100 k and 1 M messages, which are measured in rotation.
 */
export async function* inboxRows(setting: Setting): AsyncGenerator<Row> {
  const inboxes: Inbox[] = []
  await loadInBulk(setting, async (client) => {
    for (const size of SIZES) inboxes.push(await fill(setting, client, size))
    return { largeProjects: inboxes.map(({ projectId }) => projectId) }
  })
  // The API runs with the log level `info`, because the benchmark reads its port from a log line. At this level, the
  // API also logs each request.
  await using api = startProcess('api/main.ts', { ...setting.env, PORT: '0', LOG_LEVEL: 'info' })
  const url = `http://127.0.0.1:${(await printed(api, /"port":(\d+)/))[1]}`
  const rate = ({ key, size }: Inbox, path: string) => {
    const middle = new Date(NEWEST_MS - (size / 2) * 60_000).toISOString()
    return perSecond({
      lanes: 1,
      durationMs: SLICE_MS,
      work: async () => {
        const answer = await fetch(url + path.replace('MIDDLE', middle), {
          headers: { authorization: `Bearer ${key}` },
        })
        if (!answer.ok) throw new Error(await answer.text())
        await answer.arrayBuffer()
      },
    })
  }
  const [small, ...large] = inboxes as [Inbox, ...Inbox[]]
  for (const inbox of large) {
    for (const [name, path] of [
      ...QUERIES.map(([name, query]) => [name, `/v0/messages${query}`] as const),
      ['get', messagePath('<500@x.test>')] as const,
    ]) {
      yield await compare({
        name: `${name}, ${inbox.size.toLocaleString('en')} messages`,
        unit: 'requests/s',
        detail: 'the same in an inbox of 1,000',
        ours: () => rate(inbox, path),
        baseline: () => rate(small, path),
      })
    }
  }
}

/** Creates an inbox of `size` messages with 60 words each. There is one minute between two messages. */
async function fill({ pool }: Setting, client: Queryable, size: number): Promise<Inbox> {
  const key = generateKey('project')
  const { project } = await createProject(pool, {
    name: `Inbox of ${size}`,
    purpose: 'SELLER',
    emailAddress: `inbox${size}@mail.test`,
    scopes: PROJECT_SCOPES,
    key,
  })
  await client.query(
    `insert into threads (id, project_id, subject, created_at, updated_at, message_count)
     select 'thd_' || $1 || n, $1, 'Thread', clock_timestamp(), clock_timestamp(), $2 / ${THREADS_EACH}
     from generate_series(0, ${THREADS_EACH - 1}) n`,
    [project.id, size],
  )
  const term = (word: string) => `${searchKey(project.id)}:${word}`
  await client.query(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, from_addresses, subject,
       text_body, extracted_text, text_bytes, labels, created_at, search)
     select $1, t.row, 'received', '<' || n || '@x.test>', sha256(('<' || n || '@x.test>')::bytea),
       array['sender' || n % 50 || '@example.com'], 'Message ' || n, words.body, words.body, 2 * length(words.body),
       case when n % 10 = 0 then array['received', 'unread', 'tenth'] else array['received', 'read'] end,
       '2026-06-01'::timestamptz - n * interval '1 minute',
       (words.vector || format(' %L:1A,3D %L:4D %L:10B', $3::text, $4::text, $6::text || n % 50)
         || case when n % 100 = 0 then format(' %L:5D', $5::text) else '' end
         || case when n <= 10 then format(' %L:6D', $7::text) else '' end)::tsvector
     from generate_series(1, $2::int) n
     join threads t on t.project_id = $1 and t.id = 'thd_' || $1 || n % ${THREADS_EACH}
     cross join lateral (
       select string_agg('word' || w, ' ') as body, string_agg(format('%L:%s', $8::text || w, 10 + i), ' ') as vector
       from (select i, (random() * 5000 + n * 0)::int as w from generate_series(1, 60) i) picked
     ) words`,
    [
      project.id,
      size,
      term('common'),
      term('start'),
      term('some'),
      term('sender'),
      term('rare'),
      term('word'),
    ],
  )
  return { projectId: project.id, size, key }
}
