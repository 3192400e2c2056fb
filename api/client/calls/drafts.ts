import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a draft, which is a mail that is still being written. */
export type Draft = Operations['getMessagesDraftsByDraftId']['result']

type ListQuery = NonNullable<Operations['getMessagesDrafts']['input']['query']>

/**
 * Manages the drafts of an inbox. Lists of messages do not contain drafts.
 *
 * @example
 * const { draftId } = await purser.messages.drafts.create({ to: ['ann@example.com'], subject: 'Hi', text: 'Almost' })
 * await purser.messages.drafts.send(draftId)
 */
export function drafts(http: Http) {
  /** Returns one page of drafts, newest first, without bodies and attachments. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getMessagesDrafts', { query }, options)
  return {
    list,
    /** Iterates over every draft, newest first. The iteration loads the pages of drafts one after another. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.drafts,
        query.pageToken,
      ),
    get: (draftId: string, options?: CallOptions) =>
      http.call('getMessagesDraftsByDraftId', { path: { draftId } }, options),
    create: (
      draft: Operations['postMessagesDrafts']['input']['body'] = {},
      options?: CallOptions,
    ) => http.call('postMessagesDrafts', { body: draft }, options),
    /**
     * Changes a draft. The fields in the change replace the fields of the draft. The list `remove` names the fields to
     * remove from the draft.
     */
    update: (
      draftId: string,
      change: Operations['patchMessagesDraftsByDraftId']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchMessagesDraftsByDraftId', { path: { draftId }, body: change }, options),
    /**
     * Sends a draft once, even if the call is repeated. For 24 hours, a repeated call gets the first response again.
     */
    send: (draftId: string, options?: CallOptions) =>
      http.call('postMessagesDraftsByDraftIdSend', { path: { draftId } }, options),
    delete: (draftId: string, options?: CallOptions) =>
      http.call('deleteMessagesDraftsByDraftId', { path: { draftId } }, options),
  }
}
