import { expect, test } from 'bun:test'
import {
  documentId,
  findDocument,
  wantDocument,
} from '../../../sql/account/oauth/clientDocuments.ts'
import { transaction } from '../../../sql/db.ts'
import { insertInboundMails } from '../../../sql/mail/inbound/inboundMails.ts'
import { findReport, requestReport } from '../../../sql/operations/healthReports.ts'
import { addJob } from '../../../sql/queue/jobs.ts'
import { testWhole } from '../../support/database/extent.ts'
import { MOMENTS } from '../../support/database/postgresProxy.ts'
import { startReceiver, status } from '../../support/events/receiver.ts'
import { register, sendEvent, waitForEnd } from '../../support/events/webhooks.ts'
import { calendarFile } from '../../support/mail/calendar/invitations.ts'
import { fakeDns } from '../../support/mail/fakeDns.ts'
import { heldAgent } from '../../support/mail/held.ts'
import { rawMail, spooled } from '../../support/mail/mailRows.ts'
import { startSink } from '../../support/mail/sink.ts'
import { RECOVERY_LIMIT_MS } from '../../support/process/alone.ts'
import { cutEveryRoundTrip, proxyThrough } from '../../support/process/cuts.ts'
import { answering, closeServers } from '../../support/process/localServer.ts'
import { newCertificate, serveTls } from '../../support/process/tlsServer.ts'
import {
  messagePath,
  startTestService,
  type TestService,
  type TestServiceOptions,
} from '../../support/service.ts'
import { CHALLENGE } from '../../support/till/headers/challenge.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

/** Starts a service whose workers reach PostgreSQL through a proxy that can cut connections. */
async function startCuttable(options: TestServiceOptions) {
  const { proxy, through } = proxyThrough()
  const service = await startTestService({
    ...options,
    through: { workers: through },
    pool: { recoveryIntervalMs: 100 },
  })
  return { service, proxy: await proxy }
}

/**
 * Waits until no job of the queue is due or locked. A job that was replaced by a newer job with the same key never
 * runs, and its row is deleted later.
 */
const untilNoJob = ({ database }: TestService) =>
  waitFor(
    'no job to be left',
    async () => {
      const { rows } = await database.pool.query(
        `select id from graphile_worker._private_jobs
         where run_at <= now() and attempts < max_attempts or locked_by is not null`,
      )
      return rows.length === 0
    },
    RECOVERY_LIMIT_MS,
  )

