import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { asciiDomain } from '../../shared/mail/address.ts'
import { postmarkAddress } from '../../shared/mail/http/postmarkMail.ts'
import { domainSecret } from '../../shared/mail/http/signedMail.ts'
import {
  type InboundSecret,
  listInboundSecrets,
  newInboundSecret,
  revokeInboundSecrets,
} from '../../sql/mail/domains/inboundSecrets.ts'
import { findMailDomain } from '../../sql/mail/domains/mailDomains.ts'
import { conflict, notFound } from '../http/errors.ts'
import { operation, Time } from '../http/operation.ts'
import type { Services } from '../http/services.ts'

const SecretSchema = t.Object({
  keyId: t.String({ description: 'Send this value in the header Purser-Key.' }),
  createdAt: Time,
  expiresAt: t.Union([Time, t.Null()]),
})

const EXAMPLE = {
  keyId: 'agents.example.com#1',
  createdAt: '2026-01-05T09:30:00.000Z',
  expiresAt: null,
}

const Params = t.Object({ domain: t.String({ minLength: 1, maxLength: 253 }) })
const describe = { tag: 'Platform', access: 'platform:manage' } as const
const errors = { 404: 'Domain not found' }

const NEW = operation({
  ...describe,
  summary: 'Make a secret for mail over HTTP to a domain',
  description:
    'A mail service that holds the secret hands over mail to this domain alone. The former secret ends after 24 hours.',
  success: {
    status: 201,
    description: 'The secret, which no later answer shows.',
    schema: t.Composite([
      SecretSchema,
      t.Object({
        secret: t.String({
          description: 'The secret is 32 bytes in base64, and is the key of the HMAC-SHA256.',
        }),
        url: t.String({ description: 'Post signed mail to this URL.' }),
        postmarkUrl: t.String({
          description:
            'Enter this URL at Postmark as the inbound webhook. The URL holds a password.',
        }),
      }),
    ]),
    example: {
      ...EXAMPLE,
      secret: 'MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
      url: 'https://mail.example.com/v0/inbound/raw',
      postmarkUrl: 'https://purser:…@mail.example.com/v0/inbound/postmark/…',
    },
  },
  errors: { ...errors, 409: 'INBOUND_SECRETS is not set' },
})

const LIST = operation({
  ...describe,
  summary: 'List the valid secrets for mail over HTTP to a domain',
  success: {
    status: 200,
    description: 'The secrets without their values, newest first.',
    schema: t.Object({ secrets: t.Array(SecretSchema) }),
    example: { secrets: [EXAMPLE] },
  },
  errors,
})

const REVOKE = operation({
  ...describe,
  summary: 'Revoke the secrets for mail over HTTP to a domain',
  success: { status: 204, description: 'They work for half a minute more at most.' },
  errors,
})

/**
 * Serves the routes that create and revoke inbound secrets. With such a secret, a mail service delivers the mail of one
 * domain over HTTP. The process of the SMTP listener, and not this API, receives this mail.
 */
export function inboundRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/platform/domains' })
    .post(
      '/:domain/inbound',
      async ({ params, set }) => {
        const made = await make(services, params.domain)
        set.status = 201
        return made
      },
      { params: Params, detail: NEW },
    )
    .get(
      '/:domain/inbound',
      async ({ params }) => {
        const domain = await find(services, params.domain)
        return { secrets: (await listInboundSecrets(services.pool, domain)).map(toView) }
      },
      { params: Params, detail: LIST },
    )
    .delete(
      '/:domain/inbound',
      async ({ params }) => {
        await revokeInboundSecrets(services.pool, await find(services, params.domain))
        return new Response(null, { status: 204 })
      },
      { params: Params, detail: REVOKE },
    )
}

async function make(services: Services, text: string) {
  const { config, pool } = services
  const domain = await find(services, text)
  const master = config.smtp.http?.secrets[0]?.secret
  if (master === undefined) throw conflict('INBOUND_SECRETS must be set to take mail over HTTP')
  const made = await newInboundSecret(pool, domain)
  const secret = domainSecret(master, made.keyId)
  return {
    ...toView(made),
    secret: Buffer.from(secret).toString('base64'),
    url: `${config.http.baseUrl}/v0/inbound/raw`,
    postmarkUrl: postmarkAddress(config.http.baseUrl, made.keyId, secret),
  }
}

/**
 * Returns the name of a mail domain if this service receives mail for the domain. @throws {ApiError} 404 for any other
 * domain.
 */
async function find({ pool, config }: Services, text: string): Promise<string> {
  const domain = asciiDomain(text)
  if (domain !== config.mailDomain && (await findMailDomain(pool, domain)) === null) {
    throw notFound('Domain not found')
  }
  return domain
}

const toView = ({ keyId, createdAt, expiresAt }: InboundSecret) => ({
  keyId,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt?.toISOString() ?? null,
})
