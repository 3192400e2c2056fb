import { afterAll, beforeAll, expect, test } from 'bun:test'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { createKeyringSource, masterKeys } from '../../../sql/keyring/keyring.ts'
import { createDkimKey } from '../../../sql/mail/domains/dkimKeys.ts'
import { queueCheck } from '../../../sql/mail/domains/mailDomains.ts'
import { startMaintenance } from '../../../workers/operations/maintenance.ts'
import { silentLog } from '../../support/logs.ts'
import { fakeDns, type Zone } from '../../support/mail/fakeDns.ts'
import { sendMail, sunkAt, untilStatus } from '../../support/mail/outbound.ts'
import { publish } from '../../support/mail/ownDomain.ts'
import { type Sink, startSink } from '../../support/mail/sink.ts'
import { talkSmtp } from '../../support/mail/smtpTalk.ts'
import {
  createClient,
  startTestService,
  type TestService,
  waitForMessages,
} from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const zone: Required<Zone> = { mx: {}, a: {}, txt: {}, failing: [] }
const answering = fakeDns(zone)
/**
 * Makes the test DNS server delay the next TXT query for a name until the given promise resolves. The delayed query
 * still gets the TXT records that DNS had before the change.
 */
const held = new Map<string, Promise<void>>()
let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({
    env: { SMTP_RELAY_URL: sink.url, MAIL_HOSTNAME: 'mx.mail.test' },
    dns: {
      ...answering,
      async txt(name) {
        const found = await answering.txt(name)
        const until = held.get(name)
        held.delete(name)
        await until
        return found
      },
    },
  })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const PATH = '/v0/platform/domains'

/**
 * Waits until no check of a mail domain is running, because such a check may have read the DNS before the test changed
 * it.
 */
const atRest = () =>
  waitFor('no check to be under way', async () => {
    const { rowCount } = await service.database.pool.query(
      `select from graphile_worker.jobs
       where task_identifier = 'verify_domain' and (locked_at is not null or run_at <= now())`,
    )
    return rowCount === 0
  })

/** Checks a mail domain now, and returns the domain with the new findings. */
async function check(domain: string): Promise<any> {
  await atRest()
  const before = (await service.platform.get(`${PATH}/${domain}`)).body.checkedAt
  expect((await service.platform.post(`${PATH}/${domain}/verify`)).status).toBe(200)
  return await waitFor(`${domain} to be checked`, async () => {
    const { body } = await service.platform.get(`${PATH}/${domain}`)
    return body.checkedAt !== before ? body : null
  })
}

/** Adds a mail domain with valid DNS records, and waits until its verification. */
async function verified(domain: string): Promise<any> {
  const { body } = await service.platform.post(PATH, { domain })
  publish(zone, body.records)
  return await waitFor(`${domain} to be verified`, async () => {
    const found = await check(domain)
    return found.status === 'verified' ? found : null
  })
}

const newProject = async (emailName: string, emailDomain: string) =>
  await service.platform.post('/v0/platform/projects', { emailName, emailDomain })

test('a mail domain cannot be added if a person of the console or an approver has an address in it', async () => {
  const { pool } = service.database
  await pool.query(
    `insert into people (id, email, name, role) values ('per_1', 'ada@people.example', 'Ada', 'owner')`,
  )
  const approved = await service.newAgent()
  const path = `/v0/platform/projects/${approved.project.id}`
  const set = await service.platform.patch(path, { approverEmail: 'Bob@Approvers.example' })
  expect(set.status).toBe(200)
  const other = await service.newAgent()
  const german = { approverEmail: 'Eva@Käse.example' }
  const { body } = await service.platform.patch(`/v0/platform/projects/${other.project.id}`, german)
  expect(body.approverEmail).toBe('Eva@xn--kse-qla.example')
  for (const domain of ['people.example', 'approvers.example', 'xn--kse-qla.example']) {
    const { status, body } = await service.platform.post(PATH, { domain })
    expect([status, body.message]).toEqual([
      409,
      `domain must hold no address of a person or an approver of this service: ${domain}`,
    ])
  }
  const { status } = await service.platform.post(PATH, { domain: 'agents.people.example' })
  expect(status).toBe(201)
})

