import { BlobsAwayError } from '../../../shared/blobs/objectStore.ts'
import { Costs } from '../../../shared/fair/costs.ts'
import { domainOf } from '../../../shared/mail/address.ts'
import type { BounceKeys } from '../../../shared/mail/compose/bounceAddress.ts'
import { admit, isRefused, type Rule } from '../../../shared/mail/emailRules.ts'
import {
  isForged,
  isUnsure,
  UNAUTHENTICATED_LABEL,
} from '../../../shared/mail/parse/authentication.ts'
import { type ParsedMail, unparseableMail } from '../../../shared/mail/parse/parseMail.ts'
import { reduceBounce } from '../../../shared/mail/parse/reduceBounce.ts'
import { isReportFile, isReportInbox } from '../../../shared/mail/reports/reportMail.ts'
import { type IndexedMail, indexed } from '../../../shared/mail/search/indexedMail.ts'
import { type Batcher, createBatcher } from '../../../shared/process/batcher.ts'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import { traced } from '../../../shared/process/tracing.ts'
import { PARSE_BATCH_MAX } from '../../../shared/tasks.ts'
import type { Blobs } from '../../../sql/blobs/blobs.ts'
import type { Pool } from '../../../sql/db.ts'
import { findVerifiedDomains } from '../../../sql/mail/domains/mailDomains.ts'
import { findReturnedCopy } from '../../../sql/mail/inbound/bounces.ts'
import { findComplainedCopy, recordComplaint } from '../../../sql/mail/inbound/complaints.ts'
import {
  discardInboundMail,
  findInboundMail,
  type InboundMail,
  type LargeInboundMail,
  parseAgainLater,
} from '../../../sql/mail/inbound/inboundMails.ts'
import { keepAttachments } from '../../../sql/mail/messages/attachments.ts'
import { ChildError } from '../../process/child.ts'
import type { PoolContext } from '../../queue/task.ts'
import type { LookUp } from '../lookUp.ts'
import { authenticateMail, findAnswers } from './authenticateMail.ts'
import { type DnsTurns, SlowDnsError } from './dnsTurns.ts'
import { createMailParser, type MailParser } from './mailParser.ts'
import { createParseTurns, type ParseTurn, type ParseTurns } from './parseTurns.ts'
import { sharersOf } from './sharers.ts'
import { createStoreBatcher } from './storeBatcher.ts'

export type ParseOptions = {
  mailDomain: string
  /** Looks up the DNS records of mail senders. */
  lookUp: LookUp
  /** Holds the keys with which the service recognises its own addresses for bounces and reports. */
  bounceKeys: BounceKeys
  /** Stores mail contents that are too large for the database. */
  blobs: Blobs
  /** Holds the inbox that receives the aggregate reports and the mail to the postmaster. */
  postmaster?: string | undefined
  /** Holds the number of mails that the pool parses at the same time. */
  slots: number
  /** Holds the load that each inbox and each sending network has recently caused. */
  costs?: Costs
}

/**
 * Limits the bytes of a mail header that stays in memory while its mail waits for DNS answers. The checks of a sender
 * refuse a longer header at once, so such a mail never waits.
 */
const HEADER_MAX_BYTES = 512 * 1024

type Parser = PoolContext &
  ParseOptions & {
    stores: ReturnType<typeof createStoreBatcher>
    verifiedDomains: Batcher<readonly string[], string[]>
    parser: MailParser
    turns: ParseTurns
    dnsTurns: DnsTurns
  }

/** Holds the settings for receiving one inbound mail. */
type Care = {
  /** Holds the rules of the inbox about allowed and blocked senders. */
  rules: readonly Rule[]
  /**
   * Forces the mail to be parsed in a child process, because an earlier parsing of this mail may have killed a process.
   */
  isolated: boolean
  /**
   * Allows the service to store the mail without parsing if the database refuses the parsed mail, or if the parser
   * process did not start or died.
   */
  storeAnyway: boolean
  /** Limits in milliseconds how long the service waits for DNS answers. */
  patienceMs: number
  /** Holds the DNS answers about the sender that the service already got while the mail waited earlier. */
  answers?: LookUp | undefined
  /** Holds the time of the first check of the sender for which DNS gave no answer, or `null` before such a check. */
  unsureSince: Date | null
}

