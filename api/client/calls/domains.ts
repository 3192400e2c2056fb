import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a mail domain with its required DNS records. */
export type MailDomain = Operations['getPlatformDomainsByDomain']['result']

type ListQuery = NonNullable<Operations['getPlatformDomains']['input']['query']>

/**
 * Manages the mail domains of a platform. The list of mail domains does not include the service's own domain.
 *
 * @example
 * const { domain, records } = await platform.domains.add('shop.example')
 * console.log('set in DNS', domain, records)
 * await platform.domains.verify(domain)
 * const { url, keyId, secret } = await platform.domains.inbound.create(domain)
 */
export function domains(http: Http) {
  /** Returns one page of mail domains, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPlatformDomains', { query }, options)
  return {
    list,
    /**
     * Iterates over every mail domain, newest first. The iteration loads the pages of mail domains one after another.
     */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.domains,
        query.pageToken,
      ),
    get: (domain: string, options?: CallOptions) =>
      http.call('getPlatformDomainsByDomain', { path: { domain } }, options),
    /** Adds a mail domain. The response lists the DNS records that you must set for the domain. */
    add: (domain: string, options?: CallOptions) =>
      http.call('postPlatformDomains', { body: { domain } }, options),
    /** Starts a check of the domain's DNS records. */
    verify: (domain: string, options?: CallOptions) =>
      http.call('postPlatformDomainsByDomainVerify', { path: { domain } }, options),
    /** Returns the reports that other mail hosts sent about mail from the platform's domains. */
    reports: (query: { days?: number } = {}, options?: CallOptions) =>
      http.call('getPlatformMailReports', { query }, options),
    /** Manages the secrets with which a mail service delivers the mail of one domain by HTTP. */
    inbound: {
      /**
       * Creates an inbound secret, with which a mail service delivers the mail of one domain by HTTP. Only this
       * response shows the secret. The former secret stays valid for 24 hours.
       */
      create: (domain: string, options?: CallOptions) =>
        http.call('postPlatformDomainsByDomainInbound', { path: { domain } }, options),
      list: (domain: string, options?: CallOptions) =>
        http.call('getPlatformDomainsByDomainInbound', { path: { domain } }, options),
      revoke: (domain: string, options?: CallOptions) =>
        http.call('deletePlatformDomainsByDomainInbound', { path: { domain } }, options),
    },
    /** Deletes a mail domain. Fails with ConflictError while projects use the domain. */
    delete: (domain: string, options?: CallOptions) =>
      http.call('deletePlatformDomainsByDomain', { path: { domain } }, options),
  }
}
