/** Holds memory of the process while a mail that waits for its approval is composed or read. */
import { heldBytes, storedHeldHash } from '../../../sql/mail/approval/heldReads.ts'
import { findRawSize } from '../../../sql/mail/messages/attachments.ts'
import { peopleOf } from '../../http/limits/loopTime.ts'
import type { Services } from '../../http/services.ts'

/**
 * Sets how many times its size a mail counts towards the memory limit. Composing a mail needs up to eight times its
 * size for a moment, but with a factor of eight, one person could occupy the memory of all others.
 */
const COPIES = 3

type About = { projectId: string; messageId: string }

/**
 * Runs work that composes or reads a held mail, and holds memory for it. The people of one project would otherwise fill
 * the memory of the process with parallel requests for a mail of 25 MB. @throws {ApiError} 503 if the people of the
 * project already hold their share of the memory.
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
 * Returns the SHA-256 of the bytes that the service will send for a held mail. If the mail is not composed yet, the
 * function composes it. @returns null if the mail is deleted. @throws {ApiError} 503
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
