import { randomBytes } from 'node:crypto'
import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { asciiDomain } from '../../shared/mail/address.ts'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import {
  AddressTakenError,
  createProject,
  deleteProject,
  findProject,
  listProjects,
  type Project,
  rotateProjectKey,
  UnverifiedDomainError,
  updateProject,
} from '../../sql/account/projects.ts'
import { badRequest, conflict, notFound } from '../http/errors.ts'
import { operation, PageQuery, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import type { Services } from '../http/services.ts'

const NAME_MAX_LENGTH = 200
const Name = t.String({
  minLength: 1,
  maxLength: NAME_MAX_LENGTH,
  pattern: '^[^\\r\\n]*$',
  error: `be one line of 1 to ${NAME_MAX_LENGTH} characters`,
})
const EmailName = t.String({
  pattern: '^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$',
  error:
    'be 1 to 64 letters, digits, dots, hyphens or underscores, and begin and end with a letter or digit',
})
const ScopeList = t.Array(t.Union(PROJECT_SCOPES.map((scope) => t.Literal(scope))), {
  maxItems: PROJECT_SCOPES.length,
})
const PayTo = t.Union([t.String({ pattern: '^0x[0-9a-fA-F]{40}$' }), t.Null()], {
  error: 'be an EVM address (0x and 40 hexadecimal digits) or null',
})
const Purpose = t.Union([t.Literal('SELLER'), t.Literal('BUYER')])

const CreateBody = t.Object({
  purpose: t.Optional(Purpose),
  name: t.Optional(Name),
  emailName: t.Optional(EmailName),
  emailDomain: t.Optional(
    t.String({
      maxLength: 253,
      description: "A verified domain; the service's own when left out.",
    }),
  ),
  scopes: t.Optional(ScopeList),
  payTo: t.Optional(PayTo),
  paymentsEnabled: t.Optional(t.Boolean()),
})

const UpdateBody = t.Object({
  name: t.Optional(Name),
  addScopes: t.Optional(ScopeList),
  removeScopes: t.Optional(ScopeList),
  payTo: t.Optional(PayTo),
  paymentsEnabled: t.Optional(t.Boolean()),
})

const Params = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })

const ProjectSchema = t.Object({
  projectId: t.String(),
  identityId: t.String({ description: 'The same value as projectId.' }),
  name: t.String(),
  type: t.Literal('INBOX'),
  purpose: Purpose,
  emailAddress: t.String(),
  scopes: t.Array(t.String()),
  apiKeyPrefix: t.String(),
  payTo: t.Union([t.String(), t.Null()]),
  paymentsEnabled: t.Boolean(),
  createdAt: Time,
})

const CreatedProject = t.Composite([
  ProjectSchema,
  t.Object({ rawKey: t.String({ description: 'The project key. Shown here and never again.' }) }),
])

const EXAMPLE_PROJECT = {
  projectId: 'prj_0a1b2c3d4e5f60718293a4b5',
  identityId: 'prj_0a1b2c3d4e5f60718293a4b5',
  name: 'Buyer bot',
  type: 'INBOX',
  purpose: 'SELLER',
  emailAddress: 'buyer-bot@mail.example.com',
  scopes: [...PROJECT_SCOPES],
  apiKeyPrefix: 'loid-0123456789ab',
  payTo: null,
  paymentsEnabled: false,
  createdAt: '2026-01-05T09:30:00.000Z',
}

const toView = (project: Project) => ({
  projectId: project.id,
  identityId: project.id,
  name: project.name,
  type: 'INBOX' as const,
  purpose: project.purpose,
  emailAddress: project.emailAddress,
  scopes: project.scopes,
  apiKeyPrefix: project.apiKeyPrefix,
  payTo: project.payTo,
  paymentsEnabled: project.paymentsEnabled,
  createdAt: project.createdAt.toISOString(),
})

const projectNotFound = () => notFound('Project not found')

/** Manages projects; served twice, for clients call a project an identity too. */
export function platformRoutes(services: Services) {
  return new Elysia()
    .use(projectRoutes(services, 'projects'))
    .use(projectRoutes(services, 'identities'))
}

