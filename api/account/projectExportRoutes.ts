import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { mboxEntry } from '../../shared/mail/parse/mbox.ts'
import type { ProjectExport } from '../../sql/account/projects/exportProject.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { stateOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'
import { platformActor } from './platformActor.ts'
import { Params } from './projectDocs.ts'

/** Lists the parts of a project's export. */
const PARTS = {
  json: { type: 'application/jsonl', ending: 'jsonl', pieces: jsonLines },
  mail: { type: 'application/mbox', ending: 'mbox', pieces: mbox },
} as const

const Query = t.Object({
  part: t.Optional(
    t.Union([t.Literal('json'), t.Literal('mail')], {
      error: 'be one of "json", "mail"',
      description:
        '`json` is the default and gives JSON Lines: each line is one object with its `kind`. `mail` gives the messages as one mbox file (RFC 4155).',
    }),
  ),
})

/**
 * Holds the version of the line format of a project export. The version stays the same if the export gets a new kind of
 * line or a new field.
 */
const FORMAT = 1

/** Serves the export of a project. */
export const projectExportRoutes = (services: Services) =>
  new Elysia().use(routes(services, 'projects')).use(routes(services, 'identities'))

const routes = ({ exports }: Services, collection: 'projects' | 'identities') =>
  new Elysia({ prefix: `/v0/platform/${collection}` }).get(
    '/:projectId/export',
    async ({ request, params: { projectId }, query }) => {
      const name = query.part ?? 'json'
      const part = PARTS[name]
      const headers = {
        'content-type': part.type,
        'content-disposition': `attachment; filename="project.${part.ending}"`,
      }
      // A HEAD request gets no export, because nobody would read the body of its response, and the database snapshot
      // would stay open.
      if (request.method === 'HEAD') return new Response(null, { headers })
      const entry = { actor: platformActor(request, projectId), part: name }
      const taken = await exports.open(projectId, entry)
      if (taken === null) throw notFound('Project not found')
      const { signal } = request
      const { admitAgain } = stateOf(request)
      const reader = { signal, admitAgain: async () => await admitAgain?.() }
      return new Response(exports.stream(taken, part.pieces(taken), reader), { headers })
    },
    {
      params: Params,
      query: Query,
      detail: operation({
        tag: 'Platform',
        access: 'platform:manage',
        summary: 'Export a project',
        description:
          'Streams all data of a project as of one moment; each part has its own moment. Secrets of the vault and of webhooks are ' +
          'never in it: a platform key does not read them. The last line of json has the kind `end` and the number of lines ' +
          'of each kind; without it the export is incomplete. The log of the project records each export.',
        success: {
          status: 200,
          description: 'The export; application/mbox for the part mail.',
          contentType: 'application/jsonl',
          schema: t.String(),
          example: '{"kind":"project","projectId":"prj_0a1b2c3d4e5f60718293a4b5"}\n',
        },
        errors: {
          404: 'Project not found',
          429: 'Too many exports run',
        },
      }),
    },
  )

async function* mbox({ mails }: ProjectExport): AsyncGenerator<Uint8Array> {
  for await (const mail of mails()) yield mboxEntry(mail)
}

async function* jsonLines({ project, at, rows }: ProjectExport): AsyncGenerator<Uint8Array> {
  const line = (value: object) => Buffer.from(`${JSON.stringify(value)}\n`)
  const { id, name, displayName, purpose, emailAddress, payTo, paymentsEnabled, scopes } = project
  yield line({
    kind: 'project',
    format: FORMAT,
    exportedAt: at,
    projectId: id,
    name,
    displayName,
    purpose,
    emailAddress,
    payTo,
    ownAddresses: project.ownAddresses,
    paymentsEnabled,
    scopes,
    sendPolicy: project.sendPolicy,
    approverEmail: project.approverEmail,
    approvalHours: project.approvalHours,
    retention: project.retention,
    createdAt: project.createdAt,
  })
  const counts: Record<string, number> = {}
  for await (const row of rows()) {
    counts[row.kind] = (counts[row.kind] ?? 0) + 1
    yield line(row)
  }
  yield line({ kind: 'end', counts })
}
