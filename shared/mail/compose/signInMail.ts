import type { MailContent } from './composeMail.ts'

/** The mail with a sign-in link. */
export function signInMail(about: {
  requestId: string
  mailDomain: string
  address: string
  name: string
  link: string
  date: Date
  expiresAt: Date
}): MailContent {
  return {
    messageId: `<${about.requestId}@${about.mailDomain}>`,
    date: about.date,
    fromName: 'Purser',
    fromAddress: `no-reply@${about.mailDomain}`,
    to: [about.address],
    cc: [],
    names: {},
    subject: 'Sign in to Purser',
    text: [
      `${about.name.replace(/\s+/g, ' ').trim()}, this link signs you in:`,
      about.link,
      '',
      `It works once, until ${about.expiresAt.toISOString()}, in the browser that asked for it.`,
      'If you did not ask for it, do nothing: nobody is signed in.',
      '',
    ].join('\n'),
    html: null,
    inReplyTo: [],
    references: [],
    attachments: [],
    unsubscribe: null,
    // RFC 3834: no automatic answers.
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}
