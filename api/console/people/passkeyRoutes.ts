import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { networkSubject } from '../../../shared/http/networkSubject.ts'
import { writeAudit } from '../../../sql/account/audit.ts'
import { startSession } from '../../../sql/account/people/consoleSessions.ts'
import {
  addPasskey,
  listPasskeys,
  type Passkey,
  removePasskey,
} from '../../../sql/account/people/passkeys.ts'
import { type Queryable, transaction } from '../../../sql/db.ts'
import { stillAdmitted } from '../../account/platformActor.ts'
import { browserHeaders, browserOf, readBrowser } from '../../http/browserCookie.ts'
import { ApiError, badRequest, conflict, notFound } from '../../http/errors.ts'
import { countFailedSignIn } from '../../http/gate.ts'
import { stateOf, widestNetwork } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'
import { organizationActor, refuseOtherSites, sessionOf } from '../access.ts'
import { consoleOperation, openOperation } from '../consoleOperation.ts'
import { OneLine } from '../oneLine.ts'
import { limitSignIns } from './limitSignIns.ts'
import {
  authenticate,
  creationOptions,
  PasskeyError,
  relyingParty,
  requestOptions,
  verifyMade,
} from './passkeys.ts'
import { signedIn } from './sessionRoutes.ts'

/**
 * Sets the maximum number of bytes of an authenticator's response. The response is short, because the service requests
 * no attestations.
 */
const RESPONSE_MAX_BYTES = 16_384

const Text = (maxLength: number) => t.String({ maxLength })
const Base64 = (maxLength: number) =>
  t.String({
    maxLength,
    pattern: '^[A-Za-z0-9_-]*$',
    error: `be at most ${maxLength} characters of base64url`,
  })
const Credential = {
  id: Base64(1_364),
  rawId: Base64(1_364),
  type: t.Literal('public-key'),
  authenticatorAttachment: t.Optional(Text(100)),
  clientExtensionResults: t.Object({}, { additionalProperties: true }),
}
const Created = t.Object({
  ...Credential,
  response: t.Object({
    clientDataJSON: Base64(4_096),
    attestationObject: Base64(8_192),
    transports: t.Optional(t.Array(Text(50), { maxItems: 10 })),
  }),
})
const Signed = t.Object({
  ...Credential,
  response: t.Object({
    clientDataJSON: Base64(4_096),
    authenticatorData: Base64(2_048),
    signature: Base64(8_192),
    userHandle: t.Optional(t.Union([Base64(200), t.Null()])),
  }),
})
/** Serves the passkeys of a person, and sign-in with a passkey. */
export const passkeyRoutes = (services: Services) =>
  new Elysia({ prefix: '/console/api' })
    .get('/passkeys', ({ request }) => list(services, request), {
      detail: consoleOperation('viewer'),
    })
    .post('/passkeys/options', ({ request }) => offer(services, request), {
      detail: consoleOperation('viewer'),
    })
    .post('/passkeys', ({ request, body }) => add(services, request, body), {
      body: t.Object({ name: OneLine, response: Created }),
      // The body of a passkey request may have unknown fields, because a browser adds fields of later versions of
      // WebAuthn to the authenticator's response.
      detail: consoleOperation('viewer', { bodyMaxBytes: RESPONSE_MAX_BYTES, openBody: true }),
    })
    .delete('/passkeys/:passkeyId', ({ request, params }) => remove(services, request, params), {
      params: t.Object({ passkeyId: Base64(1_364) }),
      detail: consoleOperation('viewer'),
    })
    .post('/passkey-sessions/options', ({ request }) => challenge(services, request), {
      detail: openOperation({ bodyMaxBytes: 1_024 }),
    })
    .post('/passkey-sessions', ({ request, body }) => signIn(services, request, body), {
      body: t.Object({ response: Signed }),
      detail: openOperation({ bodyMaxBytes: RESPONSE_MAX_BYTES }),
    })

const partyOf = ({ config }: Services) => {
  const party = relyingParty(config.http.baseUrl)
  if (party === null) throw conflict('BASE_URL must hold a name: passkeys need one')
  return party
}

const view = ({ id, createdAt, usedAt, ...passkey }: Passkey) => ({
  ...passkey,
  passkeyId: id,
  createdAt: createdAt.toISOString(),
  usedAt: usedAt?.toISOString() ?? null,
})

