import { Type as t } from '@sinclair/typebox'
import {
  BAZAAR,
  bazaarOf,
  outputSchemaV1,
  serviceWords,
} from '../../../shared/till/bazaar/metadata.ts'
import { isMcpTool } from '../../../shared/till/resourceUrl.ts'
import { buildChallenge } from '../../../shared/till/x402.ts'
import { toRequirementV2 } from '../../../shared/till/x402v2.ts'
import type { DiscoveredEndpoint } from '../../../sql/till/endpoints/discovery.ts'
import { Time } from '../../http/operation.ts'
import { requirementOf } from '../payments/challenge.ts'

/** Describes a paid resource in the public list of paid resources. */
export const Item = t.Object({
  resource: t.String({ description: 'The URL to call; of an MCP tool that of its server.' }),
  type: t.Union([t.Literal('http'), t.Literal('mcp')]),
  x402Version: t.Union([t.Literal(1), t.Literal(2)], {
    description: 'The newest version of its challenge, and the form of accepts.',
  }),
  accepts: t.Array(t.Object({}, { additionalProperties: true })),
  lastUpdated: Time,
  description: t.Optional(t.String()),
  serviceName: t.Optional(t.String()),
  tags: t.Optional(t.Array(t.String())),
  iconUrl: t.Optional(t.String()),
  extensions: t.Optional(
    t.Object(
      {},
      { additionalProperties: true, description: 'bazaar: how it is called, and what it answers.' },
    ),
  ),
})

export const EXAMPLE_ITEM = {
  resource: 'https://api.example.com/weather',
  type: 'http',
  x402Version: 2,
  accepts: [
    {
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '10000',
      asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      payTo: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
      maxTimeoutSeconds: 120,
      extra: { name: 'USDC', version: '2' },
    },
  ],
  lastUpdated: '2026-01-05T09:30:01.000Z',
  description: 'Weather of today',
  tags: ['weather'],
}

export function toItem({
  url,
  priceAtomic,
  network,
  payTo,
  description,
  ...seen
}: DiscoveredEndpoint) {
  const { metadata } = seen
  const requirement = requirementOf(
    buildChallenge({
      network,
      amountAtomic: priceAtomic,
      resource: url,
      payTo,
      description: description ?? undefined,
      outputSchema: outputSchemaV1(metadata, true),
    }),
  )
  const isMcp = isMcpTool(url)
  const isV2 = isMcp || seen.versions.includes(2)
  const bazaar = bazaarOf(metadata, url) ?? metadata.bazaar ?? null
  return {
    resource: isMcp ? (metadata.mcpUrl ?? url) : url,
    type: isMcp ? ('mcp' as const) : ('http' as const),
    x402Version: isV2 ? 2 : 1,
    accepts: [isV2 ? toRequirementV2(requirement) : requirement],
    lastUpdated: seen.updatedAt.toISOString(),
    ...(description === null ? {} : { description }),
    ...serviceWords(metadata),
    ...(bazaar === null ? {} : { extensions: { [BAZAAR]: bazaar } }),
  }
}