/** Describes a mail whose sender has slow name servers. The object holds only the header bytes of the mail. */
type SlowSender = { mail: InboundMail; authors: readonly string[] }

export type ReceiveMail = {
  /**
   * Parses a mail, applies the rules of the inbox, authenticates the sender, and stores the mail. A message that cannot
   * be parsed is stored as raw bytes, with a label. The service reads the bytes of a large mail only when the parser is
   * free, so waiting mails take no memory and no database connections.
   * @returns the description of the mail if DNS did not answer within the time limit. The mail then stays in the queue.
   */
  receive(found: InboundMail | LargeInboundMail, care: Care): Promise<SlowSender | null>
  /** Waits for the DNS answers that authenticate a slow sender. */
  answersOf(sender: SlowSender): Promise<LookUp>
}

export function createReceiveMail(
  context: PoolContext,
  options: ParseOptions,
  dnsTurns: DnsTurns,
): ReceiveMail {
  const { costs = new Costs() } = options
  const parser: Parser = {
    ...context,
    ...options,
    stores: createStoreBatcher(context.pool, costs),
    verifiedDomains: createDomainBatcher(context.pool),
    parser: createMailParser(options.mailDomain, costs),
    turns: createParseTurns(costs),
    dnsTurns,
  }
  return {
    async receive(found, care) {
      const size = 'bytes' in found ? found.bytes.length : found.size
      const turn = await parser.turns.enter(sharersOf(found), size)
      try {
        const inbound =
          'bytes' in found
            ? found
            : await findInboundMail(parser.pool, parser.blobs, found.id, size)
        if (inbound === null || !('bytes' in inbound)) return null
        return await traced('parse mail', { kind: 'consumer', parent: inbound.traceparent }, () =>
          readAndStore(inbound, parser, { ...care, turn }),
        )
      } finally {
        turn.end()
      }
    },
    answersOf: ({ mail, authors }) =>
      dnsTurns.run(mail, Number.POSITIVE_INFINITY, (signal) =>
        findAnswers(mail, { ...options, ownHost: options.mailDomain, authors, signal }),
      ),
  }
}

/** Finds in one SQL statement the verified domains of concurrently parsed mails. */
const createDomainBatcher = (pool: Pool): Batcher<readonly string[], string[]> =>
  createBatcher({
    batchMax: PARSE_BATCH_MAX,
    parallel: 1,
    async run(mails: (readonly string[])[]) {
      const verified = await findVerifiedDomains(pool, [...new Set(mails.flat())])
      return mails.map((domains) => verified.filter((domain) => domains.includes(domain)))
    },
  })

