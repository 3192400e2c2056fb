import { timingSafeEqual } from 'node:crypto'
import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { ApiError } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import type { Services } from '../http/services.ts'

/** Serves the route `/metrics`, which returns metrics in the Prometheus text format. */
export function metricsRoutes({ config, metrics }: Services) {
  return new Elysia().get(
    '/metrics',
    async ({ request }) => {
      checkToken(config.metricsToken, request.headers.get('authorization'))
      return new Response(await metrics.render(), {
        headers: { 'content-type': metrics.contentType },
      })
    },
    {
      detail: operation({
        summary: 'Metrics of the service',
        description:
          'Prometheus text. With METRICS_TOKEN set, it wants that token as `Authorization: Bearer`.',
        tag: 'Service',
        access: 'public',
        success: {
          status: 200,
          description: 'Request durations of this process; queues, payments and deliveries of all.',
          contentType: 'text/plain',
          schema: t.String(),
          example: 'purser_jobs{task="send_mail",state="ready"} 0\n',
        },
        errors: { 401: 'METRICS_TOKEN is set, and the request lacks it' },
      }),
    },
  )
}

function checkToken(token: string | undefined, authorization: string | null): void {
  if (token === undefined) return
  const [wanted, given] = [Buffer.from(`Bearer ${token}`), Buffer.from(authorization ?? '')]
  if (wanted.length === given.length && timingSafeEqual(wanted, given)) return
  throw new ApiError(401, 'unauthorized', 'Missing or invalid metrics token')
}
