import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Cursor } from '../../../shared/cursor.ts'
import type { Pool } from '../../../sql/db.ts'
import { deleteSuppression, listSuppressions } from '../../../sql/mail/outbound/suppressions.ts'
import { notFound } from '../../http/errors.ts'
import { operation, PageQuery, Time } from '../../http/operation.ts'
import { cutPage, readPage } from '../../http/page.ts'
import { projectOf } from '../../http/requestState.ts'
import type { Services } from '../../http/services.ts'

const SuppressionSchema = t.Object({
  address: t.String(),
  reason: t.Union([t.Literal('bounce'), t.Literal('rejection'), t.Literal('complaint')], {
    description:
      '`bounce` means that a bounce message came back. `rejection` means that the receiving server refused the address. `complaint` means that the recipient reported the mail as spam.',
  }),
  detail: t.Union([t.String(), t.Null()], { description: 'The receiving server gave this reply.' }),
  messageId: t.Union([t.String(), t.Null()], {
    description: 'This message caused the suppression.',
  }),
  createdAt: Time,
})

/** Describes one page of suppressed addresses. */
export const SuppressionPage = t.Object({
  suppressions: t.Array(SuppressionSchema),
  count: t.Integer(),
  nextPageToken: t.Optional(t.String()),
})

const EXAMPLE = {
  address: 'ada@example.com',
  reason: 'bounce',
  detail: '550 5.1.1 User unknown',
  messageId: '<9f86d081@mail.example.com>',
  createdAt: '2026-01-05T09:41:12.345Z',
}

/** Serves the suppressed addresses of a project, to which the project sends no mail. */
export function suppressionRoutes({ pool }: Services) {
  return new Elysia()
    .get(
      '/v0/suppressions',
      ({ request, query }) =>
        readSuppressions(pool, { projectId: projectOf(request).projectId, ...readPage(query) }),
      {
        query: PageQuery,
        detail: operation({
          summary: 'List suppressed addresses, newest first',
          description:
            'No mail is sent to these addresses. They bounced permanently, or their server reported an unknown mailbox.',
          tag: 'Messages',
          access: 'mail:read',
          success: {
            status: 200,
            description: 'One page of addresses.',
            schema: SuppressionPage,
            example: { suppressions: [EXAMPLE], count: 1 },
          },
        }),
      },
    )
    .delete(
      '/v0/suppressions/:address',
      async ({ request, params }) => {
        await removeSuppression(pool, projectOf(request).projectId, params.address)
        return new Response(null, { status: 204 })
      },
      {
        params: t.Object({ address: t.String({ minLength: 1, maxLength: 320 }) }),
        detail: operation({
          summary: 'Remove an address from the suppression list',
          tag: 'Messages',
          access: 'mail:manage',
          success: { status: 204, description: 'The address can receive mail again.' },
          errors: { 404: 'Suppression not found' },
        }),
      },
    )
}

/** Returns one page of suppressed addresses, newest first. */
export async function readSuppressions(
  pool: Pool,
  { projectId, limit, cursor }: { projectId: string; limit: number; cursor: Cursor | null },
): Promise<Static<typeof SuppressionPage>> {
  const found = await listSuppressions(pool, projectId, { limit: limit + 1, cursor })
  const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
  const suppressions = page.map(({ row, createdAt, ...shown }) => ({
    ...shown,
    createdAt: createdAt.toISOString(),
  }))
  return { suppressions, count: page.length, ...next }
}

/** Ends the suppression of an address. @throws {ApiError} 404 for an address that is not suppressed. */
export async function removeSuppression(
  pool: Pool,
  projectId: string,
  address: string,
): Promise<void> {
  if (!(await deleteSuppression(pool, projectId, address))) {
    throw notFound('Suppression not found')
  }
}
