/** Tests mail between inboxes after the setting MAIL_DOMAIN has changed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { PROJECT_SCOPES } from '../../../../shared/scopes.ts'
import { createProject } from '../../../../sql/account/projects/projects.ts'
import { fakeDns } from '../../../support/mail/fakeDns.ts'
import { sendMail, untilStatus } from '../../../support/mail/outbound.ts'
import { createClient, startTestService, type TestService } from '../../../support/service.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({
    env: { SMTP_RELAY_URL: 'direct' },
    smtp: false,
    dns: fakeDns({
      mx: { 'former.test': [[10, 'mail.test']], 'moved.test': [[10, 'mx.elsewhere.test']] },
    }),
  })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Creates a project whose inbox dates from a former MAIL_DOMAIN. */
async function formerAgent(address: string) {
  const { rawKey } = await createProject(service.database.pool, {
    name: address,
    purpose: 'SELLER',
    emailAddress: address,
    scopes: PROJECT_SCOPES,
  })
  return createClient(service.url, rawKey)
}

const subjectsOf = async (agent: Pick<TestService['platform'], 'get'>) =>
  (await agent.get('/v0/messages')).body.messages.map(({ subject }: any) => subject)

test('mail of an inbox reaches an inbox at a former MAIL_DOMAIN whose MX record still leads to this service', async () => {
  const sender = await service.newAgent()
  const former = await formerAgent('bob@former.test')
  const to = ['bob@former.test', 'Bob+tag@former.test', 'nobody@former.test']
  const { messageId } = await sendMail(sender, { to, subject: 'Hello' })
  await waitFor('the mail', async () => (await subjectsOf(former)).length > 0)
  expect(await subjectsOf(former)).toEqual(['Hello'])
  const { deliveryError } = await untilStatus(sender, messageId, 'failed')
  expect(deliveryError).toBe('nobody@former.test: 550 5.1.1 No such inbox')
})

test('mail to a former MAIL_DOMAIN whose MX record leads elsewhere goes there', async () => {
  const sender = await service.newAgent()
  const former = await formerAgent('bob@moved.test')
  const { messageId } = await sendMail(sender, { to: ['bob@moved.test'] })
  const { deliveryError } = await untilStatus(sender, messageId, 'failed')
  expect(deliveryError).toContain('550 5.4.4 The mail exchangers of the domain have no address')
  expect(await subjectsOf(former)).toEqual([])
})
