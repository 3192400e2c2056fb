import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { sumReports } from '../../sql/mail/domains/aggregateReports.ts'
import { operation } from '../http/operation.ts'
import type { Services } from '../http/services.ts'

const DAYS_MAX = 90
const DAYS = 30

const Kind = t.Union([t.Literal('dmarc'), t.Literal('tls')])

const Reports = t.Object({
  days: t.Array(
    t.Object({
      date: t.String({ description: 'The date is a day in UTC.' }),
      kind: Kind,
      passed: t.Integer({
        description: 'This number counts mails. For `tls`, the number counts sessions.',
      }),
      failed: t.Integer(),
    }),
  ),
  sources: t.Array(
    t.Object({
      kind: Kind,
      domain: t.String(),
      source: t.Union([t.String(), t.Null()], {
        description: 'The mail came from this IP address.',
      }),
      result: t.String(),
      isPassed: t.Boolean(),
      count: t.Integer(),
      reporters: t.Array(t.String()),
    }),
    { description: 'The list holds the largest sources.' },
  ),
  unproven: t.Integer({
    description:
      'DMARC does not prove who sent these reports. No other number counts these reports.',
  }),
})

const EXAMPLE = {
  days: [{ date: '2026-01-05', kind: 'dmarc', passed: 120, failed: 3 }],
  sources: [
    {
      kind: 'dmarc',
      domain: 'mail.example.com',
      source: '192.0.2.4',
      result: 'none, dkim=pass, spf=pass',
      isPassed: true,
      count: 120,
      reporters: ['google.com'],
    },
  ],
  unproven: 0,
}

/**
 * Serves the DMARC and TLS reports that other mail hosts send. The reports tell who sends mail under the domains of
 * this service, and which of these mails pass SPF, DKIM and DMARC.
 */
export function reportRoutes({ pool }: Services) {
  return new Elysia({ prefix: '/v0/platform/mail-reports' }).get(
    '',
    ({ query }) => sumReports(pool, query.days ?? DAYS),
    {
      query: t.Object({
        days: t.Optional(
          t.Integer({
            minimum: 1,
            maximum: DAYS_MAX,
            description: `The answer covers this many days, and ${DAYS} days by default.`,
          }),
        ),
      }),
      detail: operation({
        tag: 'Platform',
        access: 'platform:manage',
        summary: 'Sum up the reports of other mail hosts about our domains',
        description:
          'Hosts send DMARC and TLS reports to `dmarc@` and `tlsrpt@` of `MAIL_DOMAIN`, as `bun run dns` asks them to.',
        success: { status: 200, description: 'The sums.', schema: Reports, example: EXAMPLE },
      }),
    },
  )
}
