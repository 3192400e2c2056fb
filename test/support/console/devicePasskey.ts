/** Makes passkeys as a device does (WebAuthn Level 2), so that a test can send any response to the service. */
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

const bytes = (...parts: (number | string | Uint8Array)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : toBuffer(part))),
  )
const toBuffer = (part: number | Uint8Array) =>
  Buffer.from(typeof part === 'number' ? [part] : part)
const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest()

/** Holds the flags of authenticator data (WebAuthn §6.1): the user is present and verified. */
const USER_VERIFIED = 0x05
const WITH_CREDENTIAL = 0x40

/** Makes a device with one ES256 passkey for the site with this origin. */
export function newDevicePasskey(origin: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x, y } = publicKey.export({ format: 'jwk' })
  const coordinates = [x, y].map((coordinate) => Buffer.from(coordinate!, 'base64url'))
  // Writes the CBOR of the COSE_Key {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
  const head = [0xa5, 1, 2, 3, 0x26, 0x20, 1]
  const coseKey = bytes(...head, 0x21, 0x58, 32, coordinates[0]!, 0x22, 0x58, 32, coordinates[1]!)
  const id = randomBytes(16)
  const party = sha256(new URL(origin).hostname)

  const clientData = (type: string, challenge: unknown) =>
    bytes(JSON.stringify({ type, challenge, origin, crossOrigin: false }))
  const credential = (response: Record<string, Uint8Array>) => ({
    id: id.toString('base64url'),
    rawId: id.toString('base64url'),
    type: 'public-key',
    clientExtensionResults: {},
    response: Object.fromEntries(
      Object.entries(response).map(([name, value]) => [
        name,
        Buffer.from(value).toString('base64url'),
      ]),
    ),
  })

  return {
    /** Responds to a request to create the passkey. A forged response has a wrong attestation signature. */
    created(challenge: unknown, { isForged = false } = {}) {
      const [aaguid, counter] = [Buffer.alloc(16), Buffer.alloc(4)]
      const flags = USER_VERIFIED | WITH_CREDENTIAL
      const authData = bytes(party, flags, counter, aaguid, 0, id.length, id, coseKey)
      const wrong = sign('sha256', randomBytes(32), privateKey)
      // Writes the CBOR of {fmt, attStmt, authData}.
      const statement = isForged
        ? bytes('fpacked', 'gattStmt', 0xa2, 'calg', 0x26, 'csig', 0x58, wrong.length, wrong)
        : bytes('dnone', 'gattStmt', 0xa0)
      return credential({
        clientDataJSON: clientData('webauthn.create', challenge),
        attestationObject: bytes(
          0xa3,
          'cfmt',
          statement,
          'hauthData',
          0x58,
          authData.length,
          authData,
        ),
      })
    },

    /** Responds to a request to sign in. A forged response has a wrong signature. */
    signed(
      challenge: unknown,
      {
        counter = 0,
        isForged = false,
        owner = '',
      }: { counter?: number; isForged?: boolean; owner?: string } = {},
    ) {
      const count = Buffer.alloc(4)
      count.writeUInt32BE(counter)
      const authenticatorData = bytes(party, USER_VERIFIED, count)
      const clientDataJSON = clientData('webauthn.get', challenge)
      const signedData = isForged
        ? randomBytes(32)
        : bytes(authenticatorData, sha256(clientDataJSON))
      const signature = sign('sha256', signedData, privateKey)
      return credential({
        ...{ clientDataJSON, authenticatorData, signature },
        ...(owner === '' ? {} : { userHandle: bytes(owner) }),
      })
    },
  }
}
