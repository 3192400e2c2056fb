import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** A mail domain with its required DNS records. */
export type MailDomain = Operations['getPlatformDomainsByDomain']['result']

type ListQuery = NonNullable<Operations['getPlatformDomains']['input']['query']>

/**
 * The mail domains of a platform, without the service's own domain.
 *
 * @example
 * const { domain, records } = await platform.domains.add('shop.example')
 * console.log('set in DNS', domain, records)
 * await platform.domains.verify(domain)
 * const { url, keyId, secret } = await platform.domains.inbound.create(domain)
 */
export function domains(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPlatformDomains', { query }, options)
  return {
    list,
    /** Every domain, newest first; iteration loads the pages. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.domains,
        query.pageToken,
      ),
    get: (domain: string, options?: CallOptions) =>
      http.call('getPlatformDomainsByDomain', { path: { domain } }, options),
    /** Set the records of the answer in the domain's DNS. */
    add: (domain: string, options?: CallOptions) =>
      http.call('postPlatformDomains', { body: { domain } }, options),
    /** Starts a check of the DNS records. */
    verify: (domain: string, options?: CallOptions) =>
      http.call('postPlatformDomainsByDomainVerify', { path: { domain } }, options),
    /** What other mail hosts report about mail in the names of all domains. */
    reports: (query: { days?: number } = {}, options?: CallOptions) =>
      http.call('getPlatformMailReports', { query }, options),
    /** Secrets with which a mail service hands over mail to one domain by HTTP. */
    inbound: {
      /** A new secret, which no later answer shows. The former one ends after 24 hours. */
      create: (domain: string, options?: CallOptions) =>
        http.call('postPlatformDomainsByDomainInbound', { path: { domain } }, options),
      list: (domain: string, options?: CallOptions) =>
        http.call('getPlatformDomainsByDomainInbound', { path: { domain } }, options),
      revoke: (domain: string, options?: CallOptions) =>
        http.call('deletePlatformDomainsByDomainInbound', { path: { domain } }, options),
    },
    /** Fails with ConflictError while the domain has projects. */
    delete: (domain: string, options?: CallOptions) =>
      http.call('deletePlatformDomainsByDomain', { path: { domain } }, options),
  }
}
