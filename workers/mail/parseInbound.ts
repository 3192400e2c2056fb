import { domainOf } from '../../shared/mail/address.ts'
import { isForged, UNAUTHENTICATED_LABEL } from '../../shared/mail/authentication.ts'
import { isBlocked, isReceived } from '../../shared/mail/emailRules.ts'
import {
  type ReceivedMail,
  readReceivedMail,
  unparseableMail,
} from '../../shared/mail/receivedMail.ts'
import { isBounceOfOurs } from '../../sql/mail/bounces.ts'
import { readRules } from '../../sql/mail/emailRules.ts'
import { discardArrival, findArrival } from '../../sql/mail/inbound.ts'
import { findVerifiedDomains } from '../../sql/mail/mailDomains.ts'
import type { Task } from '../pool.ts'
import { authenticateMail } from './authenticateMail.ts'
import { readMailApart } from './readMailApart.ts'
import { storeBatches } from './storeBatches.ts'

/**
 * A job fetched this often without an end may hold a message that takes its process down, or have been fetched together
 * with one: from then on it is parsed in a process of its own.
 */
const ATTEMPTS_IN_COMPANY = 3

/** Parses one arrival and stores it in its inbox. A message that no parser can read is stored as it came, labelled. */
export const parseInbound: Task<'parse_inbound'> = async (
  { inboundId },
  { pool, log, mailDomain, lookUp },
  { attempt },
) => {
  const arrival = await findArrival(pool, inboundId)
  if (arrival === null) return
  let mail: ReceivedMail
  try {
    mail =
      attempt > ATTEMPTS_IN_COMPANY
        ? await readMailApart(arrival.bytes, mailDomain)
        : await readReceivedMail(arrival.bytes, mailDomain)
  } catch (error) {
    log.warn({ inboundId, err: error }, 'a message could not be parsed; it is kept as it came')
    mail = unparseableMail(arrival.bytes, mailDomain)
  }
  const rules = await readRules(pool, arrival.projectId, ['RECEIVE'])
  const senders = { envelopeFrom: arrival.envelopeFrom, from: mail.from }
  const isHeard =
    isReceived(rules, senders) ||
    (mail.bounce !== null &&
      !isBlocked(rules, senders) &&
      (await isBounceOfOurs(pool, arrival.projectId, mail.bounce)))
  if (!isHeard) return discardArrival(pool, inboundId)
  const authentication = await authenticateMail(arrival, {
    lookUp,
    ownHost: mailDomain,
    authors: mail.from,
  })
  const fromDomains = mail.from.map(domainOf)
  const ownDomains = [mailDomain, ...(await findVerifiedDomains(pool, fromDomains))]
  if (isForged(authentication, { fromDomains, ownDomains })) {
    mail.labels.push(UNAUTHENTICATED_LABEL)
  }
  const outcome = await storeBatches(pool).submit({ arrival, mail, authentication })
  log.debug({ inboundId, outcome }, 'arrival dealt with')
}
