/** Adds passkeys (WebAuthn), and signs people in with a passkey. */
import { isIP } from 'node:net'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import {
  findPasskey,
  listPasskeys,
  recordPasskeyUse,
  type StoredPasskey,
  storeChallenge,
  useChallenge,
} from '../../../sql/account/people/passkeys.ts'
import type { Person } from '../../../sql/account/people/people.ts'
import type { Pool } from '../../../sql/db.ts'

/**
 * Loads the WebAuthn library only when a request needs it, because while it is being loaded, the library parses the
 * certificates of eight vendors, which would delay the start of the service.
 */
const library = () => import('@simplewebauthn/server')

/**
 * Returns the relying party of passkeys, which is the host of the service. Returns `null` if the host is an IP address,
 * because a passkey needs a host name.
 */
export function relyingParty(baseUrl: string): { rpID: string; origin: string } | null {
  const { hostname, origin } = new URL(baseUrl)
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? { rpID: hostname, origin } : null
}

type Party = NonNullable<ReturnType<typeof relyingParty>>

/** Reports why a passkey was refused. */
export class PasskeyError extends Error {}

/** Returns the options to create a passkey for a person. */
export async function creationOptions(
  pool: Pool,
  { rpID }: Party,
  { person, browser, network }: { person: Person; browser: string; network: string },
) {
  const { generateRegistrationOptions } = await library()
  const known = await listPasskeys(pool, person.id)
  const options = await generateRegistrationOptions({
    rpName: 'Purser',
    rpID,
    userID: new TextEncoder().encode(person.id),
    userName: person.email ?? person.name,
    userDisplayName: person.name,
    attestationType: 'none',
    excludeCredentials: known.map(({ id }) => ({ id })),
    // A passkey is the only sign-in factor, so the device must verify the person by a fingerprint or a PIN.
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
  const { challenge } = options
  await storeChallenge(pool, { challenge, browser, personId: person.id, network })
  return options
}

/** Checks a passkey that a browser created. @throws {PasskeyError} if the passkey is refused. */
export async function verifyMade(
  pool: Pool,
  { rpID, origin }: Party,
  {
    person,
    browser,
    response,
  }: { person: Person; browser: string; response: RegistrationResponseJSON },
): Promise<StoredPasskey> {
  const { verifyRegistrationResponse } = await library()
  const challenge = challengeOf(response.response.clientDataJSON)
  const isAsked = await useChallenge(pool, { challenge, browser, personId: person.id })
  if (!isAsked) throw new PasskeyError(STALE)
  const verified = await verifyRegistrationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpID,
    requireUserVerification: true,
  }).catch(refuse)
  if (!verified.verified) throw new PasskeyError('its signature is wrong')
  const { credential } = verified.registrationInfo
  return {
    credentialId: credential.id,
    personId: person.id,
    publicKey: Buffer.from(credential.publicKey),
    counter: credential.counter,
    transports: credential.transports ?? [],
  }
}

/**
 * Returns the options to sign in with any passkey of this service.
 * @returns null if too many people who are not signed in have asked for these options.
 */
export async function requestOptions(
  pool: Pool,
  { rpID }: Party,
  { browser, network }: { browser: string; network: string },
) {
  const { generateAuthenticationOptions } = await library()
  const options = await generateAuthenticationOptions({ rpID, userVerification: 'required' })
  const { challenge } = options
  return (await storeChallenge(pool, { challenge, browser, personId: null, network }))
    ? options
    : null
}

/**
 * Checks the signature that a passkey makes when it signs a person in. @returns the id of the person who owns the
 * passkey.
 * @throws {PasskeyError} if the passkey is refused.
 */
export async function authenticate(
  pool: Pool,
  { rpID, origin }: Party,
  { browser, response }: { browser: string; response: AuthenticationResponseJSON },
): Promise<string> {
  const { verifyAuthenticationResponse } = await library()
  const passkey = await findPasskey(pool, response.id)
  if (passkey === null) throw new PasskeyError('nobody here has it')
  const { userHandle } = response.response
  // The response of a passkey names the passkey's owner. This must be the person for whom the passkey is stored
  // (WebAuthn §7.2 step 6).
  if (userHandle != null && Buffer.from(userHandle, 'base64url').toString() !== passkey.personId) {
    throw new PasskeyError('it is somebody else’s')
  }
  const challenge = challengeOf(response.response.clientDataJSON)
  const isAsked = await useChallenge(pool, { challenge, browser, personId: null })
  if (!isAsked) throw new PasskeyError(STALE)
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpID,
    credential: {
      id: passkey.credentialId,
      publicKey: new Uint8Array(passkey.publicKey),
      counter: passkey.counter,
    },
    requireUserVerification: true,
  }).catch(refuse)
  if (!verified) throw new PasskeyError('its signature is wrong')
  const { credentialId, counter } = passkey
  const after = authenticationInfo.newCounter
  if (!(await recordPasskeyUse(pool, { credentialId, before: counter, after }))) {
    throw new PasskeyError('it was used at the same time')
  }
  return passkey.personId
}

const STALE = 'this browser did not ask for it within five minutes'

/**
 * Returns the challenge that the browser signed (WebAuthn §5.8.1). @throws {PasskeyError} if the response has no
 * challenge.
 */
function challengeOf(clientDataJSON: string): string {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString('utf8'))
    if (typeof challenge === 'string' && challenge.length <= 200) return challenge
  } catch {
    // The bytes of the passkey's response may come from anybody. Therefore a parse error is no fault of the service,
    // and the passkey is refused.
  }
  throw new PasskeyError('its clientDataJSON holds no challenge')
}

/**
 * Turns an error of the WebAuthn library into a PasskeyError, because the library throws a plain error for every fault
 * in an authenticator's response.
 */
function refuse(error: unknown): never {
  throw new PasskeyError(error instanceof Error ? error.message.slice(0, 200) : 'it is malformed')
}