async function list({ pool }: Services, request: Request) {
  const passkeys = await listPasskeys(pool, sessionOf(request).person.id)
  return { passkeys: passkeys.map(view) }
}

async function offer(services: Services, request: Request): Promise<Response> {
  const { baseUrl } = services.config.http
  const browser = browserOf(request, baseUrl)
  const { person } = sessionOf(request)
  const network = widestNetwork(request)
  const asked = { person, browser, network }
  const options = await creationOptions(services.pool, partyOf(services), asked)
  return Response.json(options, { headers: browserHeaders(baseUrl, browser) })
}

async function add(
  services: Services,
  request: Request,
  { name, response }: { name: string; response: unknown },
): Promise<Response> {
  const session = sessionOf(request)
  const browser = readBrowser(request, services.config.http.baseUrl)
  if (browser === null) throw badRequest('This browser has not asked for a passkey')
  const made = await verifyMade(services.pool, partyOf(services), {
    person: session.person,
    browser,
    response: response as RegistrationResponseJSON,
  }).catch((error: unknown) => {
    if (error instanceof PasskeyError) throw badRequest(`The passkey is refused: ${error.message}`)
    throw error
  })
  await transaction(services.pool, async (db) => {
    if (!(await addPasskey(db, { ...made, name }))) {
      throw badRequest('The passkey is refused: it is known already, or you have too many')
    }
    await record(db, request, 'passkey.create', made.credentialId)
  })
  return Response.json({ passkeyId: made.credentialId, name }, { status: 201 })
}

async function remove(
  services: Services,
  request: Request,
  { passkeyId }: { passkeyId: string },
): Promise<Response> {
  const { person } = sessionOf(request)
  await transaction(services.pool, async (db) => {
    if (!(await removePasskey(db, person.id, passkeyId))) throw notFound('Passkey not found')
    await record(db, request, 'passkey.delete', passkeyId)
  })
  return new Response(null, { status: 204 })
}

/**
 * Records a change of a person's passkeys in the transaction of the change. The function first checks the session once
 * more. The transaction may have waited for a change of the person that ended the session, and is then undone.
 * @throws {ApiError} 401 for an ended session.
 */
async function record(
  db: Queryable,
  request: Request,
  action: string,
  passkeyId: string,
): Promise<void> {
  await stillAdmitted(request)()
  await writeAudit(db, organizationActor(request), {
    action,
    subject: passkeyId.slice(0, 100),
    outcome: 'ok',
  })
}

async function challenge(services: Services, request: Request): Promise<Response> {
  const { baseUrl } = services.config.http
  refuseOtherSites(request, baseUrl, false)
  await limitSignIns(services, request)
  const browser = browserOf(request, baseUrl)
  const network = widestNetwork(request)
  const options = await requestOptions(services.pool, partyOf(services), { browser, network })
  if (options === null) throw busy()
  return Response.json(options, { headers: browserHeaders(baseUrl, browser) })
}

const busy = () =>
  new ApiError(503, 'unavailable', 'Too many browsers wait for a passkey: try again in a minute', {
    'retry-after': '60',
  })

async function signIn(
  services: Services,
  request: Request,
  { response }: { response: unknown },
): Promise<Response> {
  const { pool, config } = services
  refuseOtherSites(request, config.http.baseUrl, false)
  const browser = readBrowser(request, config.http.baseUrl)
  try {
    if (browser === null) throw new PasskeyError('this browser has not asked for one')
    const signed = response as AuthenticationResponseJSON
    const personId = await authenticate(pool, partyOf(services), { browser, response: signed })
    const agent = request.headers.get('user-agent')
    const proof = { passkeyId: signed.id }
    const answer = await signedIn(services, request, (db) =>
      startSession(db, { personId, method: 'passkey', agent, proof }),
    )
    if (answer === null) throw new PasskeyError('nobody here has it')
    return answer
  } catch (error) {
    if (!(error instanceof PasskeyError)) throw error
    await countFailedSignIn(services, networkSubject(stateOf(request).clientAddress))
    throw new ApiError(401, 'unauthorized', `The passkey is refused: ${error.message}`)
  }
}
