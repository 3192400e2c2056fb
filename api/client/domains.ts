import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** A mail domain, with what its DNS must hold. */
export type MailDomain = Operations['getPlatformDomainsByDomain']['result']

type ListQuery = NonNullable<Operations['getPlatformDomains']['input']['query']>

/** The mail domains of a platform, beside the service's own. */
export function domains(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPlatformDomains', { query }, options)
  return {
    list,
    /** Every domain, newest first; reads on as it is iterated. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.domains,
        query.pageToken,
      ),
    get: (domain: string, options?: CallOptions) =>
      http.call('getPlatformDomainsByDomain', { path: { domain } }, options),
    /** The records of the answer are to be set in the domain's DNS. */
    add: (domain: string, options?: CallOptions) =>
      http.call('postPlatformDomains', { body: { domain } }, options),
    /** Has it checked now. */
    verify: (domain: string, options?: CallOptions) =>
      http.call('postPlatformDomainsByDomainVerify', { path: { domain } }, options),
    /** Only without projects. */
    delete: (domain: string, options?: CallOptions) =>
      http.call('deletePlatformDomainsByDomain', { path: { domain } }, options),
  }
}