test('a mail domain cannot be used until its DNS records prove the ownership', async () => {
  const { status, body } = await service.platform.post(PATH, { domain: 'Agents.Example.COM.' })
  expect([status, body.domain, body.status]).toEqual([201, 'agents.example.com', 'pending'])
  expect(body.records.map((one: any) => [one.purpose, one.required, one.status])).toEqual([
    ['ownership', true, 'unchecked'],
    ['mx', true, 'unchecked'],
    ['dkim', true, 'unchecked'],
    ['spf', false, 'unchecked'],
    ['dmarc', false, 'unchecked'],
  ])
  const statuses = (found: any) => found.records.map((one: any) => one.status)
  expect(statuses(await check('agents.example.com'))).toEqual(Array(5).fill('missing'))
  const early = await newProject('bot', 'agents.example.com')
  expect([early.status, early.body.message]).toEqual([
    400,
    'emailDomain must be a verified domain: agents.example.com is none',
  ])
  // The test publishes all records except the proof of ownership, because anyone can point a domain's MX at this
  // service.
  publish(zone, body.records.slice(1))
  const half = await check('agents.example.com')
  expect([half.status, statuses(half)]).toEqual(['pending', ['missing', 'ok', 'ok', 'ok', 'ok']])
  expect((await newProject('bot', 'agents.example.com')).status).toBe(400)
  publish(zone, body.records.slice(0, 1))
  const whole = await check('agents.example.com')
  expect([whole.status, statuses(whole), whole.verifiedAt]).toEqual([
    'verified',
    Array(5).fill('ok'),
    expect.any(String),
  ])
  const project = await newProject('bot', 'AGENTS.example.com')
  expect([project.status, project.body.emailAddress]).toEqual([201, 'bot@agents.example.com'])
})

test('an inbox at a verified domain receives mail, and its own mail is signed for that domain', async () => {
  const { records } = await verified('shop.test')
  const { body } = await newProject('sales', 'shop.test')
  const agent = createClient(service.url, body.rawKey)
  await service.deliver({
    from: 'ada@example.com',
    to: 'Sales+x@shop.test',
    subject: 'Hi',
    text: 'x',
  })
  const [received] = await waitForMessages(agent, 1)
  expect(received.from).toEqual(['ada@example.com'])
  const sent = await sendMail(agent)
  expect(sent.messageId).toMatch(/@shop\.test>$/)
  const { raw } = await sunkAt(sink, sent.messageId)
  const dkim = records.find((one: any) => one.purpose === 'dkim')
  const { results } = await dkimVerify(Buffer.from(raw, 'latin1'), {
    resolver: async (name: string) => (name === dkim.name ? [[dkim.value]] : []),
  } as any)
  expect(results.map(({ status, signingDomain }: any) => [status.result, signingDomain])).toEqual([
    ['pass', 'shop.test'],
  ])
  await using talk = await talkSmtp(service.smtp!.port)
  await talk.say('MAIL FROM:<ada@example.com>')
  expect(await talk.say('RCPT TO:<nobody@shop.test>')).toStartWith('550')
  expect(await talk.say('RCPT TO:<sales@elsewhere.test>')).toStartWith('550')
  expect(await talk.say('RCPT TO:<sales@shop.test>')).toStartWith('250')
})

test('the Unicode form and the ASCII form of a name mean the same domain, and its inboxes receive mail', async () => {
  const { domain } = await verified('bücher.example')
  expect(domain).toBe('xn--bcher-kva.example')
  for (const name of ['B%C3%BCcher.example', 'XN--bcher-kva.example']) {
    expect((await service.platform.get(`${PATH}/${name}`)).body.domain).toBe(domain)
  }
  const { status, body } = await newProject('info', 'Bücher.example')
  expect([status, body.emailAddress]).toEqual([201, 'info@xn--bcher-kva.example'])
  const agent = createClient(service.url, body.rawKey)
  await using talk = await talkSmtp(service.smtp!.port)
  await talk.say('MAIL FROM:<ada@example.com>')
  expect(await talk.say('RCPT TO:<nobody@xn--bcher-kva.example>')).toStartWith('550')
  await service.deliver({
    from: 'ada@example.com',
    to: 'info@bücher.example',
    subject: 'Hi',
    text: 'x',
  })
  await waitForMessages(agent, 1)
  expect((await service.platform.delete(`${PATH}/b%C3%BCcher.example`)).status).toBe(409)
})

test('mail between domains of this service stays local, and an unverified domain gets no mail', async () => {
  await verified('inside.test')
  const { body } = await newProject('two', 'inside.test')
  const two = createClient(service.url, body.rawKey)
  const one = await service.newAgent()
  const { messageId } = await sendMail(one, { to: ['two@inside.test', 'nobody@inside.test'] })
  expect((await waitForMessages(two, 1))[0].messageId).toBe(messageId)
  const { deliveryError } = await untilStatus(one, messageId, 'failed')
  expect(deliveryError).toBe('nobody@inside.test: 550 5.1.1 No such inbox')
  expect(sink.mails.some(({ email }) => email.messageId === messageId)).toBe(false)
  await service.platform.post(PATH, { domain: 'claimed.test' })
  const out = await sendMail(one, { to: ['ada@claimed.test'] })
  expect((await sunkAt(sink, out.messageId)).to).toEqual(['ada@claimed.test'])
})