for (const moment of MOMENTS) {
  testWhole(
    `if the database connection is cut ${moment} any round trip of the job that parses mail, a message arrives once`,
    async () => {
      const { service, proxy } = await startCuttable({ pools: ['inbound'] })
      await using _ = service
      const agent = await service.newAgent()
      const cuts = await cutEveryRoundTrip(proxy, moment, async (label) => {
        const messageId = `<${label}@x.test>`
        await service.deliver({ from: 'a@x.test', to: agent.address, text: label, messageId })
        await waitFor(
          'the message',
          async () => (await agent.get(messagePath(messageId))).status === 200,
        )
        await untilNoJob(service)
        const { body } = await agent.get('/v0/messages?limit=100')
        expect(body.messages.filter((item: any) => item.messageId === messageId)).toHaveLength(1)
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  const testOne = moment === MOMENTS[1] ? test : testWhole
  testOne(`parse: a batch arrives once, with a cut ${moment} each round trip`, async () => {
    const { service, proxy } = await startCuttable({ smtp: false, pools: ['inbound'] })
    await using _ = service
    const agents = [await service.newAgent(), await service.newAgent()]
    const { pool } = service.database
    const cuts = await cutEveryRoundTrip(proxy, moment, async (label) => {
      const mails = agents.flatMap(({ address }) =>
        ['a', 'b'].map((from) => spooled([address], rawMail({ id: `${from}-${label}@x.test` }))),
      )
      await insertInboundMails(pool, mails)
      await waitFor('the messages', async () => {
        const { rowCount } = await pool.query(
          `select from inbound_mails where state = 'accepted' limit 1`,
        )
        return rowCount === 0
      })
      await untilNoJob(service)
      const { rows } = await pool.query(
        'select count(*)::int as n from messages where message_id like $1',
        [`<_-${label}@x.test>`],
      )
      expect(rows[0].n).toBe(4)
    })
    expect(cuts).toBeGreaterThan(3)
  })

  testWhole(
    `if the database connection is cut ${moment} any round trip of the job that reads invitations, an event is applied once`,
    async () => {
      const { service, proxy } = await startCuttable({ pools: ['inbound', 'outbound'] })
      await using _ = service
      const cuts = await cutEveryRoundTrip(proxy, moment, async (label) => {
        const agent = await service.newAgent()
        const messageId = `<${label}@x.test>`
        const uid = `${label}@x.test`
        const organizer = 'a@x.test'
        const content = calendarFile({ uid, organizer, lines: ['RRULE:FREQ=WEEKLY;COUNT=3'] })
        await service.deliver({
          ...{ from: organizer, to: agent.address, text: label, messageId },
          icalEvent: { method: 'REQUEST', content },
        })
        const message = await waitFor(
          'the invite',
          async () => {
            const { status: found, body } = await agent.get(messagePath(messageId))
            return found === 200 && body.invites !== undefined ? body : undefined
          },
          RECOVERY_LIMIT_MS,
        )
        expect(message.invites).toMatchObject([{ uid, effect: 'new' }])
        const { status: answered } = await agent.post(`${messagePath(messageId)}/rsvp`, {
          answer: 'accepted',
        })
        expect(answered).toBe(201)
        await waitFor(
          'the instances',
          async () => {
            const { body } = await agent.get('/v0/calendar?from=2030-03-01&to=2030-04-01')
            return body.count === 3
          },
          RECOVERY_LIMIT_MS,
        )
        await untilNoJob(service)
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testOne(
    `send: the smarthost gets a message once, with a cut ${moment} each round trip`,
    async () => {
      await using sink = await startSink()
      const { service, proxy } = await startCuttable({
        smtp: false,
        pools: ['outbound'],
        env: { SMTP_RELAY_URL: sink.url },
      })
      await using _ = service
      const agent = await service.newAgent()
      const cuts = await cutEveryRoundTrip(proxy, moment, async (subject) => {
        const { body } = await agent.post('/v0/messages/send', {
          to: ['b@example.com'],
          subject,
          text: 'x',
        })
        await waitFor('the record of its delivery', async () => {
          const { body: message } = await agent.get(messagePath(body.messageId))
          return message.deliveryStatus === 'sent'
        })
        await untilNoJob(service)
        expect(sink.mails.filter(({ email }) => email.subject === subject)).toHaveLength(1)
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of an approval job, a waiting mail causes one event, one notification and one expiry`,
    async () => {
      await using sink = await startSink()
      const { service, proxy } = await startCuttable({
        smtp: false,
        pools: ['outbound'],
        env: { SMTP_RELAY_URL: sink.url },
      })
      await using _ = service
      const { pool } = service.database
      const agent = await heldAgent(service, {
        sendPolicy: 'approve',
        approverEmail: 'owner@elsewhere.example',
      })
      const cuts = await cutEveryRoundTrip(proxy, moment, async (subject) => {
        const { body } = await agent.post('/v0/messages/send', {
          to: ['b@example.com'],
          subject,
          text: 'x',
        })
        const { approvalId } = await waitFor('the notification', async () => {
          const { rows } = await pool.query(
            `select id as "approvalId" from approvals where subject = $1 and notified_at is not null`,
            [body.messageId],
          )
          return rows[0]
        })
        await untilNoJob(service)
        await pool.query('update approvals set expires_at = now() where id = $1', [approvalId])
        await pool.query(
          // PostgreSQL notifies the workers when a job is added, but not when the time of a job changes. Therefore the
          // test adds the job again, instead of waiting for the next poll of the queue.
          `select graphile_worker.add_job('expire_approval', json_build_object('approvalId', $1::text),
           job_key := 'expire_approval:' || $1)`,
          [approvalId],
        )
        await waitFor('the end', async () => {
          const { body: message } = await agent.get(messagePath(body.messageId))
          return message.deliveryStatus === 'expired'
        })
        await untilNoJob(service)
        const { rows } = await pool.query(
          `select type from events where data ->> 'messageId' = $1 order by seq`,
          [body.messageId],
        )
        expect(rows.map(({ type }) => type)).toEqual(['message.held', 'message.rejected'])
        expect(sink.mails.filter(({ email }) => email.text?.includes(subject))).toHaveLength(1)
      })
      expect(cuts).toBeGreaterThan(8)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of the job that delivers webhooks, a receiver gets an event once`,
    async () => {
      await using receiver = await startReceiver()
      const { service, proxy } = await startCuttable({
        smtp: false,
        pools: ['webhooks'],
        env: { ALLOW_PRIVATE_NETWORKS: 'true' },
      })
      await using _ = service
      const agent = await service.newAgent()
      const endpoint = await register(agent, receiver.url)
      const cuts = await cutEveryRoundTrip(proxy, moment, async () => {
        const id = await sendEvent(service.database, agent, endpoint)
        const delivery = await waitForEnd(agent, id)
        expect(delivery.attemptCount).toBe(1)
        await untilNoJob(service)
        const got = receiver.requests.filter(
          ({ headers }) => headers['x-service-idempotency-key'] === id,
        )
        expect(got).toHaveLength(1)
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of a request with a secret, a server gets the request at most once`,
    async () => {
      const got: string[] = []
      const certificate = newCertificate('bank.example')
      const port = await serveTls(certificate, (request, response) => {
        got.push(request.url!)
        response.end('ok')
      })
      const { service, proxy } = await startCuttable({
        ...{ smtp: false, pools: ['vault'], env: { ALLOW_PRIVATE_NETWORKS: 'true' } },
        ...{ ca: certificate.ca, resolve: answering('127.0.0.1') },
      })
      await using _ = service
      const agent = await service.newAgent()
      const uri = `https://bank.example:${port}`
      await agent.put('/v0/vault/n', {
        type: 'LOGIN',
        data: { password: 'long' },
        metadata: { uri },
      })
      const states = new Set<string>()
      const cuts = await cutEveryRoundTrip(proxy, moment, async (label) => {
        const { body } = await agent.post('/v0/vault/n/use', {
          request: { url: `${uri}/${label}` },
        })
        await untilNoJob(service)
        const { body: use } = await agent.get(`/v0/vault/n/uses/${body.useId}`)
        states.add(use.state)
        const sent = got.filter((path) => path === `/${label}`).length
        expect(use.state === 'answered' ? sent === 1 : sent <= 1).toBe(true)
        expect(use.state).not.toBe('failed')
      })
      closeServers()
      expect(states).toContain('answered')
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of a verification, a domain and an endpoint get their verdicts`,
    async () => {
      await using receiver = await startReceiver(status(402, CHALLENGE))
      const { service, proxy } = await startCuttable({
        smtp: false,
        pools: ['inbound', 'webhooks'],
        dns: fakeDns({}),
        env: { ALLOW_PRIVATE_NETWORKS: 'true' },
      })
      await using _ = service
      const agent = await service.newAgent()
      const cuts = await cutEveryRoundTrip(proxy, moment, async (label) => {
        const domain = `${label}.example`
        await service.platform.post('/v0/platform/domains', { domain })
        const { body } = await agent.put('/v0/sellers/endpoints', {
          urlPattern: `http://127.0.0.1:${receiver.port}/${label}`,
          priceUsdc: '0.01',
        })
        await waitFor('both verdicts', async () => {
          const { body: endpoint } = await agent.get(`/v0/sellers/endpoints/${body.endpointId}`)
          const { body: known } = await service.platform.get(`/v0/platform/domains/${domain}`)
          return endpoint.verification.status === 'verified' && known.checkedAt !== null
        })
        await untilNoJob(service)
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of a trial (test purchase), the trial reaches the server of its endpoint`,
    async () => {
      await using receiver = await startReceiver(status(402, CHALLENGE))
      const { service, proxy } = await startCuttable({
        smtp: false,
        pools: ['webhooks'],
        env: { ALLOW_PRIVATE_NETWORKS: 'true' },
      })
      await using _ = service
      const agent = await service.newAgent()
      const cuts = await cutEveryRoundTrip(proxy, moment, async (label) => {
        const { body } = await agent.put('/v0/sellers/endpoints', {
          urlPattern: `http://127.0.0.1:${receiver.port}/${label}`,
          priceUsdc: '0.01',
        })
        const path = `/v0/sellers/endpoints/${body.endpointId}/trial`
        await agent.post(path, { buy: false })
        await waitFor('the challenge', async () => {
          const { trial } = (await agent.get(path)).body
          return trial.state === 'asked'
        })
        await untilNoJob(service)
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of the fetch of an OAuth client document, the fetch from a private address is still refused`,
    async () => {
      const { service, proxy } = await startCuttable({ smtp: false, pools: ['webhooks'] })
      await using _ = service
      const { pool } = service.database
      const cuts = await cutEveryRoundTrip(proxy, moment, async (label) => {
        // The HTTP client for strangers’ URLs refuses a private address before it opens a connection, so this fetch
        // needs no server.
        const url = `https://127.0.0.1/${label}`
        const id = documentId(url)
        await wantDocument(pool, { id, url, network: '' })
        await waitFor('the verdict', async () => (await findDocument(pool, id))?.state === 'failed')
        await untilNoJob(service)
      })
      expect(cuts).toBeGreaterThan(2)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of a health check, the health report gets each section once`,
    async () => {
      const { service, proxy } = await startCuttable({
        smtp: false,
        pools: ['outbound', 'webhooks'],
        env: {
          ALLOW_PRIVATE_NETWORKS: 'true',
          // The addresses of the name server and of OUTSIDE_URL refuse connections at once. Otherwise the report of the
          // doctor (the self-check) would wait for a timeout.
          DNS_SERVERS: '127.0.0.1:1',
          OUTSIDE_URL: 'http://127.0.0.1:1/',
        },
      })
      await using _ = service
      const cuts = await cutEveryRoundTrip(proxy, moment, async () => {
        const id = await requestReport(service.database.pool, {
          sections: ['service', 'mail'],
          given: { chain: [] },
        })
        await waitFor('both sections', async () => {
          const report = await findReport(service.database.pool, id)
          return Object.keys(report!.sections).length === 3
        })
        await untilNoJob(service)
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of the purge, a deleted project loses its messages`,
    async () => {
      const { service, proxy } = await startCuttable({ smtp: false, pools: ['inbound'] })
      await using _ = service
      const { pool } = service.database
      const cuts = await cutEveryRoundTrip(proxy, moment, async () => {
        const agent = await service.newAgent()
        await agent.post('/v0/messages/send', { to: ['b@example.com'], subject: 's', text: 't' })
        await service.platform.delete(`/v0/platform/projects/${agent.project.id}`)
        await waitFor('the mail to be gone', async () => {
          const { rowCount } = await pool.query('select from messages where project_id = $1', [
            agent.project.id,
          ])
          return rowCount === 0
        })
        await waitFor('the job to be gone', async () => {
          const { rowCount } = await pool.query(
            `select from graphile_worker.jobs where task_identifier = 'purge_project'`,
          )
          return rowCount === 0
        })
      })
      expect(cuts).toBeGreaterThan(3)
    },
  )

  testWhole(
    `if the database connection is cut ${moment} any round trip of a failing job, a task that throws an error runs again`,
    async () => {
      const { proxy, through } = proxyThrough()
      let running = 0
      let together = 0
      const runs = new Map<string, number>()
      await using service = await startTestService({
        smtp: false,
        pools: ['inbound'],
        through: { workers: through },
        pool: {
          recoveryIntervalMs: 100,
          tasks: () => ({
            async verify_domain({ domain }) {
              together = Math.max(together, ++running)
              await new Promise((resolve) => setImmediate(resolve))
              running--
              runs.set(domain, (runs.get(domain) ?? 0) + 1)
              if (runs.get(domain) === 1) throw new Error('the first run fails')
            },
          }),
        },
      })
      const { pool } = service.database
      const cuts = await cutEveryRoundTrip(await proxy, moment, async (label) => {
        const domain = `${label}.example`
        await transaction(pool, (db) =>
          addJob(db, { task: 'verify_domain', payload: { domain }, key: domain }),
        )
        await waitFor('the first run to be recorded', async () => {
          const { rows } = await pool.query(
            `select last_error from graphile_worker.jobs where locked_at is null and last_error is not null`,
          )
          return rows.length > 0
        })
        await pool.query(`update graphile_worker._private_jobs set run_at = now()`)
        await pool.query('select pg_notify($1, $2)', ['jobs:insert', '{"count":1}'])
        await untilNoJob(service)
        expect(runs.get(domain)).toBeGreaterThan(1)
      })
      expect(cuts).toBeGreaterThan(3)
      expect(together).toBe(1)
    },
  )
}
