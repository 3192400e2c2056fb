import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes an email rule, which allows or blocks an address for receiving, sending or replying. */
export type EmailRule = Operations['getEmailRules']['result']['rules'][number]

type ListQuery = NonNullable<Operations['getEmailRules']['input']['query']>

/**
 * Manages the email rules of an inbox.
 *
 * @example
 * await purser.emailRules.add({ scope: 'RECEIVE', type: 'BLOCK', value: '*@spam.example' })
 */
export function emailRules(http: Http) {
  /** Returns one page of email rules, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getEmailRules', { query }, options)
  return {
    list,
    /** Iterates over every email rule, newest first. The iteration loads the pages of email rules one after another. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.rules,
        query.pageToken,
      ),
    /** Adds an email rule. Adding the same email rule a second time changes nothing. */
    add: (rule: Operations['postEmailRules']['input']['body'], options?: CallOptions) =>
      http.call('postEmailRules', { body: rule }, options),
    delete: (ruleId: string, options?: CallOptions) =>
      http.call('deleteEmailRulesByRuleId', { path: { ruleId } }, options),
  }
}