test('a mail domain keeps its status for three days after its DNS records disappear, and also while its name servers fail', async () => {
  const { records } = await verified('shaky.test')
  const owner = records.find((one: any) => one.purpose === 'ownership')
  const later = () =>
    service.database.pool.query(
      `update mail_domains set wanting_since = wanting_since - interval '72 hours' where domain = 'shaky.test'`,
    )
  zone.failing.push(owner.name)
  const unsaid = await check('shaky.test')
  expect([unsaid.status, unsaid.records[0].status]).toEqual(['verified', 'unknown'])
  // The grace period of three days begins when a record is found missing, and not when the name servers start to fail,
  // so the domain is still verified here.
  await later()
  zone.failing.pop()
  delete zone.txt[owner.name]
  expect((await check('shaky.test')).status).toBe('verified')
  await later()
  expect((await check('shaky.test')).status).toBe('failed')
  await waitFor('no other check of it to be planned', async () => {
    const { rowCount } = await service.database.pool.query(
      `select from graphile_worker.jobs where key = 'verify_domain:shaky.test'`,
    )
    return rowCount === 0
  })
  expect((await newProject('late', 'shaky.test')).status).toBe(400)
  publish(zone, [owner])
  expect((await check('shaky.test')).status).toBe('verified')
  const { rows } = await service.database.pool.query(
    `select run_at > now() + interval '23 hours' as tomorrow from graphile_worker.jobs where key = 'verify_domain:shaky.test'`,
  )
  expect(rows).toEqual([{ tomorrow: true }])
  // A successful check resets the grace period of three days, so the next failure begins a new period.
  await later()
  delete zone.txt[owner.name]
  expect((await check('shaky.test')).status).toBe('verified')
})

test('a mail domain stays verified while its DKIM key is replaced and after the record of the older key is removed', async () => {
  const domain = 'rotated.example'
  const { records } = await verified(domain)
  const dkimOf = (all: any[]) => all.find(({ purpose }) => purpose === 'dkim')
  const first = dkimOf(records)
  const { pool } = service.database
  const keyring = await createKeyringSource(masterKeys(service.config))(pool)
  const renew = () => createDkimKey(pool, keyring, domain)
  const second = await renew()
  const replacing = await check(domain)
  const name = `${second.selector}._domainkey.${domain}`
  expect(dkimOf(replacing.records)).toMatchObject({ name, value: second.record, status: 'ok' })
  zone.txt[name] = [second.record]
  zone.txt[first.name] = []
  const replaced = await check(domain)
  expect([replaced.status, dkimOf(replaced.records).status]).toEqual(['verified', 'ok'])
  zone.txt[name] = []
  expect(dkimOf((await check(domain)).records).status).toBe('missing')
  await renew()
  zone.failing = [name]
  expect(dkimOf((await check(domain)).records).status).toBe('unknown')
  zone.failing = []
})

test('if the job that checks a mail domain is lost, the housekeeping queues it again after a day', async () => {
  const domain = 'unwatched.example'
  await verified(domain)
  await atRest()
  const { pool, url } = service.database
  await pool.query(
    `select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs where key = $1))`,
    [`verify_domain:${domain}`],
  )
  const { rows } = await pool.query(
    `update mail_domains set checked_at = checked_at - interval '26 hours' where domain = $1 returning checked_at`,
    [domain],
  )
  const maintenance = startMaintenance(url, service.config.retention, silentLog)
  try {
    await waitFor('the check', async () => {
      const { body } = await service.platform.get(`${PATH}/${domain}`)
      return body.checkedAt > rows[0].checked_at.toISOString()
    })
  } finally {
    await maintenance.stop()
  }
})

test('a domain can be removed only if no project uses it, and must be verified again if it is added again', async () => {
  const first = await verified('moving.test')
  const { body } = await newProject('last', 'moving.test')
  const kept = await service.platform.delete(`${PATH}/moving.test`)
  expect([kept.status, kept.body.message]).toEqual([
    409,
    'The domain has projects: delete them first',
  ])
  await service.platform.delete(`/v0/platform/projects/${body.projectId}`)
  expect((await service.platform.delete(`${PATH}/moving.test`)).status).toBe(204)
  expect((await service.platform.delete(`${PATH}/moving.test`)).status).toBe(404)
  const { rows } = await service.database.pool.query(
    `select count(*)::int as n from dkim_keys where domain = 'moving.test'`,
  )
  expect(rows[0].n).toBe(0)
  const again = (await service.platform.post(PATH, { domain: 'moving.test' })).body
  expect(again.records[0].value).not.toBe(first.records[0].value)
  const checked = await check('moving.test')
  expect([checked.status, checked.records[0].status]).toEqual(['pending', 'mismatch'])
})

