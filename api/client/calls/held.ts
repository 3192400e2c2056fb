import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a mail that waits for the owner's approval, with the hash of its bytes. */
export type HeldRequest = Operations['getPlatformProjectsByProjectIdHeldByApprovalId']['result']

type ListQuery = NonNullable<Operations['getPlatformProjectsByProjectIdHeld']['input']['query']>
type Approve = Operations['postPlatformProjectsByProjectIdHeldByApprovalIdApprove']['input']['body']
type Reject = Operations['postPlatformProjectsByProjectIdHeldByApprovalIdReject']['input']['body']
type Edit = Operations['patchPlatformProjectsByProjectIdHeldByApprovalId']['input']['body']

/**
 * Approves, rejects, edits and lists the mail of projects that waits for the owner's approval.
 *
 * @example
 * for await (const { approvalId } of platform.held.all('prj_…', { state: 'waiting' })) {
 *   const { sha256 } = await platform.held.get('prj_…', approvalId)
 *   await platform.held.approve('prj_…', approvalId, { sha256: sha256! })
 * }
 */
export function held(http: Http) {
  /**
   * Returns one page of the approval requests for mail, newest first. With the query parameter `state`, the list can
   * also contain requests that the owner has already approved or rejected.
   */
  const list = (projectId: string, query: ListQuery = {}, options?: CallOptions) =>
    http.call('getPlatformProjectsByProjectIdHeld', { path: { projectId }, query }, options)
  return {
    list,
    /**
     * Iterates over every approval request for mail, newest first. The iteration loads the pages of approval requests
     * one after another.
     */
    all: (projectId: string, query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list(projectId, { ...query, pageToken }, options),
        (page) => page.held,
        query.pageToken,
      ),
    get: (projectId: string, approvalId: string, options?: CallOptions) =>
      http.call(
        'getPlatformProjectsByProjectIdHeldByApprovalId',
        { path: { projectId, approvalId } },
        options,
      ),
    /**
     * Returns the bytes of a held mail (a mail that waits for the owner's approval). The service sends exactly these
     * bytes after the owner approves the mail.
     */
    raw: (projectId: string, approvalId: string, options?: CallOptions) =>
      http.call(
        'getPlatformProjectsByProjectIdHeldByApprovalIdRaw',
        { path: { projectId, approvalId } },
        options,
      ),
    /**
     * Approves a held mail (a mail that waits for the owner's approval). The service sends the mail only if its bytes
     * have the hash that the approval names. A second approval changes nothing.
     */
    approve: (projectId: string, approvalId: string, seen: Approve, options?: CallOptions) =>
      http.call(
        'postPlatformProjectsByProjectIdHeldByApprovalIdApprove',
        { path: { projectId, approvalId }, body: seen },
        options,
      ),
    /**
     * Rejects a held mail (a mail that waits for the owner's approval). The agent can read the reason why its mail was
     * rejected.
     */
    reject: (projectId: string, approvalId: string, why: Reject = {}, options?: CallOptions) =>
      http.call(
        'postPlatformProjectsByProjectIdHeldByApprovalIdReject',
        { path: { projectId, approvalId }, body: why },
        options,
      ),
    /**
     * Changes the content of a held mail (a mail that waits for the owner's approval). The changed mail has a new hash,
     * which the approval must name.
     */
    edit: (projectId: string, approvalId: string, change: Edit, options?: CallOptions) =>
      http.call(
        'patchPlatformProjectsByProjectIdHeldByApprovalId',
        { path: { projectId, approvalId }, body: change },
        options,
      ),
  }
}