function projectRoutes({ pool, config }: Services, collection: 'projects' | 'identities') {
  const describe = { tag: 'Platform', access: 'platform:manage' } as const
  const whole = { description: 'The project.', schema: ProjectSchema, example: EXAMPLE_PROJECT }
  return new Elysia({ prefix: `/v0/platform/${collection}` })
    .post(
      '',
      async ({ body, set }) => {
        const emailDomain = asciiDomain(body.emailDomain ?? config.mailDomain)
        const input = {
          name: body.name ?? body.emailName ?? 'Agent',
          purpose: body.purpose ?? 'SELLER',
          emailAddress: `${(body.emailName ?? randomEmailName()).toLowerCase()}@${emailDomain}`,
          emailDomain: emailDomain === config.mailDomain ? null : emailDomain,
          scopes: body.scopes === undefined ? PROJECT_SCOPES : [...new Set(body.scopes)],
          payTo: body.payTo ?? null,
          paymentsEnabled: body.paymentsEnabled ?? false,
        }
        if (input.emailAddress.includes('..'))
          throw badRequest('emailName must not hold two dots in a row')
        try {
          const { project, rawKey } = await createProject(pool, input)
          set.status = 201
          return { ...toView(project), rawKey }
        } catch (error) {
          if (error instanceof UnverifiedDomainError) {
            throw badRequest(`emailDomain must be a verified domain: ${emailDomain} is none`)
          }
          if (!(error instanceof AddressTakenError)) throw error
          throw conflict(`emailName must be free: ${input.emailAddress} is taken`)
        }
      },
      {
        body: CreateBody,
        detail: operation({
          ...describe,
          summary: 'Create a project with its inbox and key',
          requestExample: { name: 'Buyer bot', emailName: 'buyer-bot' },
          success: {
            status: 201,
            description: 'The project and, this once, its key.',
            schema: CreatedProject,
            example: { ...EXAMPLE_PROJECT, rawKey: `loid-${'0'.repeat(64)}` },
          },
          errors: { 409: 'The address is taken, now or by a project that was deleted' },
        }),
      },
    )
    .get(
      '',
      async ({ query }) => {
        const { limit, cursor } = readPage(query)
        const found = await listProjects(pool, { limit: limit + 1, cursor })
        const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
        return { [collection]: page.map(toView), count: page.length, ...next }
      },
      {
        query: PageQuery,
        detail: operation({
          ...describe,
          summary: 'List projects, newest first',
          success: {
            status: 200,
            description: 'One page of projects.',
            schema: t.Object({
              [collection]: t.Array(ProjectSchema),
              count: t.Integer(),
              nextPageToken: t.Optional(t.String()),
            }),
            example: { [collection]: [EXAMPLE_PROJECT], count: 1 },
          },
        }),
      },
    )
    .get(
      '/:projectId',
      async ({ params }) => {
        const project = await findProject(pool, params.projectId)
        if (project === null) throw projectNotFound()
        return toView(project)
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Get a project',
          success: { status: 200, ...whole },
          errors: { 404: 'Project not found' },
        }),
      },
    )
    .patch(
      '/:projectId',
      async ({ params, body }) => {
        const project = await updateProject(pool, params.projectId, body)
        if (project === null) throw projectNotFound()
        return toView(project)
      },
      {
        params: Params,
        body: UpdateBody,
        detail: operation({
          ...describe,
          summary: 'Change a project: name, scopes, payments',
          description: 'What is in both addScopes and removeScopes is removed.',
          requestExample: { removeScopes: ['vault:write'] },
          success: { status: 200, ...whole },
          errors: { 404: 'Project not found' },
        }),
      },
    )
    .post(
      '/:projectId/rotate-key',
      async ({ params }) => {
        const rotated = await rotateProjectKey(pool, params.projectId)
        if (rotated === null) throw projectNotFound()
        return {
          ...rotated,
          message: 'The previous key no longer works. Keep this one: it is not shown again.',
        }
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Replace the key of a project',
          success: {
            status: 200,
            description: 'The new key. The old one is refused from now on.',
            schema: t.Object({ rawKey: t.String(), apiKeyPrefix: t.String(), message: t.String() }),
            example: {
              rawKey: `loid-${'0'.repeat(64)}`,
              apiKeyPrefix: 'loid-000000000000',
              message: 'The previous key no longer works. Keep this one: it is not shown again.',
            },
          },
          errors: { 404: 'Project not found' },
        }),
      },
    )
    .delete(
      '/:projectId',
      async ({ params }) => {
        if (!(await deleteProject(pool, params.projectId))) throw projectNotFound()
        return new Response(null, { status: 204 })
      },
      {
        params: Params,
        detail: operation({
          ...describe,
          summary: 'Delete a project',
          description:
            'Its key is dead at once and its mail is removed. Its address is never given out again.',
          success: { status: 204, description: 'The project is gone.' },
          errors: { 404: 'Project not found' },
        }),
      },
    )
}

const randomEmailName = (): string => `agent-${randomBytes(5).toString('hex')}`