test('if a mail domain is removed and added again, the result of a check that began before its removal is ignored', async () => {
  const add = async () => (await service.platform.post(PATH, { domain: 'again.test' })).body
  const first = await add()
  const [owner] = first.records
  await atRest()
  publish(zone, first.records)
  const { promise, resolve: release } = Promise.withResolvers<void>()
  held.set(owner.name, promise)
  await service.platform.post(`${PATH}/again.test/verify`)
  await waitFor('the name servers to be asked', () => held.size === 0)
  expect((await service.platform.delete(`${PATH}/again.test`)).status).toBe(204)
  const { records } = await add()
  // DNS still has the old records when the domain is added again, so the first check finds them.
  const checked = await waitFor('the new claim to be checked', async () => {
    const { body } = await service.platform.get(`${PATH}/again.test`)
    return body.checkedAt === null ? null : body
  })
  expect([checked.status, checked.records[0].status]).toEqual(['pending', 'mismatch'])
  expect(records[0].value).not.toBe(owner.value)
  release()
  await atRest()
  const { body } = await service.platform.get(`${PATH}/again.test`)
  expect([body.status, body.checkedAt]).toEqual(['pending', checked.checkedAt])
})

test('a job that checks a mail domain does nothing if the domain was removed', async () => {
  const { pool } = service.database
  await queueCheck(pool, 'removed.test')
  await waitFor('the job to have been run', async () => {
    const { rowCount } = await pool.query(
      `select from graphile_worker.jobs
       where key = 'verify_domain:removed.test' and last_error is null`,
    )
    return rowCount === 0
  })
  const { rows } = await pool.query(
    `select last_error from graphile_worker.jobs where key = 'verify_domain:removed.test'`,
  )
  expect(rows).toEqual([])
})

test('a mail domain whose name servers never answer is checked once an hour after the first hour', async () => {
  const domain = 'mute.test'
  const { pool } = service.database
  const { status, body } = await service.platform.post(PATH, { domain })
  expect(status).toBe(201)
  await atRest()
  zone.failing.push(...body.records.map(({ name }: any) => name))
  // The first check found the DNS records missing. The test resets the domain, so that the domain looks as if the name
  // servers never responded.
  await pool.query('update mail_domains set wanting_since = null where domain = $1', [domain])
  const nextInS = async () => {
    const { records } = await check(domain)
    expect(records[0].status).toBe('unknown')
    await atRest()
    const { rows } = await pool.query(
      `select extract(epoch from run_at - now())::int as s from graphile_worker.jobs
       where key = 'verify_domain:' || $1`,
      [domain],
    )
    return rows[0].s
  }
  expect(await nextInS()).toBeWithin(1, 61)
  await pool.query(
    `update mail_domains set created_at = created_at - interval '1 day' where domain = $1`,
    [domain],
  )
  expect(await nextInS()).toBeWithin(3_000, 3_601)
})

test('the API refuses a mail domain that is invalid, unknown or used by another project', async () => {
  for (const domain of [
    '',
    'localhost',
    'a b.test',
    '-x.test',
    '127.0.0.1',
    'a@b.test',
    'x..test',
  ]) {
    const { status, body } = await service.platform.post(PATH, { domain })
    expect([domain, status, body.message]).toEqual([
      domain,
      400,
      'domain must be a domain name, such as agents.example.com',
    ])
  }
  await service.platform.post(PATH, { domain: 'taken.test' })
  for (const domain of ['taken.test', 'MAIL.test']) {
    expect([domain, (await service.platform.post(PATH, { domain })).status]).toEqual([domain, 409])
  }
  for (const answer of [
    await service.platform.get(`${PATH}/none.test`),
    await service.platform.post(`${PATH}/none.test/verify`),
  ]) {
    expect([answer.status, answer.body.message]).toEqual([404, 'Domain not found'])
  }
  const agent = await service.newAgent()
  expect((await agent.get(PATH)).body.message).toBe('Missing required scope: platform:manage')
  const seen: string[] = []
  for (let token = ''; ; ) {
    const { body } = await service.platform.get(`${PATH}?limit=2${token}`)
    seen.push(...body.domains.map((one: any) => one.domain))
    if (body.nextPageToken === undefined) break
    token = `&pageToken=${body.nextPageToken}`
  }
  expect(seen).toContain('taken.test')
  expect(new Set(seen).size).toBe(seen.length)
})
