import { type Static, Type as t } from '@sinclair/typebox'
import type { Config } from '../../../shared/config/config.ts'
import { outboundUrlFault } from '../../../shared/http/outboundUrl.ts'
import { cutDescription, DESCRIPTION_MAX_LENGTH } from '../../../shared/till/description.ts'
import { DEVNET_NETWORK } from '../../../shared/till/devnetAccounts.ts'
import {
  isMcpTool,
  parsePaidResource,
  parseResourceUrl,
  type ResourceUrl,
  ResourceUrlError,
} from '../../../shared/till/resourceUrl.ts'
import {
  type NetworkName,
  parseUsdc,
  USDC_AMOUNT_PATTERN,
  UsdcAmountError,
  usdcNetworkOf,
} from '../../../shared/till/usdc.ts'
import {
  ENDPOINTS_MAX,
  type EndpointChange,
  SecretWithoutWebhookError,
  TooManyEndpointsError,
} from '../../../sql/till/endpoints/endpointChanges.ts'
import { readChainStatus } from '../../../sql/till/watch/chainStatus.ts'
import { badRequest } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'
import { chainUnknown } from '../payments/offer.ts'
import { refuseDust } from '../payments/settlementLimits.ts'

const URL_MAX_LENGTH = 2_048
const SECRET_MIN_LENGTH = 16
const SECRET_MAX_LENGTH = 256

export const UrlPattern = t.String({
  minLength: 1,
  maxLength: URL_MAX_LENGTH,
  description:
    'Give the full URL that a payer calls, or mcp://tool/NAME for an MCP tool. The query and the fragment are dropped, and the host is lower-cased.',
})
export const PriceUsdc = t.String({
  maxLength: 64,
  pattern: USDC_AMOUNT_PATTERN.source,
  error: 'be a decimal USDC string with at most 6 decimals, such as "0.01"',
})
const Network = t.String({
  maxLength: 64,
  description:
    'The service is connected to this chain, which is also the default: base or eip155:8453, base-sepolia or eip155:84532.',
})
const Description = t.Union([t.String(), t.Null()], {
  description: `The text is cut after ${DESCRIPTION_MAX_LENGTH} characters.`,
})
const WebhookUrl = t.Union([t.String({ minLength: 1, maxLength: URL_MAX_LENGTH }), t.Null()], {
  error: `be a URL of at most ${URL_MAX_LENGTH} characters, or null to remove the webhook`,
})
const WebhookSecret = t.String({
  pattern: `^[\\x21-\\x7e]{${SECRET_MIN_LENGTH},${SECRET_MAX_LENGTH}}$`,
  error: `be ${SECRET_MIN_LENGTH} to ${SECRET_MAX_LENGTH} visible ASCII characters`,
})

const Discoverable = t.Boolean({
  description:
    'True shows the endpoint in /v0/x402/discovery once the endpoint is verified. The default is false.',
})

const Active = t.Boolean({
  description:
    'False pauses the endpoint, so that it gets no new challenges. Payments for earlier challenges are still redeemed.',
})

/** Reads the field `urlPattern` of a request. @throws {ApiError} 400 for an invalid or forbidden URL. */
export function readUrlPattern(text: string, allowPrivate: boolean): ResourceUrl {
  try {
    const resource = parsePaidResource(text)
    if (!isMcpTool(resource.url)) refuseFault('urlPattern', resource.url, allowPrivate)
    return resource
  } catch (error) {
    if (!(error instanceof ResourceUrlError)) throw error
    throw badRequest(`urlPattern ${error.message}`)
  }
}

/**
 * Reads the URL of a webhook and returns its normal form. The function removes the fragment, because HTTP clients never
 * send it.
 * @throws {ApiError} 400 for an invalid or forbidden URL.
 */
export function readOutboundUrl(field: string, text: string, allowPrivate: boolean): string {
  try {
    parseResourceUrl(text)
  } catch (error) {
    if (!(error instanceof ResourceUrlError)) throw error
    throw badRequest(`${field} ${error.message}`)
  }
  refuseFault(field, text, allowPrivate)
  const url = new URL(text)
  url.hash = ''
  if (url.href.length > URL_MAX_LENGTH) {
    throw badRequest(`${field} must be at most ${URL_MAX_LENGTH} characters`)
  }
  return url.href
}

