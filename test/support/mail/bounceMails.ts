/** Makes bounces of the service's messages in the formats of common mail servers. */

export type BounceOf = {
  messageId: string
  recipient: string
  /** Holds the recipient of the bounce. */
  to: string
  status?: string
  said?: string
  action?: 'failed' | 'delayed' | 'delivered'
  /** Holds the address in Final-Recipient if it differs from the recipient. */
  final?: string
  original?: string
}

const returned = ({ messageId, recipient, to }: BounceOf) =>
  `Received: by mx.test; Mon, 5 Jan 2026 09:30:00 +0000\nFrom: <${to}>\nTo: ${recipient}\nSubject: Offer\nMessage-ID: ${messageId}\nDate: Mon, 5 Jan 2026 09:30:00 +0000\n`

let bounces = 0
const head = (to: string, from: string, more = '') =>
  `From: ${from}\nTo: ${to}\nSubject: Undelivered Mail Returned to Sender\nMessage-ID: <bounce${++bounces}@mx.test>\nDate: Mon, 5 Jan 2026 09:31:00 +0000\n${more}`

/** Makes a bounce report of RFC 3464 in the form that Postfix, Gmail and Exchange use. */
export function standardBounce(bounce: BounceOf, returnedAs = 'message/rfc822'): string {
  const { to, recipient, status = '5.1.1', action = 'failed', final = recipient } = bounce
  const said = bounce.said ?? `550 ${status} <${recipient}>: Recipient address rejected`
  const original =
    bounce.original === undefined ? '' : `Original-Recipient: rfc822;${bounce.original}\n`
  return `${head(to, 'Mail Delivery System <MAILER-DAEMON@mx.test>', 'Auto-Submitted: auto-replied\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=delivery-status; boundary="b"\n')}
--b
Content-Type: text/plain; charset=us-ascii

I'm sorry to have to inform you that your message could not be delivered.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.test
Arrival-Date: Mon, 5 Jan 2026 09:30:00 +0000

${original}Final-Recipient: rfc822; ${final}
Action: ${action}
Status: ${status}
Remote-MTA: dns; mx.test
Diagnostic-Code: smtp; ${said.replace(/(.{40}\S*) /g, '$1\n    ')}

--b
Content-Type: ${returnedAs}

${returned(bounce)}
Text
--b--
`
}

export const qmailBounce = (
  bounce: BounceOf,
): string => `${head(bounce.to, 'MAILER-DAEMON@mx.test')}
Hi. This is the qmail-send program at mx.test.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<${bounce.recipient}>:
192.0.2.1 does not like recipient.
Remote host said: 550 5.1.1 <${bounce.recipient}>... User unknown
Giving up on 192.0.2.1.

--- Below this line is a copy of the message.

Return-Path: <${bounce.to}>
${returned(bounce)}
Text
`

export const eximBounce = (
  bounce: BounceOf,
): string => `${head(bounce.to, 'Mail Delivery System <Mailer-Daemon@mx.test>', `X-Failed-Recipients: ${bounce.recipient}\nAuto-Submitted: auto-replied\n`)}
This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  ${bounce.recipient}
    SMTP error from remote mail server after RCPT TO:<${bounce.recipient}>:
    host mx.test [192.0.2.1]: 550 5.1.1 No such user

------ This is a copy of the message, including all the headers. ------

Return-path: <${bounce.to}>
${returned(bounce)}
Text
`

export const exchangeBounce = (
  bounce: BounceOf,
): string => `${head(bounce.to, 'postmaster@mx.test')}
Delivery has failed to these recipients or distribution lists:

${bounce.recipient}
The recipient's e-mail address was not found in the recipient's e-mail system.

Diagnostic information for administrators:

Generating server: mx.test

${bounce.recipient}
#550 5.1.1 RESOLVER.ADR.RecipNotFound; not found ##

Original message headers:

${returned(bounce)}
`

export const gmailBounce = (
  bounce: BounceOf,
): string => `${head(bounce.to, 'Mail Delivery Subsystem <mailer-daemon@googlemail.com>', `X-Failed-Recipients: ${bounce.recipient}\n`)}
Delivery to the following recipient failed permanently:

     ${bounce.recipient}

Technical details of permanent failure:
The error that the other server returned was:
550 5.1.1 <${bounce.recipient}>... User Unknown

----- Original message -----

${returned(bounce)}
Text
`
