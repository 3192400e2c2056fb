import * as oidc from 'openid-client'
import type { Config } from '../../shared/config/config.ts'
import { companyPage } from '../../shared/people/companyPage.ts'
import {
  type CompanySignIn,
  endSignIn,
  findCompanySignIn,
  openSignIn,
  queueSignIn,
} from '../../sql/account/people/companySignIns.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'

export type CompanyOptions = {
  company: Config['company']
  /** Holds the public address of the service, to which the identity provider redirects the browser. */
  baseUrl: string
}

const TIMEOUT_S = 5
/**
 * Sets the milliseconds for which the service keeps the identity provider's discovery document and keys in memory.
 * Afterwards the service fetches them again.
 */
const FRESH_MS = 10 * 60_000

/**
 * Performs both steps of a sign-in at the identity provider of the company (OpenID Connect Core §3.1). The first step
 * makes the URL of the identity provider’s sign-in page. The second step exchanges the authorization code after the
 * browser has returned from the identity provider. The operator chooses the identity provider, so the provider may be
 * at a private address.
 */
export function createSignInCompany(
  { pool, outcomes, lanes }: PoolContext,
  { company, baseUrl }: CompanyOptions,
): Task<'sign_in_company'> {
  let known: { at: number; provider: Promise<oidc.Configuration> } | null = null
  const provider = () => {
    if (known === null || Date.now() - known.at > FRESH_MS) {
      const reading = discover(company)
      known = { at: Date.now(), provider: reading }
      reading.catch(() => {
        known = null
      })
    }
    return known.provider
  }
  return async ({ signInId }) => {
    const signIn = await patiently(() => findCompanySignIn(pool, signInId))
    if (signIn?.state !== 'asked' && signIn?.state !== 'answered') return
    // Strangers begin and answer sign-ins, so a lane (queue) limits the job slots that a hanging identity provider
    // occupies. Each of the two steps has its own lane. The first step rarely asks the provider, so a common lane would
    // look fast even if the provider is slow. Each network counts as a separate party, so that the sign-ins of one
    // stranger do not delay those of other networks.
    const lane = `company sign-in:${signIn.state}`
    const turn = await lanes.enter(lane, `company sign-ins of ${signIn.network}`)
    if (!turn.granted) return await patiently(() => queueSignIn(pool, signInId, turn.returnInMs))
    try {
      if (signIn.state === 'asked') {
        const step = await openPage(provider, baseUrl, signInId).catch(faultOf)
        await outcomes.record(() =>
          'fault' in step ? endSignIn(pool, signInId, step) : openSignIn(pool, signInId, step),
        )
      } else {
        const end = await exchange(provider, baseUrl, signIn).catch(faultOf)
        // An authorization code can be exchanged only once. If the outcome of the exchange is not recorded, the person
        // must begin the sign-in again.
        await outcomes.record(() => endSignIn(pool, signInId, end))
      }
    } finally {
      turn.leave()
    }
  }
}

async function discover(company: Config['company']): Promise<oidc.Configuration> {
  if (company === null) throw new Error('OIDC_ISSUER is not set')
  const { issuer, clientId, clientSecret } = company
  const isPlain = issuer.startsWith('http:')
  return await oidc.discovery(
    new URL(issuer),
    clientId,
    undefined,
    clientSecret === null ? oidc.None() : oidc.ClientSecretPost(clientSecret),
    {
      timeout: TIMEOUT_S,
      // The option `enableNonRepudiationChecks` makes the library verify the signature of the ID token. By default, the
      // library trusts TLS instead (OpenID Connect Core §3.1.3.7).
      execute: [oidc.enableNonRepudiationChecks, ...(isPlain ? [oidc.allowInsecureRequests] : [])],
    },
  )
}

async function openPage(
  provider: () => Promise<oidc.Configuration>,
  baseUrl: string,
  signInId: string,
): Promise<{ url: string; nonce: string; verifier: string }> {
  const verifier = oidc.randomPKCECodeVerifier()
  const nonce = oidc.randomNonce()
  const url = oidc.buildAuthorizationUrl(await provider(), {
    redirect_uri: companyPage(baseUrl),
    scope: 'openid',
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state: signInId,
    nonce,
  })
  return { url: url.href, nonce, verifier }
}

async function exchange(
  provider: () => Promise<oidc.Configuration>,
  baseUrl: string,
  { id, nonce, verifier, answer }: CompanySignIn,
): Promise<{ issuer: string; subject: string } | { fault: string }> {
  const back = new URL(`${companyPage(baseUrl)}?${answer ?? ''}`)
  const tokens = await oidc.authorizationCodeGrant(await provider(), back, {
    pkceCodeVerifier: verifier ?? '',
    expectedNonce: nonce ?? '',
    expectedState: id,
    idTokenExpected: true,
  })
  const { iss: issuer, sub: subject } = tokens.claims()!
  return { issuer, subject }
}

/**
 * Returns the reason why the identity provider refused a sign-in, in the identity provider's own words. This reason
 * contains no token and no authorization code.
 */
function faultOf(error: unknown): { fault: string } {
  const { message, cause } = error instanceof Error ? error : { message: '', cause: null }
  const detail = cause instanceof Error ? `${message}: ${cause.message}` : message
  return { fault: detail.slice(0, 300) || 'the identity provider did not answer' }
}