function refuseFault(field: string, url: string, allowPrivate: boolean): void {
  const fault = outboundUrlFault(url, allowPrivate)
  if (fault === null) return
  throw badRequest(`${field} must be reachable from the public internet: ${fault}`)
}

/**
 * Converts the decimal price `priceUsdc` to atomic units of USDC. @throws {ApiError} 400 for an invalid or too low
 * price.
 */
export function readPrice(amount: string, config: Pick<Config, 'minPriceAtomic'>): bigint {
  try {
    return refuseDust('priceUsdc', parseUsdc(amount), config)
  } catch (error) {
    if (!(error instanceof UsdcAmountError)) throw error
    throw badRequest(`priceUsdc${error.message.replace(/^amount/, '')}`)
  }
}

/**
 * Returns the blockchain on which buyers pay the prices in USDC: the chain to which the payment workers are connected.
 * Before a payment worker has reported its chain, this is the devnet if the devnet is on.
 * @throws {ApiError} 503 before any payment worker has reported its chain.
 */
export async function serviceNetwork({ pool, config }: Services): Promise<NetworkName> {
  const status = await readChainStatus(pool)
  if (status?.network) return status.network
  if (config.chain.embeddedDevnet) return DEVNET_NETWORK
  throw chainUnknown()
}

/**
 * Reads the field `network`, which must be absent or name the blockchain of the service. @throws {ApiError} 400 for any
 * other chain.
 */
export function readNetwork(network: string | undefined, own: string): string {
  if (network === undefined || usdcNetworkOf(network)?.network === own) return own
  const known = usdcNetworkOf(network) === undefined ? 'unknown' : 'not the chain of this service'
  throw badRequest(`network must be "${own}" or left out: "${network}" is ${known}`)
}

/** Describes the fields that both the registration and the change of an endpoint have. */
export const ENDPOINT_FIELDS = {
  network: t.Optional(Network),
  description: t.Optional(Description),
  webhookUrl: t.Optional(WebhookUrl),
  webhookSecret: t.Optional(WebhookSecret),
  discoverable: t.Optional(Discoverable),
  active: t.Optional(Active),
}
const Body = t.Object({ priceUsdc: t.Optional(PriceUsdc), ...ENDPOINT_FIELDS })

/**
 * Reads the fields of a changed endpoint, except those for the public list of paid resources. The result lacks the
 * fields that the request body lacks.
 * @throws {ApiError} 400 with the name of the invalid field.
 */
export async function readChange(
  services: Services,
  body: Static<typeof Body>,
): Promise<EndpointChange> {
  const { config } = services
  const { priceUsdc, network, description, webhookUrl, webhookSecret, discoverable, active } = body
  return {
    ...(priceUsdc === undefined ? {} : { priceAtomic: readPrice(priceUsdc, config) }),
    ...(network === undefined
      ? {}
      : { network: readNetwork(network, await serviceNetwork(services)) }),
    ...(description === undefined
      ? {}
      : { description: description === null ? null : cutDescription(description) }),
    ...(webhookUrl === undefined
      ? {}
      : {
          webhookUrl:
            webhookUrl === null
              ? null
              : readOutboundUrl('webhookUrl', webhookUrl, config.allowPrivateNetworks),
        }),
    ...(webhookSecret === undefined ? {} : { webhookSecret }),
    ...(discoverable === undefined ? {} : { discoverable }),
    ...(active === undefined ? {} : { active }),
  }
}

/**
 * Runs a change of a seller's endpoint, and turns the errors of this change into API errors. @throws {ApiError} 400 for
 * an invalid change.
 */
export async function orBadRequest<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SecretWithoutWebhookError) {
      throw badRequest('webhookSecret must come with a webhookUrl')
    }
    if (error instanceof TooManyEndpointsError) {
      throw badRequest(`A project must have at most ${ENDPOINTS_MAX} endpoints`)
    }
    throw error
  }
}
