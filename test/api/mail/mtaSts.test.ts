/** Tests the MTA-STS policy (RFC 8461) of this service with the requests that mail senders make. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parsePolicy } from 'mailauth/lib/mta-sts'
import { startTestService, type TestService } from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { MTA_STS: 'enforce', MAIL_DOMAIN: 'mail.test', MAIL_HOSTNAME: 'mx.mail.test' },
  })
  await service.database.pool.query(
    `insert into mail_domains (domain, status, token, dkim_selector, dkim_record)
     values ('shop.test', 'verified', 'token', 's', 'r'), ('new.test', 'pending', 'token', 's', 'r')`,
  )
})
afterAll(() => service[Symbol.asyncDispose]())

const fetchPolicy = (host: string, url = service.url) =>
  fetch(`${url}/.well-known/mta-sts.txt`, { headers: { host } })

for (const domain of ['mail.test', 'shop.test']) {
  test(`the host mta-sts.${domain} serves an MTA-STS policy that names the service’s mail host and is valid for a week`, async () => {
    const answer = await fetchPolicy(`mta-sts.${domain}`)
    expect(answer.headers.get('content-type')).toStartWith('text/plain')
    expect(parsePolicy(await answer.text())).toMatchObject({
      version: 'STSv1',
      mode: 'enforce',
      mx: ['mx.mail.test'],
      maxAge: 604_800,
    })
  })
}

for (const host of ['mail.test', 'mta-sts.other.test', 'mta-sts.new.test']) {
  test(`the host ${host} serves no MTA-STS policy`, async () => {
    expect((await fetchPolicy(host)).status).toBe(404)
  })
}

test('without the setting MTA_STS, no domain has an MTA-STS policy', async () => {
  await using plain = await startTestService({ smtp: false, workers: false })
  expect((await fetchPolicy('mta-sts.mail.test', plain.url)).status).toBe(404)
})
