/**
 * Parses messages for `createMailParser`, which kills this process if a message takes too much time or memory to parse.
 */

import { parseMail } from '../../../shared/mail/parse/parseMail.ts'
import { indexed } from '../../../shared/mail/search/indexedMail.ts'
import { serveParent } from '../../process/child.ts'

/** Describes a message that the parser process parses. */
export type ParseRequest = { raw: Uint8Array; domain: string; projectId: string }

serveParent(async ({ raw, domain, projectId }: ParseRequest) =>
  indexed(await parseMail(raw, domain), projectId),
)
