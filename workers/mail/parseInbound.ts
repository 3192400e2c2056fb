import { networkSubject } from '../../shared/http/networkSubject.ts'
import { domainOf } from '../../shared/mail/address.ts'
import { isForged, isUnsure, UNAUTHENTICATED_LABEL } from '../../shared/mail/authentication.ts'
import type { BounceKeys } from '../../shared/mail/bounceAddress.ts'
import { admit, isRefused } from '../../shared/mail/emailRules.ts'
import { type IndexedMail, indexed } from '../../shared/mail/indexedMail.ts'
import { type ParsedMail, unparseableMail } from '../../shared/mail/parseMail.ts'
import { reduceBounce } from '../../shared/mail/reduceBounce.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { FairTurns } from '../../shared/process/fairTurns.ts'
import type { Pool } from '../../sql/db.ts'
import { findReturnedCopy } from '../../sql/mail/bounces.ts'
import { readRules } from '../../sql/mail/emailRules.ts'
import {
  discardInboundMail,
  findInboundMail,
  type InboundMail,
  parseAgainLater,
} from '../../sql/mail/inboundMails.ts'
import { findVerifiedDomains } from '../../sql/mail/mailDomains.ts'
import { addJob } from '../../sql/queue/jobs.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { authenticateMail } from './authenticateMail.ts'
import type { LookUp } from './lookUp.ts'
import { createMailParser, type MailParser } from './mailParser.ts'
import { Shares } from './shares.ts'
import { createStoreBatcher } from './storeBatcher.ts'

/**
 * A job fetched this often without an end may hold a message that kills its process, or share the process with one.
 * From then on its message is parsed in a child process.
 */
const ATTEMPTS_BEFORE_ISOLATION = 3

/** The database will always refuse a message that it refused this often: the message is stored unparsed. */
const ATTEMPTS_TO_STORE = 5

/** Every slot may hold a message up to this size. */
const SMALL_BYTES = 256 * 1024
/** Larger messages in memory at once. The parser takes ten times the size of a message. */
const LARGE_AT_ONCE = 4
/** Mails of one network that wait for DNS answers at once, and the part of the slots for all that wait. */
const WAITING_PER_NETWORK = 8
const WAITING_PART = 3 / 4

type ParseOptions = {
  mailDomain: string
  /** Asks the DNS about senders. */
  lookUp: LookUp
  /** Recognise the addresses that reports come back to. */
  bounceKeys: BounceKeys
  /** Jobs that the pool runs at the same time. */
  slots: number
}

type Parser = PoolContext &
  ParseOptions & {
    stores: ReturnType<typeof createStoreBatcher>
    parser: MailParser
    /** Turns of mails that wait for DNS answers, by network. */
    dnsTurns: FairTurns
  }

/**
 * Parses an inbound mail and stores it in its inbox. Inboxes, and sending networks, share the slots. A mail that finds
 * its share in use comes back later.
 */
export const createParseInbound = (
  context: PoolContext,
  options: ParseOptions,
): Task<'parse_inbound'> => {
  const { pool } = context
  const parser: Parser = {
    ...context,
    ...options,
    stores: createStoreBatcher(pool),
    parser: createMailParser(options.mailDomain),
    dnsTurns: new FairTurns({
      total: Math.ceil(options.slots * WAITING_PART),
      perOwner: WAITING_PER_NETWORK,
    }),
  }
  const shares = new Shares(options.slots)
  const large = new FairTurns({ total: LARGE_AT_ONCE, perOwner: LARGE_AT_ONCE / 2 })
  return async ({ inboundId }, { attempt }) => {
    const found = await findInboundMail(pool, inboundId, SMALL_BYTES)
    if (found === null) return
    const place = shares.enter(sharersOf(found))
    if (!place.granted) return await postpone(pool, inboundId, place.returnInMs)
    let leaveLarge = () => {}
    try {
      if ('bytes' in found) return await readAndStore(found, parser, attempt)
      leaveLarge = await large.enter(found.projectId)
      const inbound = await findInboundMail(pool, inboundId, found.size)
      if (inbound !== null && 'bytes' in inbound) await readAndStore(inbound, parser, attempt)
    } finally {
      leaveLarge()
      place.leave()
    }
  }
}

