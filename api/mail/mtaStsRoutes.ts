import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { policyText } from '../../shared/mail/mtaSts.ts'
import { findVerifiedDomains } from '../../sql/mail/domains/mailDomains.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import type { Services } from '../http/services.ts'

const PREFIX = 'mta-sts.'

/** Serves the MTA-STS policy of each mail domain of this service at the host `mta-sts.DOMAIN` (RFC 8461 §3.2). */
export function mtaStsRoutes({ config, pool }: Services) {
  const { mailDomain, mailHostname, mtaSts: mode } = config
  const isOurs = async (domain: string) =>
    domain === mailDomain || (await findVerifiedDomains(pool, [domain])).length === 1
  return new Elysia().get(
    '/.well-known/mta-sts.txt',
    async ({ request }) => {
      const host = new URL(request.url).hostname.toLowerCase()
      const isNamed = mode !== 'none' && host.startsWith(PREFIX)
      if (!isNamed || !(await isOurs(host.slice(PREFIX.length)))) throw notFound()
      return new Response(policyText({ mode, mx: [mailHostname] }), {
        headers: { 'content-type': 'text/plain' },
      })
    },
    {
      detail: operation({
        summary: 'The MTA-STS policy of a mail domain',
        description:
          'RFC 8461. It is answered at the host `mta-sts.DOMAIN`, for `MAIL_DOMAIN` and verified domains, unless `MTA_STS` is none.',
        tag: 'Service',
        access: 'public',
        success: {
          status: 200,
          description:
            'The host that takes mail for the domain, and how long senders keep the policy.',
          contentType: 'text/plain',
          schema: t.String(),
          example: policyText({ mode: 'enforce', mx: ['mx.example.com'] }),
        },
      }),
    },
  )
}
