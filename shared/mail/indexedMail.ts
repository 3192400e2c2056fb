import type { ParsedMail } from './parseMail.ts'
import { searchVector } from './searchTerms.ts'

/** A parsed mail with the text form of its search vector. */
export type IndexedMail = { mail: ParsedMail; search: string }

/** Adds the search vector for the mail's project. It takes as long as the parser. */
export const indexed = (mail: ParsedMail, projectId: string): IndexedMail => ({
  mail,
  search: searchVector(projectId, {
    subject: mail.subject,
    from: mail.from,
    to: [...mail.to, ...mail.cc],
    text: [mail.text, ...mail.attachments.map(({ filename }) => filename)].join('\n'),
  }),
})
