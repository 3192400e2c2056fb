import { randomBytes } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { asciiDomain } from '../../shared/mail/address.ts'
import { reservedAddresses } from '../../shared/mail/reservedAddresses.ts'
import { DEFAULT_SCOPES } from '../../shared/scopes.ts'
import { formatUsdc } from '../../shared/till/usdc.ts'
import { deleteProject } from '../../sql/account/projects/deleteProject.ts'
import {
  AddressTakenError,
  createProject,
  findProject,
  listProjects,
  type Project,
  rotateProjectKey,
  UnverifiedDomainError,
  updateProject,
} from '../../sql/account/projects/projects.ts'
import { ApiError, badRequest, conflict, notFound } from '../http/errors.ts'
import { readRange } from '../http/input/queryTime.ts'
import { cutPage, readPage } from '../http/page.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { readApprover } from './approver.ts'
import { erasureRoutes } from './erasureRoutes.ts'
import { checkPayTo } from './payTo.ts'
import { platformActor } from './platformActor.ts'
import {
  CreateBody,
  createOperation,
  deleteOperation,
  getOperation,
  ListQuery,
  listOperation,
  Params,
  ROTATED,
  rotateOperation,
  UpdateBody,
  updateOperation,
} from './projectDocs.ts'
import { projectExportRoutes } from './projectExportRoutes.ts'

/** Serves the management of projects. Each route has two paths, because some clients call a project an identity. */
export const projectRoutes = (services: Services) =>
  new Elysia()
    .use(routes(services, 'projects'))
    .use(routes(services, 'identities'))
    .use(projectExportRoutes(services))
    .use(erasureRoutes(services))

const routes = (services: Services, collection: 'projects' | 'identities') =>
  new Elysia({ prefix: `/v0/platform/${collection}` })
    .post(
      '',
      ({ body, set }) => {
        set.status = 201
        return create(services, body)
      },
      { body: CreateBody, detail: createOperation },
    )
    .get(
      '',
      async ({ request, query }) => {
        const { projects, ...rest } = await list(services, request, query)
        return { [collection]: projects, ...rest }
      },
      { query: ListQuery, detail: listOperation(collection) },
    )
    .get('/:projectId', ({ params }) => get(services, params.projectId), {
      params: Params,
      detail: getOperation,
    })
    .patch(
      '/:projectId',
      ({ request, params, body }) => update(services, request, params.projectId, body),
      {
        params: Params,
        body: UpdateBody,
        detail: updateOperation,
      },
    )
    .post(
      '/:projectId/rotate-key',
      ({ request, params }) => rotate(services, request, params.projectId),
      { params: Params, detail: rotateOperation },
    )
    .delete('/:projectId', ({ request, params }) => remove(services, request, params.projectId), {
      params: Params,
      detail: deleteOperation,
    })

async function create(services: Services, body: Static<typeof CreateBody>) {
  const { pool, config } = services
  await checkPayTo(pool, body.payTo)
  const emailDomain = asciiDomain(body.emailDomain ?? config.mailDomain)
  const input = {
    name: body.name ?? body.emailName ?? 'Agent',
    purpose: body.purpose ?? 'SELLER',
    emailAddress: `${(body.emailName ?? randomEmailName()).toLowerCase()}@${emailDomain}`,
    emailDomain: emailDomain === config.mailDomain ? null : emailDomain,
    scopes: body.scopes === undefined ? DEFAULT_SCOPES : [...new Set(body.scopes)],
    payTo: body.payTo ?? null,
    paymentsEnabled: body.paymentsEnabled ?? false,
  }
  if (input.emailAddress.includes('..')) {
    throw badRequest('emailName must not hold two dots in a row')
  }
  if (reservedAddresses(config.mailDomain).includes(input.emailAddress)) {
    throw badRequest(`emailName must be another: ${input.emailAddress} is kept for the operator`)
  }
  try {
    const { project, rawKey } = await createProject(pool, input)
    return { ...toView(services, project), rawKey }
  } catch (error) {
    if (error instanceof UnverifiedDomainError) {
      throw badRequest(`emailDomain must be a verified domain: ${emailDomain} is none`)
    }
    if (!(error instanceof AddressTakenError)) throw error
    throw conflict(`emailName must be free: ${input.emailAddress} is taken`)
  }
}

