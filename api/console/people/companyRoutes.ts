import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { networkSubject } from '../../../shared/http/networkSubject.ts'
import { writeAudit } from '../../../sql/account/audit.ts'
import {
  answerSignIn,
  beginCompanySignIn,
  type CompanySignIn,
  connectAccount,
  disconnectAccount,
  findAccount,
  findOwnSignIn,
  takeSignIn,
} from '../../../sql/account/people/companySignIns.ts'
import { startSession } from '../../../sql/account/people/consoleSessions.ts'
import { type Queryable, transaction } from '../../../sql/db.ts'
import { stillAdmitted } from '../../account/platformActor.ts'
import { browserHeaders, browserOf, readBrowser } from '../../http/browserCookie.ts'
import { ApiError, badRequest, conflict, notFound } from '../../http/errors.ts'
import { countFailedSignIn } from '../../http/gate.ts'
import { stateOf, widestNetwork } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { organizationActor, refuseOtherSites, sessionOf } from '../access.ts'
import { consoleOperation, openOperation } from '../consoleOperation.ts'
import { limitSignIns } from './limitSignIns.ts'
import { signedIn } from './sessionRoutes.ts'

/**
 * Sets the maximum wait for one step of a sign-in with the company's identity provider, because a step makes two
 * requests, and the provider has five seconds for each.
 */
const WAIT_MS = 12_000
const RETRY_S = 2

const Answer = t.Object({
  query: t.String({ maxLength: 8_000, error: "be the query of the provider's answer" }),
})

/** Serves sign-in with the company's identity provider, and the company account that a person has connected. */
export const companyRoutes = (services: Services) =>
  new Elysia({ prefix: '/console/api' })
    .post('/company-sign-ins', ({ request }) => begin(services, request, null), {
      detail: openOperation({ bodyMaxBytes: 1_024 }),
    })
    .post('/company-sign-ins/answer', ({ request, body }) => signIn(services, request, body), {
      body: Answer,
      detail: openOperation(),
    })
    .get('/company-account', ({ request }) => readAccount(services, request), {
      detail: consoleOperation('viewer'),
    })
    .post(
      '/company-account',
      ({ request }) => begin(services, request, sessionOf(request).person.id),
      { detail: consoleOperation('viewer') },
    )
    .post('/company-account/answer', ({ request, body }) => connect(services, request, body), {
      body: Answer,
      detail: consoleOperation('viewer'),
    })
    .delete('/company-account', ({ request }) => disconnect(services, request), {
      detail: consoleOperation('viewer'),
    })

/** Begins a sign-in with the company's identity provider, and returns the URL of the provider's page. */
async function begin(
  services: Services,
  request: Request,
  personId: string | null,
): Promise<Response> {
  const { pool, config } = services
  const { baseUrl } = config.http
  refuseOtherSites(request, baseUrl, false)
  if (config.company === null) throw notFound('OIDC_ISSUER is not set')
  await limitSignIns(services, request)
  const browser = browserOf(request, baseUrl)
  const network = widestNetwork(request)
  const id = await beginCompanySignIn(pool, { browser, personId, network })
  if (id === null) throw busy()
  const opened = await reach(services, { id, browser, state: 'open' })
  if (opened.state === 'failed') throw refused(opened)
  return Response.json({ url: opened.url }, { headers: browserHeaders(baseUrl, browser) })
}

/**
 * Waits until a sign-in with the identity provider has reached the given state or has failed.
 * @throws {ApiError} 409 if the sign-in is over, 503 if the worker needs too long.
 */
async function reach(
  { pool, waiters }: Services,
  { id, browser, state }: { id: string; browser: string; state: 'open' | 'done' },
): Promise<CompanySignIn> {
  const watch = waiters.watch(id)
  const deadlineMs = performance.now() + WAIT_MS
  try {
    for (;;) {
      const found = await findOwnSignIn(pool, id, browser)
      if (found === null) throw conflict(OVER)
      if (found.state === state || found.state === 'failed') return found
      if (!(await watch.changed(deadlineMs))) throw busy()
    }
  } finally {
    watch.close()
  }
}

