import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { addressKey, parseAddress } from '../../../shared/mail/address.ts'
import { askSignInMail } from '../../../sql/account/people/signInMails.ts'
import { browserHeaders, browserOf, readProof } from '../../http/browserCookie.ts'
import { badRequest } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'
import { refuseOtherSites } from '../access.ts'
import { openOperation } from '../consoleOperation.ts'
import { limitSignIns } from './limitSignIns.ts'

const Body = t.Object({
  email: t.String({ minLength: 3, maxLength: 320, error: 'be one email address' }),
})

/**
 * Serves the route that sends a person a sign-in link by mail. Every mail address gets the same response. Otherwise the
 * response would reveal whether a person with this address exists.
 */
export const signInMailRoutes = (services: Services) =>
  new Elysia().post(
    '/console/api/sign-in-mails',
    ({ request, body }) => ask(services, request, body.email),
    { body: Body, detail: openOperation({ bodyMaxBytes: 1_024 }) },
  )

async function ask(services: Services, request: Request, given: string): Promise<Response> {
  const { pool, config, browserProofs } = services
  const { baseUrl } = config.http
  refuseOtherSites(request, baseUrl, false)
  await limitSignIns(services, request)
  const address = parseAddress(given)
  if (address === null) throw badRequest('email must be one email address, such as ada@example.com')
  const browser = browserOf(request, baseUrl)
  const email = addressKey(address)
  const isKnown = browserProofs.isOf(email, readProof(request, baseUrl) ?? '')
  await askSignInMail(pool, { email, browser, isKnown })
  return Response.json(
    { message: 'If this address belongs to somebody here, a link is on its way' },
    { status: 202, headers: browserHeaders(baseUrl, browser) },
  )
}