async function list(services: Services, request: Request, query: Static<typeof ListQuery>) {
  const { limit, cursor } = readPage(query)
  const person = stateOf(request).session?.person ?? null
  const only = person === null || person.role === 'operator' ? null : person.projectIds
  const { q, payments, order = 'newest' } = query
  const found = await listProjects(services.pool, {
    only,
    ...readRange(query),
    ...(q === undefined ? {} : { text: q }),
    ...(payments === undefined ? {} : { paymentsEnabled: payments === 'on' }),
    order,
    cursor,
    limit: limit + 1,
  })
  const { page, next } = cutPage(found, limit, ({ createdAt }) => createdAt)
  return { projects: page.map((project) => toView(services, project)), count: page.length, ...next }
}

async function get(services: Services, projectId: string) {
  const project = await findProject(services.pool, projectId)
  if (project === null) throw projectNotFound()
  return toView(services, project)
}

/**
 * Refuses a change of a project's limits by its owner. The limits protect the service from its projects, so only the
 * operator may change them.
 * @throws {ApiError} 403 when a project's own key changes the limits.
 */
function refuseOwnLimits(request: Request, body: Static<typeof UpdateBody>): void {
  const person = stateOf(request).session?.person ?? null
  if (person === null || person.role === 'operator' || body.limits === undefined) return
  throw new ApiError(403, 'forbidden', 'limits must be set by an operator')
}

async function update(
  services: Services,
  request: Request,
  projectId: string,
  body: Static<typeof UpdateBody>,
) {
  await checkPayTo(services.pool, body.payTo)
  const approverEmail = await readApprover(services, body.approverEmail)
  refuseOwnLimits(request, body)
  const actor = platformActor(request, projectId)
  const change = approverEmail === undefined ? body : { ...body, approverEmail }
  const project = await updateProject(services.pool, projectId, change, actor)
  if (project === null) throw projectNotFound()
  return toView(services, project)
}

async function rotate({ pool }: Services, request: Request, projectId: string) {
  const rotated = await rotateProjectKey(pool, projectId, platformActor(request, projectId))
  if (rotated === null) throw projectNotFound()
  return { ...rotated, message: ROTATED }
}

async function remove({ pool }: Services, request: Request, projectId: string) {
  // If a person deletes a project at the console, the console itself writes the audit log entry. Therefore this
  // function writes no second entry.
  const isConsole = stateOf(request).session !== null
  const actor = isConsole ? null : platformActor(request, projectId)
  const deleted = await deleteProject(pool, projectId, actor)
  if (deleted.kind === 'not_found') throw projectNotFound()
  if (deleted.kind === 'purse_holds') {
    const held = formatUsdc(deleted.amountAtomic)
    throw conflict(`The purse holds ${held} USDC: sweep it first with \`bun run purse:sweep\``)
  }
  if (deleted.kind === 'purse_awaits') {
    const awaited = formatUsdc(deleted.amountAtomic)
    throw conflict(
      `The purse awaits ${awaited} USDC of pending payments: try again after their end`,
    )
  }
  return new Response(null, { status: 204 })
}

const toView = ({ config }: Services, project: Project) => ({
  projectId: project.id,
  identityId: project.id,
  name: project.name,
  displayName: project.displayName,
  type: 'INBOX' as const,
  purpose: project.purpose,
  emailAddress: project.emailAddress,
  email: project.emailAddress,
  scopes: project.scopes,
  apiKeyPrefix: project.apiKeyPrefix,
  payTo: project.payTo,
  ownAddresses: project.ownAddresses,
  paymentsEnabled: project.paymentsEnabled,
  sendPolicy: project.sendPolicy,
  approverEmail: project.approverEmail,
  approvalHours: project.approvalHours,
  usage: {
    storageBytes: project.storedBytes,
    dailySettlements: project.settlementsToday,
    dailyGas: project.gasToday,
    dailyPurseGas: project.purseGasToday,
    dailyTextBytes: project.textBytesToday,
    dailyTextSeconds: project.textSecondsToday,
  },
  limits: {
    storageBytes: project.storageLimitBytes ?? config.limits.storageBytes,
    dailySettlements: project.dailySettlements ?? config.limits.dailySettlements,
    dailyGas: project.dailyGas ?? config.limits.dailyGas,
    dailyTextBytes: project.dailyTextBytes ?? config.limits.dailyTextBytes,
    dailyTextSeconds: project.dailyTextSeconds ?? config.limits.dailyTextSeconds,
  },
  retention: project.retention,
  usageCount: project.requestCount,
  lastUsedAt: project.lastUsedAt?.toISOString() ?? null,
  createdAt: project.createdAt.toISOString(),
})

const projectNotFound = () => notFound('Project not found')

const randomEmailName = (): string => `agent-${randomBytes(5).toString('hex')}`
