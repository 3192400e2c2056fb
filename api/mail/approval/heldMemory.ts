/** Counts the memory of the process that is needed to compose or read a mail that waits for approval. */
import { heldBytes, storedHeldHash } from '../../../sql/mail/approval/heldReads.ts'
import { findRawSize } from '../../../sql/mail/messages/attachments.ts'
import { peopleOf } from '../../http/limits/loopTime.ts'
import type { Services } from '../../http/services.ts'

/**
 * Sets how many bytes of memory count for each byte of a mail. Composing a mail needs up to eight bytes, but only for a
 * moment. The number is lower, because with eight, one person could use up the memory of all others.
 */
const COPIES = 3

type About = { projectId: string; messageId: string }

/**
 * Runs work that composes or reads a held mail (a mail that waits for approval), and counts its memory. Otherwise
 * parallel requests for a mail of 25 MB could fill the memory of the process. @throws {ApiError} 503 if the people of
 * the project already use all the memory that they may use.
 */
export async function withHeldMail<Result>(
  { pool, answers }: Services,
  { projectId, messageId }: About,
  work: () => Promise<Result>,
): Promise<Result> {
  const size = (await findRawSize(pool, projectId, messageId)) ?? 0
  return await answers.during(peopleOf(projectId), size * COPIES, work)
}

/**
 * Returns the SHA-256 of the bytes that the service will send for a held mail (a mail that waits for approval). If the
 * service has not composed the mail yet, the function composes it. @returns null if the mail is deleted. @throws
 * {ApiError} 503 if too little memory is free.
 */
export async function hashOfHeld(services: Services, about: About): Promise<Buffer | null> {
  const stored = await storedHeldHash(services.pool, about)
  if (stored !== null) return stored
  return await withHeldMail(
    services,
    about,
    async () => (await heldBytes(services, about))?.hash ?? null,
  )
}
