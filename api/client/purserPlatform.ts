import { domains } from './calls/domains.ts'
import { health } from './calls/health.ts'
import { held } from './calls/held.ts'
import { mandates, purses } from './calls/mandates.ts'
import { everyPage } from './everyPage.ts'
import { type CallOptions, type ClientOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** Describes a project as the platform API returns it. */
export type Project = Operations['getPlatformProjectsByProjectId']['result']

type ListQuery = NonNullable<Operations['getPlatformProjects']['input']['query']>

/**
 * Gives access to a platform: to its projects, its mail domains, the mail that waits for approval, and the health of
 * the service.
 *
 * @example
 * const platform = new PurserPlatform({ apiKey: 'lopk-…' })
 * const { rawKey, emailAddress } = await platform.projects.create({ name: 'Buyer bot' })
 */
export class PurserPlatform {
  readonly projects: ReturnType<typeof projects>
  readonly domains: ReturnType<typeof domains>
  readonly health: ReturnType<typeof health>
  readonly held: ReturnType<typeof held>
  readonly purses: ReturnType<typeof purses>
  readonly mandates: ReturnType<typeof mandates>

  /** Creates the client of a platform. @throws TypeError unless `apiKey` is a platform key. */
  constructor(options: ClientOptions) {
    const http = new Http(options, 'lopk-')
    this.projects = projects(http)
    this.domains = domains(http)
    this.health = health(http)
    this.held = held(http)
    this.purses = purses(http)
    this.mandates = mandates(http)
  }
}

function projects(http: Http) {
  /** Returns one page of projects, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPlatformProjects', { query }, options)
  return {
    list,
    /** Iterates over every project, newest first. The iteration loads the pages of projects one after another. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.projects,
        query.pageToken,
      ),
    /** Returns the payment header that a payer signed. The service rebuilds this payment header from stored data. */
    paidHeader: (projectId: string, paymentId: string, options?: CallOptions) =>
      http.call(
        'getPlatformProjectsByProjectIdPaymentsByPaymentIdHeader',
        { path: { projectId, paymentId } },
        options,
      ),
    get: (projectId: string, options?: CallOptions) =>
      http.call('getPlatformProjectsByProjectId', { path: { projectId } }, options),
    /**
     * Creates a project. The field `rawKey` of the response is the project's API key, which no other response shows.
     */
    create: (
      project: Operations['postPlatformProjects']['input']['body'] = {},
      options?: CallOptions,
    ) => http.call('postPlatformProjects', { body: project }, options),
    update: (
      projectId: string,
      change: Operations['patchPlatformProjectsByProjectId']['input']['body'],
      options?: CallOptions,
    ) =>
      http.call('patchPlatformProjectsByProjectId', { path: { projectId }, body: change }, options),
    /** Replaces the API key of a project. From this moment, the service refuses the old key. */
    rotateKey: (projectId: string, options?: CallOptions) =>
      http.call('postPlatformProjectsByProjectIdRotateKey', { path: { projectId } }, options),
    /**
     * Streams the export of a project. The part `json` is in JSON Lines format, and the part `mail` is in mbox format.
     * A `json` export is complete only if its last line is `kind: "end"`. The client never retries this call.
     */
    export: (
      projectId: string,
      part: 'json' | 'mail',
      { signal = new AbortController().signal }: { signal?: AbortSignal } = {},
    ) =>
      http.stream(
        'getPlatformProjectsByProjectIdExport',
        { path: { projectId }, query: { part } },
        signal,
      ),
    /** Tells whether the data of a deleted project is erased, and where copies of the data can be. */
    erasure: (projectId: string, options?: CallOptions) =>
      http.call('getPlatformProjectsByProjectIdErasure', { path: { projectId } }, options),
    delete: (projectId: string, options?: CallOptions) =>
      http.call('deletePlatformProjectsByProjectId', { path: { projectId } }, options),
  }
}