const SIGN_IN_ID = /^csi_[0-9a-f]{24}$/
const OVER = 'This sign-in is over: begin again'
const busy = () =>
  new ApiError(503, 'unavailable', 'The identity provider cannot be asked now: try again', {
    'retry-after': String(RETRY_S),
  })

const refused = ({ fault }: CompanySignIn) => badRequest(`The identity provider refused: ${fault}`)

/**
 * Accepts the redirect with which the identity provider answers a sign-in. The function then waits until a worker has
 * exchanged the authorization code for the person's identity.
 * @returns the sign-in, which is done or has failed.
 */
async function finish(
  services: Services,
  request: Request,
  query: string,
  personId: string | null,
): Promise<CompanySignIn> {
  const { pool, config } = services
  if (config.company === null) throw notFound('OIDC_ISSUER is not set')
  const browser = readBrowser(request, config.http.baseUrl)
  const answer = query.replace(/^\?/, '')
  const id = new URLSearchParams(answer).get('state') ?? ''
  if (!SIGN_IN_ID.test(id)) throw conflict(OVER)
  // The `state` in the identity provider's redirect must belong to a sign-in of the same browser. Otherwise an attacker
  // could send a redirect of their own sign-in to another person.
  const open = browser === null ? null : await findOwnSignIn(pool, id, browser)
  if (browser === null || open === null || open.personId !== personId) throw conflict(OVER)
  // A browser may repeat its request after a 503. The service stores only the first response of the identity provider,
  // so the repeated request just waits for the result of this response.
  await answerSignIn(pool, id, answer)
  return await reach(services, { id, browser, state: 'done' })
}

async function signIn(
  services: Services,
  request: Request,
  { query }: { query: string },
): Promise<Response> {
  refuseOtherSites(request, services.config.http.baseUrl, false)
  await limitSignIns(services, request)
  const { clientAddress } = stateOf(request)
  const ended = await finish(services, request, query, null)
  if (ended.state === 'failed') {
    await countFailedSignIn(services, networkSubject(clientAddress))
    throw refused(ended)
  }
  const agent = request.headers.get('user-agent')
  const answer = await signedIn(services, request, async (db) => {
    const taken = await takeSignIn(db, ended.id)
    if (taken === 'taken') throw conflict(OVER)
    if (taken === 'nobody') return null
    const { personId, ...proof } = taken
    return startSession(db, { personId, method: 'company', agent, proof })
  })
  if (answer !== null) return answer
  await countFailedSignIn(services, networkSubject(clientAddress))
  throw new ApiError(
    401,
    'unauthorized',
    'Nobody here has connected this account. Sign in by mail, then connect it under Your sign-in',
  )
}

async function connect(
  services: Services,
  request: Request,
  { query }: { query: string },
): Promise<Response> {
  const { person } = sessionOf(request)
  const ended = await finish(services, request, query, person.id)
  if (ended.state === 'failed') throw refused(ended)
  const connected = await connectAccount(services.pool, ended.id, person.id, (db) =>
    record(db, request, 'company_account.connect'),
  )
  if (connected === 'taken') throw conflict(OVER)
  if (connected === 'of_other') throw conflict('Somebody else has connected this account')
  return new Response(null, { status: 204 })
}

async function readAccount({ pool }: Services, request: Request) {
  return { issuer: await findAccount(pool, sessionOf(request).person.id) }
}

async function disconnect(services: Services, request: Request): Promise<Response> {
  const { person } = sessionOf(request)
  await transaction(services.pool, async (db) => {
    if (!(await disconnectAccount(db, person.id))) throw notFound('You have connected no account')
    await record(db, request, 'company_account.disconnect')
  })
  return new Response(null, { status: 204 })
}

/**
 * Records a change of a person's company account in the transaction of the change. The function first checks the session
 * once more. The transaction may have waited for a change of the person that ended the session, and is then undone.
 * @throws {ApiError} 401 for an ended session.
 */
async function record(db: Queryable, request: Request, action: string): Promise<void> {
  await stillAdmitted(request)()
  await writeAudit(db, organizationActor(request), {
    action,
    subject: sessionOf(request).person.id,
    outcome: 'ok',
  })
}
