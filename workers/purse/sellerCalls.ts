/**
 * Sends requests to sellers over HTTP or MCP. Fills in secrets from the vault in each request, and masks secrets in
 * each response.
 */
import type { PaymentHeader } from '../../shared/purse/paymentHeader.ts'
import type { PurchaseAnswer } from '../../shared/purse/purchaseAnswer.ts'
import { effectiveBounds, OutOfBoundsError } from '../../shared/vault/bounds/bounds.ts'
import { CredentialInputError } from '../../shared/vault/credential.ts'
import { Masker } from '../../shared/vault/maskSecrets.ts'
import {
  checkUseRequest,
  fillRequest,
  toolCall,
  type UseRequest,
} from '../../shared/vault/useRequest.ts'
import type { Pool } from '../../sql/db.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import type { DuePurchase } from '../../sql/purse/purchases/purchaseSteps.ts'
import { readForUse } from '../../sql/vault/credentialReads.ts'
import { type Exchange, guardedExchange, type OutboundPolicy } from '../http/guardedRequest.ts'
import { createAnswerMasker } from '../vault/answerMasker.ts'
import { ANSWER_BYTES_MAX, type ReceivedAnswer } from '../vault/maskedAnswer.ts'
import { mcpExchange } from './mcpExchange.ts'
import { plainAnswer } from './plainAnswer.ts'

/**
 * Limits in milliseconds how long the service waits for a seller, who may settle a payment on the chain before the
 * response. After this time, the purchase request is repeated.
 */
const TIMEOUT_MS = 30_000

/**
 * Sets the minimum length of a secret that the service searches for in the hexadecimal texts of a seller. An address may contain a shorter secret by chance.
 */
const SEARCHED_MIN_LENGTH = 8

type Buyer = Pick<DuePurchase, 'projectId' | 'credentialName' | 'tool'>

/**
 * Describes the result of calling a seller: the HTTP exchange, the called URL and the secrets in its request. If the
 * vault did not fill in the secrets, no call was made, and the result holds the reason.
 */
export type Call =
  | { kind: 'made'; exchange: Exchange; url: string; secrets: readonly string[] }
  | { kind: 'unfilled'; detail: string }

export type SellerCalls = {
  /**
   * Returns how many milliseconds the project must wait until it may use the vault again. The number 0 means that the
   * project may use the vault now.
   */
  delayMs(due: Buyer): number
  call(due: Buyer, request: UseRequest, payment: PaymentHeader | null): Promise<Call>
  /** Tells whether a lower-case hexadecimal text of the seller contains a secret of the request. */
  reveals(secrets: readonly string[], text: string): boolean
  /** Returns the response of the seller with all secrets masked, so that the agent may see the response. */
  masked(due: Buyer, answer: ReceivedAnswer, secrets: readonly string[]): Promise<PurchaseAnswer>
}

export function createSellerCalls(
  pool: Pool,
  {
    keyring: source,
    policy,
  }: {
    keyring: KeyringSource
    policy: OutboundPolicy & { ca?: string }
  },
): SellerCalls {
  const masker = createAnswerMasker()

  /**
   * Returns the HTTP request of a purchase with its secrets filled in. The request is checked once more, because the
   * credential may have changed since the service accepted the purchase. The field `endsSession` tells whether the
   * secrets may also be in a DELETE request, which ends an MCP session.
   */
  async function fill({ projectId, credentialName: name, tool }: Buyer, request: UseRequest) {
    if (name === null) return { ...request, secrets: [], endsSession: true }
    const credential = await readForUse(pool, { projectId, name, keyring: await source(pool) })
    if (credential === null) return 'the credential is gone or has expired'
    try {
      checkUseRequest(request, { allowLoopback: policy.allowPrivate })
      const filled = fillRequest(
        tool === null ? request : toolCall(request),
        credential,
        Date.now(),
      )
      const endsSession = effectiveBounds(credential).allowedMethods.includes('DELETE')
      return { ...filled, endsSession }
    } catch (error) {
      if (error instanceof OutOfBoundsError) return `the credential ${error.message}`
      if (error instanceof CredentialInputError) return error.message
      throw error
    }
  }

  return {
    delayMs: ({ projectId, credentialName }) =>
      credentialName === null ? 0 : masker.delayMs(projectId),
    async call(due, request, payment) {
      const filled = await fill(due, request)
      if (typeof filled === 'string') return { kind: 'unfilled', detail: filled }
      const { secrets, url, method, body, endsSession } = filled
      const shared = { ...policy, url, timeoutMs: TIMEOUT_MS, responseBytesMax: ANSWER_BYTES_MAX }
      if (due.tool !== null) {
        const { tool } = due
        const exchange = await mcpExchange({
          ...shared,
          headers: filled.headers,
          body,
          tool,
          payment,
          endsSession,
        })
        return { kind: 'made', exchange, url, secrets }
      }
      const headers =
        payment === null ? filled.headers : { ...filled.headers, [payment.name]: payment.value }
      const exchange = await guardedExchange({
        ...shared,
        method,
        headers,
        ...(body === null ? {} : { body }),
      })
      return { kind: 'made', exchange, url, secrets }
    },
    reveals(secrets, text) {
      const searched = secrets
        .filter(({ length }) => length >= SEARCHED_MIN_LENGTH)
        .flatMap((secret) => [secret, secret.toLowerCase()])
      return searched.length > 0 && new Masker(searched).text(text) !== text
    },
    masked: ({ projectId }, answer, secrets) =>
      secrets.length === 0 ? plainAnswer(answer) : masker.mask(answer, secrets, projectId),
  }
}
