/** Handles the route POST /v0/vault/{name}/sign, which returns signatures and never the signing key. */

import { checkBounds, effectiveBounds, OutOfBoundsError } from '../../shared/vault/bounds/bounds.ts'
import { CredentialInputError, checkName } from '../../shared/vault/credential.ts'
import {
  type Encoding,
  HMAC_KEY_MIN_BYTES,
  hmacSha256,
  readBytes,
  readEd25519Key,
  signEd25519,
  signingField,
} from '../../shared/vault/signText.ts'
import { signAwsRequest } from '../../shared/vault/sigV4.ts'
import { checkUseRequest } from '../../shared/vault/useRequest.ts'
import { setOutcome } from '../../sql/account/audit.ts'
import { type OpenCredential, openCredential, recordUsed } from '../../sql/vault/credentialReads.ts'
import { badRequest } from '../http/errors.ts'
import type { Caller } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { failure, orBadRequest, requireScope } from './vault.ts'
import { type GivenRequest, outOfBounds, readRequest } from './vaultUse.ts'

export const SIGN_ALGORITHMS = ['hmac-sha256', 'ed25519', 'aws-sigv4'] as const

export type SignInput = {
  algorithm: (typeof SIGN_ALGORITHMS)[number]
  field?: string
  keyEncoding?: Encoding
  text?: string
  textEncoding?: Encoding
  request?: GivenRequest
  region?: string
  service?: string
}

const WORD = /^[a-z0-9-]{1,64}$/

export async function signWithCredential(
  { pool, keyring }: Pick<Services, 'pool' | 'keyring'>,
  caller: Caller,
  name: string,
  input: SignInput,
) {
  requireScope(caller, 'vault:use')
  orBadRequest(() => checkName(name))
  const opened = await openCredential(pool, {
    actor: caller,
    keyring: await keyring(pool),
    name,
    action: 'vault.sign',
    isOwner: caller.isOwner,
    detail: input.algorithm,
  })
  if (opened.kind !== 'ok') throw failure(name, opened, '')
  const { auditRow } = opened
  const signed = await signOrRefuse(opened.credential)
  await recordUsed(pool, caller.projectId, name)
  return signed

  async function signOrRefuse(credential: OpenCredential) {
    try {
      return sign(credential, input)
    } catch (error) {
      await setOutcome(pool, auditRow, 'refused')
      if (error instanceof OutOfBoundsError) throw outOfBounds(name, error)
      throw error instanceof CredentialInputError ? badRequest(error.message) : error
    }
  }
}

function sign(credential: OpenCredential, input: SignInput) {
  if (input.algorithm === 'aws-sigv4') return signRequest(credential, input)
  if (input.text === undefined) {
    throw badRequest(`text must be present with the algorithm ${input.algorithm}`)
  }
  const message = readBytes('text', input.text, input.textEncoding ?? 'utf8')
  if (input.algorithm === 'hmac-sha256') {
    const text = signingField('hmac', credential, input.field)
    const key = readBytes('The value of field', text, input.keyEncoding ?? 'utf8')
    if (key.length < HMAC_KEY_MIN_BYTES) {
      throw badRequest(`field must hold a key of at least ${HMAC_KEY_MIN_BYTES} bytes`)
    }
    return shown(input, hmacSha256(key, message))
  }
  const key = readEd25519Key(signingField('ed25519', credential, input.field))
  const { signature, publicKey } = signEd25519(key, message)
  return { ...shown(input, signature), publicKeyHex: publicKey.toString('hex') }
}

const shown = ({ algorithm }: SignInput, signature: Buffer) => ({
  algorithm,
  signatureHex: signature.toString('hex'),
  signatureBase64: signature.toString('base64'),
})

function signRequest(credential: OpenCredential, input: SignInput) {
  const { algorithm, region, service, request: given } = input
  const { data } = credential
  if (given === undefined) throw badRequest('request must be present with the algorithm aws-sigv4')
  for (const [field, value] of Object.entries({ region, service })) {
    if (value === undefined || !WORD.test(value)) {
      throw badRequest(`${field} must be 1 to 64 lower-case letters, digits and hyphens`)
    }
  }
  const { accessKeyId, secretAccessKey, sessionToken } = data
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') {
    throw badRequest('The credential must hold data.accessKeyId and data.secretAccessKey')
  }
  if (given.body !== undefined && typeof given.body !== 'string') {
    throw badRequest('request.body must be a string: its bytes are signed')
  }
  const { method, url, headers, body: text } = readRequest(given)
  const body = text ?? ''
  const request = { method, url, headers, body }
  checkUseRequest({ ...request, body: body === '' ? null : body }, { allowLoopback: false })
  if ([url, body, ...Object.values(headers)].some((text) => text.includes('{{'))) {
    throw badRequest('request must hold no placeholder: its bytes are signed')
  }
  checkBounds(effectiveBounds(credential), { method, url })
  const token = typeof sessionToken === 'string' ? sessionToken : null
  const signed = signAwsRequest(
    { ...request, region: region!, service: service! },
    { accessKeyId, secretAccessKey, sessionToken: token },
    new Date(),
  )
  // The session token of a credential is a secret too, so the response holds only the placeholder `{{sessionToken}}`.
  // When the caller uses the credential for a request, the service replaces this placeholder by the token.
  const hidden = token === null ? {} : { 'x-amz-security-token': '{{sessionToken}}' }
  return { algorithm, headers: { ...signed, ...hidden } }
}
