import { join } from 'node:path'
import { generateKey } from '../../../shared/apiKey.ts'
import { LEAF_MESSAGES } from '../../../shared/mail/search/postings.ts'
import { searchKey } from '../../../shared/mail/search/searchTerms.ts'
import { PROJECT_SCOPES } from '../../../shared/scopes.ts'
import { createPool } from '../../../sql/db.ts'
import { createSetting } from '../../bench/setting.ts'
import { startNameServer } from '../../support/mail/nameServer.ts'
import { startSink } from '../../support/mail/sink.ts'
import { freePort, printed, startProcess } from '../../support/process/process.ts'
import { type Client, createClient } from '../../support/service.ts'
import { payTo, RESOURCE } from '../../support/till/till.ts'
import { waitFor } from '../../support/waitFor.ts'

/** Describes a project with its API client, its API key and its inbox. */
type Tenant = Client & { key: string; address: string; projectId: string }

/** Describes a running service with two projects: a victim and an attacker. */
export type Neighbourhood = AsyncDisposable & {
  url: string
  smtpPort: number
  victim: Tenant
  attacker: Tenant
  /** Waits until all mail is parsed, and until the search index contains almost all messages of the attacker. */
  calm(): Promise<void>
}

const WORDS = 400
/** Sets how many milliseconds the harness waits until the service has parsed all mail that an attack sent. */
const CALM_MS = 300_000

/**
 * Starts every part of the service as a process, with a name server that never responds for names that contain
 * `silent`.
 * @param inboxMessages is the number of messages in the attacker's inbox. A search among 60,000 messages takes seconds.
 */
export async function startNeighbourhood(inboxMessages: number): Promise<Neighbourhood> {
  const parts = new AsyncDisposableStack()
  const database = parts.use(await createSetting())
  const names = parts.use(await startNameServer([]))
  const sink = parts.use(await startSink())
  const [port, smtpPort] = [await freePort(), await freePort()]
  const platformKey = generateKey('platform')
  const service = parts.use(
    startProcess('api/start.ts', {
      DATABASE_URL: database.url,
      DATA_DIR: join(database.dataDir, 'service'),
      PORT: String(port),
      SMTP_PORT: String(smtpPort),
      DEVNET_PORT: '0',
      DNS_SERVERS: names.address,
      SMTP_RELAY_URL: sink.url,
      MAIL_DOMAIN: 'mail.test',
      RATE_LIMIT_REQUESTS: '1000000',
      BOOTSTRAP_PLATFORM_KEY: platformKey,
      LOG_LEVEL: 'warn',
    }),
  )
  await printed(service, /Try:[\s\S]*\/v0\/messages\n/)
  const url = `http://127.0.0.1:${port}`
  const platform = createClient(url, platformKey)
  const newTenant = async (name: string): Promise<Tenant> => {
    const { body } = await platform.post('/v0/platform/projects', {
      emailName: name,
      scopes: PROJECT_SCOPES,
      payTo,
      paymentsEnabled: true,
    })
    const { rawKey: key, emailAddress: address, projectId } = body
    const client = createClient(url, key)
    await client.put('/v0/sellers/endpoints', { urlPattern: RESOURCE, priceUsdc: '0.01' })
    return { ...client, key, address, projectId }
  }
  const [victim, attacker] = [await newTenant('victim'), await newTenant('attacker')]
  await fillInbox(database.url, attacker, inboxMessages)
  const neighbourhood: Neighbourhood = {
    url,
    smtpPort,
    victim,
    attacker,
    calm: async () => {
      await waitFor(
        'the end of the mail of an attack, and its words in segments',
        async () => {
          const { rows } = await database.pool.query(
            `select (select count(*) from inbound_mails where state = 'accepted')::int as mails,
               (select count(*) from search_pending where project_id = $1)::int as words`,
            [attacker.projectId],
          )
          return rows[0].mails === 0 && rows[0].words < LEAF_MESSAGES
        },
        CALM_MS,
      )
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
  await neighbourhood.calm()
  return neighbourhood
}

/** Fills an inbox directly by SQL with messages that have many words. */
async function fillInbox(
  databaseUrl: string,
  { projectId, ...client }: Tenant,
  count: number,
): Promise<void> {
  await client.post('/v0/messages/send', { to: ['a@example.com'], subject: 's', text: 'seed' })
  const pool = createPool({ url: databaseUrl, size: 1, name: 'test', statementTimeoutMs: 120_000 })
  try {
    await pool.query(
      `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, subject, text_body, labels,
                             created_at, search)
       select m.project_id, m.thread_row, 'received', '<' || n || '@x.test>', sha256(n::text::bytea), 's', 'x',
              array['received'], m.created_at - n * interval '1 second',
              (select string_agg(format('''%s:%s%s'':%s', $2::text, chr(97 + (n + w) % 26), (n * 7 + w * 13) % ${WORDS}, w), ' ')
               from generate_series(1, 40) w)::tsvector
       from messages m, generate_series(1, $3::int) n where m.project_id = $1`,
      [projectId, searchKey(projectId), count],
    )
    await pool.query('analyze messages')
  } finally {
    await pool.end()
  }
}
