import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Config } from '../../shared/config/config.ts'
import { asciiDomain, domainOf, parseAddress } from '../../shared/mail/address.ts'
import { domainRecords } from '../../shared/mail/mailDomain.ts'
import {
  addMailDomain,
  DomainInUseError,
  deleteMailDomain,
  findMailDomain,
  hasPeopleAt,
  listMailDomains,
  type MailDomain,
  queueCheck,
} from '../../sql/mail/domains/mailDomains.ts'
import { badRequest, conflict, notFound } from '../http/errors.ts'
import { operation, PageQuery, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import type { Services } from '../http/services.ts'

const OrNull = t.Union([Time, t.Null()])

const DomainSchema = t.Object({
  domain: t.String(),
  status: t.Union([t.Literal('pending'), t.Literal('verified'), t.Literal('failed')]),
  records: t.Array(
    t.Object({
      purpose: t.String({ examples: ['ownership', 'mx', 'dkim', 'spf', 'dmarc'] }),
      type: t.String({ examples: ['TXT', 'MX'] }),
      name: t.String(),
      value: t.String(),
      priority: t.Union([t.Integer(), t.Null()]),
      required: t.Boolean({ description: 'True means that verification needs this record.' }),
      status: t.String({
        description: 'The status is unchecked, ok, missing, mismatch or unknown.',
      }),
      detail: t.Union([t.String(), t.Null()]),
    }),
  ),
  createdAt: Time,
  checkedAt: OrNull,
  verifiedAt: OrNull,
})

const EXAMPLE = {
  domain: 'agents.example.com',
  status: 'pending',
  records: [
    {
      purpose: 'ownership',
      type: 'TXT',
      name: '_purser.agents.example.com',
      value: 'purser-verification=0a1b2c3d',
      priority: null,
      required: true,
      status: 'unchecked',
      detail: null,
    },
  ],
  createdAt: '2026-01-05T09:30:00.000Z',
  checkedAt: null,
  verifiedAt: null,
}

const Body = t.Object({ domain: t.String({ maxLength: 253 }) })
const Params = t.Object({ domain: t.String({ minLength: 1, maxLength: 253 }) })

const describe = { tag: 'Platform', access: 'platform:manage' } as const
const whole = { description: 'The domain.', schema: DomainSchema, example: EXAMPLE }
const errors = { 404: 'Domain not found' }
const missing = () => notFound('Domain not found')

const ADD = operation({
  ...describe,
  summary: 'Add a mail domain',
  description:
    'Set the DNS records of the answer. The service checks them at once, after minutes, then every hour for three days. ' +
    'The domain is unusable until all required records are found.',
  requestExample: { domain: 'agents.example.com' },
  success: { status: 201, ...whole, description: 'The domain and the records to set.' },
  errors: { 409: 'The domain exists already' },
})

const LIST = operation({
  ...describe,
  summary: 'List mail domains, newest first',
  success: {
    status: 200,
    description: 'One page of domains.',
    schema: t.Object({
      domains: t.Array(DomainSchema),
      count: t.Integer(),
      nextPageToken: t.Optional(t.String()),
    }),
    example: { domains: [EXAMPLE], count: 1 },
  },
})

const GET = operation({
  ...describe,
  summary: 'Get a mail domain with the state of its DNS records',
  success: { status: 200, ...whole },
  errors,
})

const VERIFY = operation({
  ...describe,
  summary: 'Check a mail domain now',
  description: 'The check runs in the background; it updates checkedAt.',
  success: { status: 200, ...whole },
  errors,
})

const REMOVE = operation({
  ...describe,
  summary: 'Remove a mail domain',
  success: { status: 204, description: 'The domain and its DKIM keys are deleted.' },
  errors: { ...errors, 409: 'The domain has projects' },
})

/** Serves the mail domains that the platform has in addition to MAIL_DOMAIN. */
export function domainRoutes(services: Services) {
  return new Elysia({ prefix: '/v0/platform/domains' })
    .post(
      '',
      async ({ body, set }) => {
        const added = await add(services, body.domain)
        set.status = 201
        return added
      },
      { body: Body, detail: ADD },
    )
    .get('', ({ query }) => list(services, query), { query: PageQuery, detail: LIST })
    .get(
      '/:domain',
      async ({ params }) => toView(await find(services, params.domain), services.config),
      { params: Params, detail: GET },
    )
    .post('/:domain/verify', ({ params }) => verify(services, params.domain), {
      params: Params,
      detail: VERIFY,
    })
    .delete('/:domain', ({ params }) => remove(services, params.domain), {
      params: Params,
      detail: REMOVE,
    })
}

async function add({ pool, config, keyring }: Services, text: string) {
  const domain = readDomain(text)
  if (domain === config.mailDomain) throw conflict(`${domain} is the service's own domain`)
  if (await hasPeopleAt(pool, domain)) {
    throw conflict(
      `domain must hold no address of a person or an approver of this service: ${domain}`,
    )
  }
  const added = await addMailDomain(pool, await keyring(pool), domain)
  if (added === null) throw conflict(`domain must be new: ${domain} is here already`)
  return toView(added, config)
}

async function list({ pool, config }: Services, query: Static<typeof PageQuery>) {
  const { limit, cursor } = readPage(query)
  const found = await listMailDomains(pool, { limit: limit + 1, cursor })
  const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
  return { domains: page.map((one) => toView(one, config)), count: page.length, ...next }
}

async function find({ pool }: Services, domain: string): Promise<MailDomain> {
  const found = await findMailDomain(pool, asciiDomain(domain))
  if (found === null) throw missing()
  return found
}

async function verify(services: Services, domain: string) {
  const found = await find(services, domain)
  await queueCheck(services.pool, found.domain)
  return toView(found, services.config)
}

async function remove({ pool }: Services, domain: string) {
  try {
    if (!(await deleteMailDomain(pool, asciiDomain(domain)))) throw missing()
  } catch (error) {
    if (!(error instanceof DomainInUseError)) throw error
    throw conflict('The domain has projects: delete them first')
  }
  return new Response(null, { status: 204 })
}

const toView = (domain: MailDomain, config: Config) => ({
  domain: domain.domain,
  status: domain.status,
  records: domainRecords(domain, config).map((record) => ({
    ...record,
    status: domain.findings[record.purpose]?.status ?? ('unchecked' as const),
    detail: domain.findings[record.purpose]?.detail ?? null,
  })),
  createdAt: domain.createdAt.toISOString(),
  checkedAt: domain.checkedAt?.toISOString() ?? null,
  verifiedAt: domain.verifiedAt?.toISOString() ?? null,
})

/**
 * Reads the name of one mail domain with at least two labels, and returns the name in lower-case ASCII. @throws
 * {ApiError} 400 for an invalid domain name.
 */
function readDomain(text: string): string {
  const address = parseAddress(`x@${text.trim().replace(/\.$/, '')}`)
  const domain = address === null ? '' : domainOf(address)
  if (/\.[a-z][a-z0-9-]*$/.test(domain)) return domain
  throw badRequest('domain must be a domain name, such as agents.example.com')
}