type Sharing = Pick<InboundMail, 'projectId' | 'remoteIp'>

const sharersOf = ({ projectId, remoteIp }: Sharing): string[] => [
  projectId,
  networkOf({ projectId, remoteIp }),
]

/** The network that sent a mail; for mail of an inbox of this service, the inbox that receives it. */
const networkOf = ({ projectId, remoteIp }: Sharing): string =>
  remoteIp === null ? `internal ${projectId}` : networkSubject(remoteIp)

const postpone = (pool: Pool, inboundId: string, inMs: number): Promise<void> =>
  patiently(() =>
    addJob(pool, {
      task: 'parse_inbound',
      payload: { inboundId },
      key: `parse_inbound:${inboundId}`,
      runAt: new Date(Date.now() + inMs),
    }),
  )

/** Parses, filters by the inbox's rules, authenticates and stores. An unparseable message is stored raw, with a label. */
async function readAndStore(
  inbound: InboundMail,
  { pool, log, mailDomain, lookUp, bounceKeys, stores, parser, dnsTurns }: Parser,
  attempt: number,
): Promise<void> {
  const inboundId = inbound.id
  let parsed: IndexedMail
  try {
    const isolated = attempt > ATTEMPTS_BEFORE_ISOLATION
    parsed = await parser.parse(inbound.bytes, inbound.projectId, isolated)
  } catch (error) {
    log.warn({ inboundId, err: error }, 'a message could not be parsed; it is stored unparsed')
    parsed = unparsed(inbound, mailDomain)
  }
  const { mail } = parsed
  const rules = await readRules(pool, inbound.projectId, ['RECEIVE'])
  const senders = { envelopeFrom: inbound.envelopeFrom, from: mail.from }
  if (mail.bounce !== null) mail.bounce.proof = await findReturnedCopy(pool, bounceKeys, inbound)
  const isProvenBounce = mail.bounce !== null && mail.bounce.proof !== null
  if (isRefused(rules, senders, { isProvenBounce })) return discardInboundMail(pool, inboundId)
  const leaveDns = await dnsTurns.enter(networkOf(inbound))
  const sender = await authenticateMail(inbound, {
    lookUp,
    ownHost: mailDomain,
    authors: mail.from,
  }).finally(leaveDns)
  const { authentication, isAligned } = sender
  const admission = admit(rules, senders, {
    isProvenBounce,
    isAligned,
    isUnsure: isUnsure(authentication),
  })
  if (admission === 'later' && (await parseAgainLater(pool, inbound))) return
  if (admission === 'discard' || admission === 'later') return discardInboundMail(pool, inboundId)
  if (admission === 'reduce') {
    parsed = indexed(reduced(mail, { ...inbound, mailDomain }), inbound.projectId)
  }
  const fromDomains = mail.from.map(domainOf)
  const ownDomains = [mailDomain, ...(await findVerifiedDomains(pool, fromDomains))]
  if (isForged(sender, { fromDomains, ownDomains })) {
    parsed.mail.labels.push(UNAUTHENTICATED_LABEL)
  }
  const store = (as: IndexedMail) => stores.submit({ inbound, ...as, authentication })
  const outcome = await store(parsed).catch((error: unknown) => {
    if (attempt <= ATTEMPTS_TO_STORE || isDatabaseUnavailable(error)) throw error
    if (admission === 'reduce') throw error
    log.error({ inboundId, err: error }, 'a message could not be stored; it is stored unparsed')
    return store(unparsed(inbound, mailDomain))
  })
  log.debug({ inboundId, outcome }, 'inbound mail ended')
}

/** The substitute for a message that cannot be parsed or stored. */
const unparsed = ({ bytes, projectId }: InboundMail, mailDomain: string): IndexedMail =>
  indexed(unparseableMail(bytes, mailDomain), projectId)

/** A proven bounce as an allow list lets it through. */
function reduced(
  mail: ParsedMail,
  place: { inboxAddress: string; mailDomain: string },
): ParsedMail {
  const { bounce } = mail
  if (bounce === null || bounce.proof === null) return mail
  return reduceBounce(mail, { bounce, proof: bounce.proof }, place)
}
