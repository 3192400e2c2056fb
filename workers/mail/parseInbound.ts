import { domainOf } from '../../shared/mail/address.ts'
import { isForged, isUnsure, UNAUTHENTICATED_LABEL } from '../../shared/mail/authentication.ts'
import type { BounceKeys } from '../../shared/mail/bounceAddress.ts'
import { admit, isRefused } from '../../shared/mail/emailRules.ts'
import { type ParsedMail, parseMail, unparseableMail } from '../../shared/mail/parseMail.ts'
import { reduceBounce } from '../../shared/mail/reduceBounce.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { findReturnedCopy } from '../../sql/mail/bounces.ts'
import { readRules } from '../../sql/mail/emailRules.ts'
import {
  discardInboundMail,
  findInboundMail,
  type InboundMail,
  parseAgainLater,
} from '../../sql/mail/inboundMails.ts'
import { findVerifiedDomains } from '../../sql/mail/mailDomains.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { authenticateMail } from './authenticateMail.ts'
import { createByteSemaphore } from './byteSemaphore.ts'
import type { LookUp } from './lookUp.ts'
import { parseInProcess } from './parserProcess.ts'
import { createStoreBatcher } from './storeBatcher.ts'

/**
 * A job fetched this often without an end may hold a message that kills its process, or share the process with one.
 * From then on its message is parsed in a child process.
 */
const ATTEMPTS_BEFORE_ISOLATION = 3

/** The database will always refuse a message that it refused this often: the message is stored unparsed. */
const ATTEMPTS_TO_STORE = 5

/** Every slot may hold a message up to this size. */
const SMALL_BYTES = 1024 * 1024
/** Bytes of larger messages that a process holds at once. The parser takes ten times the size of a message. */
const LARGE_BYTES_HELD = 48 * 1024 * 1024

type ParseOptions = {
  mailDomain: string
  /** Asks the DNS about senders. */
  lookUp: LookUp
  /** Recognise the addresses that reports come back to. */
  bounceKeys: BounceKeys
}

type Parser = PoolContext & ParseOptions & { stores: ReturnType<typeof createStoreBatcher> }

/** Parses an inbound mail and stores it in its inbox. A large one waits for free bytes. */
export const createParseInbound = (
  context: PoolContext,
  options: ParseOptions,
): Task<'parse_inbound'> => {
  const { pool } = context
  const parser = { ...context, ...options, stores: createStoreBatcher(pool) }
  const large = createByteSemaphore(LARGE_BYTES_HELD)
  return async ({ inboundId }, { attempt }) => {
    const found = await findInboundMail(pool, inboundId, SMALL_BYTES)
    if (found === null) return
    if ('bytes' in found) return await readAndStore(found, parser, attempt)
    const leave = await large.enter(found.size)
    try {
      const inbound = await findInboundMail(pool, inboundId, found.size)
      if (inbound !== null && 'bytes' in inbound) await readAndStore(inbound, parser, attempt)
    } finally {
      leave()
    }
  }
}

/** Parses, filters by the inbox's rules, authenticates and stores. An unparseable message is stored raw, with a label. */
async function readAndStore(
  inbound: InboundMail,
  { pool, log, mailDomain, lookUp, bounceKeys, stores }: Parser,
  attempt: number,
): Promise<void> {
  const inboundId = inbound.id
  let mail: ParsedMail
  try {
    mail =
      attempt > ATTEMPTS_BEFORE_ISOLATION
        ? await parseInProcess(inbound.bytes, mailDomain)
        : await parseMail(inbound.bytes, mailDomain)
  } catch (error) {
    log.warn({ inboundId, err: error }, 'a message could not be parsed; it is stored unparsed')
    mail = unparseableMail(inbound.bytes, mailDomain)
  }
  const rules = await readRules(pool, inbound.projectId, ['RECEIVE'])
  const senders = { envelopeFrom: inbound.envelopeFrom, from: mail.from }
  if (mail.bounce !== null) mail.bounce.proof = await findReturnedCopy(pool, bounceKeys, inbound)
  const isProvenBounce = mail.bounce !== null && mail.bounce.proof !== null
  if (isRefused(rules, senders, { isProvenBounce })) return discardInboundMail(pool, inboundId)
  const sender = await authenticateMail(inbound, {
    lookUp,
    ownHost: mailDomain,
    authors: mail.from,
  })
  const { authentication, isAligned } = sender
  const admission = admit(rules, senders, {
    isProvenBounce,
    isAligned,
    isUnsure: isUnsure(authentication),
  })
  if (admission === 'later' && (await parseAgainLater(pool, inbound))) return
  if (admission === 'discard' || admission === 'later') return discardInboundMail(pool, inboundId)
  if (admission === 'reduce') mail = reduced(mail, { ...inbound, mailDomain })
  const fromDomains = mail.from.map(domainOf)
  const ownDomains = [mailDomain, ...(await findVerifiedDomains(pool, fromDomains))]
  if (isForged(sender, { fromDomains, ownDomains })) {
    mail.labels.push(UNAUTHENTICATED_LABEL)
  }
  const store = (as: ParsedMail) => stores.submit({ inbound, mail: as, authentication })
  const outcome = await store(mail).catch((error: unknown) => {
    if (attempt <= ATTEMPTS_TO_STORE || isDatabaseUnavailable(error)) throw error
    if (admission === 'reduce') throw error
    log.error({ inboundId, err: error }, 'a message could not be stored; it is stored unparsed')
    return store(unparseableMail(inbound.bytes, mailDomain))
  })
  log.debug({ inboundId, outcome }, 'inbound mail ended')
}

/** A proven bounce as an allow list lets it through. */
function reduced(
  mail: ParsedMail,
  place: { inboxAddress: string; mailDomain: string },
): ParsedMail {
  const { bounce } = mail
  if (bounce === null || bounce.proof === null) return mail
  return reduceBounce(mail, { bounce, proof: bounce.proof }, place)
}