async function readAndStore(
  inbound: InboundMail,
  {
    pool,
    log,
    mailDomain,
    lookUp,
    bounceKeys,
    blobs,
    postmaster,
    stores,
    verifiedDomains,
    parser,
    dnsTurns,
  }: Parser,
  {
    rules,
    isolated,
    storeAnyway,
    patienceMs,
    answers,
    unsureSince,
    turn,
  }: Care & { turn: ParseTurn },
): Promise<SlowSender | null> {
  const inboundId = inbound.id
  let parsed: IndexedMail
  try {
    const { projectId } = inbound
    parsed = await parser.parse(inbound.bytes, { projectId, sharers: sharersOf(inbound), isolated })
  } catch (error) {
    if (error instanceof ChildError && error.isAccident && !storeAnyway) throw error
    log.warn({ inboundId, err: error }, 'a message could not be parsed; it is stored unparsed')
    parsed = unparsed(inbound, mailDomain)
  }
  turn.parsed()
  const { mail } = parsed
  await recordAnyComplaint(mail, { pool, bounceKeys })
  const senders = { envelopeFrom: inbound.envelopeFrom, from: mail.from }
  if (mail.bounce !== null) mail.bounce.proof = await findReturnedCopy(pool, bounceKeys, inbound)
  const isProvenBounce = mail.bounce !== null && mail.bounce.proof !== null
  const discard = async () => {
    await discardInboundMail(pool, inboundId)
    return null
  }
  if (isRefused(rules, senders, { isProvenBounce })) return await discard()
  const checks = { lookUp: answers ?? lookUp, ownHost: mailDomain, authors: mail.from }
  const authenticate = (signal: AbortSignal) => authenticateMail(inbound, { ...checks, signal })
  // A mail whose DNS answers are already known does not wait for permission to query DNS. Otherwise a stranger's mails
  // would occupy the places for large mails in memory while they wait for that permission.
  const sender =
    answers === undefined
      ? await dnsTurns.run(inbound, patienceMs, authenticate).catch((error: unknown) => {
          if (error instanceof SlowDnsError) return null
          throw error
        })
      : await authenticate(new AbortController().signal)
  if (sender === null) return { mail: headerOf(inbound), authors: mail.from }
  turn.end()
  const { authentication, isAligned } = sender
  const admission = admit(rules, senders, {
    isProvenBounce,
    isAligned,
    isUnsure: isUnsure(authentication),
  })
  const waits = { id: inboundId, unsureSince: unsureSince ?? new Date() }
  if (admission === 'later' && (await parseAgainLater(pool, waits))) return null
  if (admission === 'discard' || admission === 'later') return await discard()
  if (admission === 'reduce') {
    parsed = indexed(reduced(mail, { ...inbound, mailDomain }), inbound.projectId)
  }
  const fromDomains = mail.from.map(domainOf)
  const isForgedIfOurs = (ownDomains: readonly string[]) =>
    isForged(sender, { fromDomains, ownDomains })
  // Most verdicts on senders do not depend on the domains that this service serves. Therefore the code queries these
  // domains only when a verdict depends on them.
  const isDomainForged =
    isForgedIfOurs([mailDomain]) ||
    (isForgedIfOurs(fromDomains) && isForgedIfOurs(await verifiedDomains.submit(fromDomains)))
  const store = async (as: IndexedMail) => {
    if (isDomainForged) as.mail.labels.push(UNAUTHENTICATED_LABEL)
    const objects = await keepAttachments(blobs, as.mail.attachments)
    const holdsReport =
      isReportInbox(inbound.inboxAddress, postmaster) && as.mail.attachments.some(isReportFile)
    const stored = { ...authentication, aligned: isAligned }
    return await stores.submit({ inbound, ...as, authentication: stored, objects, holdsReport })
  }
  const outcome = await store(parsed).catch((error: unknown) => {
    if (!storeAnyway || isDatabaseUnavailable(error) || error instanceof BlobsAwayError) throw error
    if (admission === 'reduce') throw error
    log.error({ inboundId, err: error }, 'a message could not be stored; it is stored unparsed')
    return store(unparsed(inbound, mailDomain))
  })
  log.debug({ inboundId, outcome }, 'inbound mail ended')
  return null
}

/** Returns a mail that holds only a copy of the header, so that the process can free the memory of the whole mail. */
function headerOf(mail: InboundMail): InboundMail {
  const end = /\r?\n\r?\n/.exec(mail.bytes.toString('latin1', 0, HEADER_MAX_BYTES))
  const length = end === null ? HEADER_MAX_BYTES : end.index + end[0].length
  return { ...mail, bytes: Buffer.from(mail.bytes.subarray(0, length)) }
}

/**
 * Records a complaint about a mail of this service. The complaint quotes an address that only this service can make, so
 * the rules of the inbox do not apply. If the service receives the same complaint mail twice, it records the complaint
 * only once.
 */
async function recordAnyComplaint(
  { complaint, from }: ParsedMail,
  { pool, bounceKeys }: Pick<Parser, 'pool' | 'bounceKeys'>,
): Promise<void> {
  if (complaint === null) return
  const copy = await findComplainedCopy(pool, bounceKeys, complaint.returnPaths)
  if (copy === null) return
  await recordComplaint(pool, { ...copy, detail: `reported by ${from.join(', ')}` })
}

/** Returns a raw message with a label, as the substitute for a message that cannot be parsed or stored. */
const unparsed = ({ bytes, projectId }: InboundMail, mailDomain: string): IndexedMail =>
  indexed(unparseableMail(bytes, mailDomain), projectId)

/**
 * Removes from an authentic bounce all texts that the sender of the bounce could choose freely. The inbox accepts such
 * a bounce even from a sender who is not allowed, so these texts must not reach the inbox.
 */
function reduced(
  mail: ParsedMail,
  place: { inboxAddress: string; mailDomain: string },
): ParsedMail {
  const bounce = mail.bounce!
  return reduceBounce(mail, { bounce, proof: bounce.proof! }, place)
}
