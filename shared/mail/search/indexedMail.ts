import type { ParsedMail } from '../parse/parseMail.ts'
import { binarySearchVector } from './searchTerms.ts'

/** Holds a parsed mail with its search vector in binary form. */
export type IndexedMail = { mail: ParsedMail; search: Uint8Array }

/**
 * Adds the search vector to a parsed mail, so that its project can search the mail. Making the vector takes half as
 * long as parsing the mail.
 */
export const indexed = (mail: ParsedMail, projectId: string): IndexedMail => ({
  mail,
  search: binarySearchVector(projectId, {
    subject: mail.subject,
    from: mail.from,
    to: [...mail.to, ...mail.cc],
    text: [mail.text, ...mail.attachments.map(({ filename }) => filename)].join('\n'),
  }),
})
