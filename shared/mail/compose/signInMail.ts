import type { MailContent } from './composeMail.ts'
import { serviceContent } from './serviceContent.ts'

/** Writes the mail with a sign-in link. */
export function signInMail(about: {
  requestId: string
  mailDomain: string
  address: string
  name: string
  link: string
  date: Date
  expiresAt: Date
}): MailContent {
  return serviceContent({
    id: about.requestId,
    mailDomain: about.mailDomain,
    address: about.address,
    date: about.date,
    subject: 'Sign in to Purser',
    lines: [
      `${about.name.replace(/\s+/g, ' ').trim()}, this link signs you in:`,
      about.link,
      '',
      `It works once, until ${about.expiresAt.toISOString()}, in the browser that asked for it.`,
      'If you did not ask for it, do nothing: nobody is signed in.',
    ],
  })
}
