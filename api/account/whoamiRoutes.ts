import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { findProject } from '../../sql/account/projects/projects.ts'
import { findPlatformKeyUsage } from '../../sql/account/projects/usage.ts'
import type { Pool } from '../../sql/db.ts'
import { findPurse } from '../../sql/purse/purses.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { identityOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { toPurseView } from '../purse/purseDocs.ts'

const Nullable = (schema: ReturnType<typeof t.String>) => t.Union([schema, t.Null()])

/** Describes to whom an API key belongs: a project or the platform. */
export const IdentitySchema = t.Object({
  identityId: Nullable(t.String()),
  projectId: Nullable(t.String({ description: 'The same value as identityId.' })),
  name: t.String(),
  email: Nullable(t.String()),
  displayName: t.String(),
  type: t.String({ examples: ['INBOX', 'PLATFORM'] }),
  purpose: Nullable(t.String({ examples: ['SELLER', 'BUYER'] })),
  scopes: t.Array(t.String()),
  usageCount: t.Integer({
    description: 'The key has sent this many requests. The number can be a few seconds old.',
  }),
  lastUsedAt: Nullable(t.String()),
  createdAt: Nullable(t.String()),
  wallet: t.Union([t.Object({ address: t.String() }), t.Null()]),
  purse: t.Union(
    [
      t.Object({
        address: t.String(),
        balanceUsdc: Nullable(t.String()),
        balanceBlock: t.Union([t.Integer(), t.Null()]),
      }),
      t.Null(),
    ],
    {
      description:
        'Null means that the project has no purse, or that the key lacks the scope purse:read.',
    },
  ),
})

/** Returns the identity of the API key that made the request. */
export function whoamiRoutes({ pool }: Services) {
  return new Elysia().get(
    '/v0/whoami',
    ({ request }) => {
      const { projectId, keyId, scopes } = identityOf(request)
      return projectId === null
        ? platformIdentity(pool, keyId)
        : projectIdentity(pool, { projectId, scopes })
    },
    {
      detail: operation({
        summary: 'Show the project that this key acts for',
        tag: 'Identity',
        access: 'key',
        success: {
          status: 200,
          description: 'The project of the key; of a platform key, the platform.',
          schema: IdentitySchema,
          example: {
            identityId: 'prj_0a1b2c3d4e5f60718293a4b5',
            projectId: 'prj_0a1b2c3d4e5f60718293a4b5',
            name: 'Buyer bot',
            email: 'buyer-bot@mail.example.com',
            displayName: 'Buyer bot',
            type: 'INBOX',
            purpose: 'SELLER',
            scopes: ['mail:read', 'mail:send'],
            usageCount: 12,
            lastUsedAt: '2026-01-05T09:41:12.345Z',
            createdAt: '2026-01-05T09:30:00.000Z',
            wallet: null,
            purse: null,
          },
        },
        errors: { 404: 'Project not found' },
      }),
    },
  )
}

/** Returns the identity of a project key. @throws {ApiError} 404 when the project was just deleted. */
export async function projectIdentity(
  pool: Pool,
  { projectId, scopes }: { projectId: string; scopes: readonly string[] },
) {
  const mayRead = scopes.includes('purse:read')
  const project = await findProject(pool, projectId)
  if (project === null) throw notFound('Project not found')
  return {
    identityId: project.id,
    projectId: project.id,
    name: project.name,
    email: project.emailAddress,
    displayName: project.displayName ?? project.name,
    type: 'INBOX',
    purpose: project.purpose,
    scopes: project.scopes,
    usageCount: project.requestCount,
    lastUsedAt: project.lastUsedAt?.toISOString() ?? null,
    createdAt: project.createdAt.toISOString(),
    wallet: project.payTo === null ? null : { address: project.payTo },
    purse: mayRead ? await purseOf(pool, projectId) : null,
  }
}

/**
 * Returns the identity of a platform key. Its project fields are `null`, and its request counts are the counts of the
 * key.
 */
async function platformIdentity(pool: Pool, keyId: string) {
  const key = await findPlatformKeyUsage(pool, keyId)
  return {
    identityId: null,
    projectId: null,
    name: 'Platform',
    email: null,
    displayName: key?.name ?? 'Platform',
    type: 'PLATFORM',
    purpose: null,
    scopes: ['platform:manage'],
    usageCount: key?.requestCount ?? 0,
    lastUsedAt: key?.lastUsedAt?.toISOString() ?? null,
    createdAt: key?.createdAt.toISOString() ?? null,
    wallet: null,
    purse: null,
  }
}

async function purseOf(pool: Pool, projectId: string) {
  const purse = await findPurse(pool, projectId)
  if (purse === null) return null
  const { address, balanceUsdc, balanceBlock } = toPurseView(purse)
  return { address, balanceUsdc, balanceBlock }
}
