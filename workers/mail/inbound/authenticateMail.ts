import type { AuthenticateResult, DNSResolver } from 'mailauth'
import { addressKey, asciiDomain, domainOf, isDomain } from '../../../shared/mail/address.ts'
import {
  type Authentication,
  type AuthenticationWord,
  authenticationWord,
  type CheckedSender,
  INTERNAL,
  UNREADABLE,
} from '../../../shared/mail/parse/authentication.ts'
import { authenticable, countFields } from '../../../shared/mail/parse/authenticationBounds.ts'
import type { InboundMail } from '../../../sql/mail/inbound/inboundMails.ts'
import type { LookUp } from '../lookUp.ts'

/**
 * The following constants set time limits in milliseconds: for one DNS answer, for SPF, DKIM and ARC together, and for
 * DMARC. DMARC has its own time limit, because the forger of a From address may own name servers that delay the other
 * checks.
 */
const ANSWER_MS = 4_000
const SIGNS_MS = 8_000
const DMARC_MS = 6_000
/**
 * Limits how many DKIM signatures of a message are checked. Each DKIM signature costs a DNS lookup of the signing key
 * and a hash of the message body. A message with more DKIM signatures than this limit is an attack. RFC 6376 §8.4 lets
 * the verifier choose how many DKIM signatures it checks.
 */
const SIGNATURES_MAX = 10
/**
 * Limits the bytes that all DKIM signatures of a message hash together. Ten signatures over a body of 33 MB blocked the
 * process for seven seconds. One signature of a message always counts, and the signatures of its authors come first.
 */
const HASHED_MAX_BYTES = 16 * 1024 * 1024

type Checks = { lookUp: LookUp; ownHost: string; authors: readonly string[]; signal: AbortSignal }

/**
 * Loads the library mailauth only for the first mail from outside, because the library takes 14 MB of memory and 0.1 s
 * of CPU time in each process.
 */
const library = () => import('mailauth')

/**
 * Authenticates the sender of a message by its envelope, its signatures and DNS.
 * @param authors are the addresses in the header field From, as a mail program shows them.
 * @param signal ends the wait for DNS answers, as if no name server answered.
 * @returns verdicts on the sender of a message. A message whose authentication fails is not refused here, because the
 * rules of the inbox and the reader of the message decide.
 */
export async function authenticateMail(
  { bytes, remoteIp, helo, envelopeFrom, provider }: InboundMail,
  { lookUp, ownHost, authors, signal }: Checks,
): Promise<CheckedSender> {
  if (remoteIp === null) return { authentication: INTERNAL, isAligned: true }
  const extent = authenticable(bytes)
  if (extent === 'no') return STRANGER
  try {
    const affordable = Math.floor(HASHED_MAX_BYTES / bytes.length)
    const most = Math.max(1, Math.min(SIGNATURES_MAX, affordable))
    const signed = withSignatures(bytes, extent === 'whole' ? most : 0, authors.map(domainOf))
    const { authenticate } = await library()
    const found = await authenticate(signed, {
      ip: remoteIp,
      helo: helo ?? '',
      // The SMTP library has decoded the domain of the envelope sender. SPF works only with A-labels (the ASCII form of
      // international domain names), so the code converts the domain back.
      sender: addressKey(envelopeFrom),
      mta: ownHost,
      resolver: withDeadline(lookUp, SIGNS_MS, signal),
      trustReceived: false,
      disableDmarc: true,
      disableBimi: true,
    })
    // SPF checks the IP address of the sender. If a mail service delivered the mail, the connecting address belongs to
    // the mail service, so SPF cannot check the sender.
    const signs = provider === null ? found : { ...found, spf: false as const }
    const { spf, dkim, arc } = signs
    const fields = countFields(bytes)
    const words = dkim.results.map((signature) => signatureWord(signature, fields))
    const proof = proofOf(spf, dkim.results, words)
    const isSingle = (fields.get('from') ?? 0) <= 1
    const dmarc = isSingle
      ? await dmarcWord(authors, proof, withDeadline(lookUp, DMARC_MS, signal))
      : 'permerror'
    const authentication: Authentication = {
      spf: authenticationWord(spf === false ? undefined : spf?.status.result),
      dkim: dkimWord(words),
      dmarc,
      arc: authenticationWord(arc === false ? undefined : arc?.status?.result),
      internal: false,
      ...(provider?.spf == null ? {} : { providerSpf: provider.spf }),
    }
    // If the DMARC record of a domain cannot be read, the domain may demand strict alignment, so the check assumes
    // strict alignment.
    const policy = dmarc === 'temperror' ? strictPolicy : anyPolicy
    const isProvable = isSingle && dmarc !== 'fail'
    const isAligned = isProvable && (await dmarcWord(authors, proof, policy)) === 'pass'
    return { authentication, isAligned }
  } catch {
    // If the library mailauth cannot read a message, no sender of the message counts as authenticated.
    return STRANGER
  }
}

/** Sets the maximum number of DKIM signatures and ARC seals of one mail whose keys the service looks up in the DNS. */
const KEYS_MAX = 40

/**
 * Looks up all DNS records that authenticate a mail, and needs only the header of the mail. Therefore the service can
 * free the bytes of a large mail while the name servers of its sender delay their answers.
 * @returns a lookup function that answers from the DNS answers found here. For any other DNS record, this function
 * reports that the name server did not answer.
 */
export async function findAnswers(mail: InboundMail, checks: Checks): Promise<LookUp> {
  const asked = new Map<string, ReturnType<LookUp>>()
  const answers = new Map<string, { records: Awaited<ReturnType<LookUp>> } | { error: unknown }>()
  const keyOf = (name: string, type: string) => `${type} ${name.toLowerCase()}`
  const lookUp: LookUp = (name, type) => {
    const key = keyOf(name, type)
    const known = asked.get(key)
    if (known !== undefined) return known
    const answer = checks.lookUp(name, type)
    asked.set(key, answer)
    answer.then(
      (records) => answers.set(key, { records }),
      (error: unknown) => answers.set(key, { error }),
    )
    return answer
  }
  // The function looks up the signing keys itself, because mailauth looks up no key for a signature whose body is
  // absent, as it is here.
  const resolver = withDeadline(lookUp, SIGNS_MS, checks.signal)
  await Promise.allSettled([
    authenticateMail(mail, { ...checks, lookUp }),
    ...keyNames(mail.bytes, checks.authors).map((name) => resolver(name, 'TXT')),
  ])
  return async (name, type) => {
    const answer = answers.get(keyOf(name, type))
    if (answer === undefined) throw silence(name)
    if ('error' in answer) throw answer.error
    return answer.records
  }
}

const STRANGER: CheckedSender = { authentication: UNREADABLE, isAligned: false }

/**
 * Simulates a DNS in which every domain has a DMARC policy. In such a DNS, DMARC passes for an aligned author (an
 * author whom SPF or DKIM proves), and fails for any other author.
 */
const anyPolicy: DNSResolver = async () => [['v=DMARC1; p=none']]
/** Simulates a DNS in which every domain has a DMARC policy with strict alignment. */
const strictPolicy: DNSResolver = async () => [['v=DMARC1; p=none; adkim=s; aspf=s']]

/** Holds the domains that SPF and DKIM prove to have sent a message. */
type Proof = { spfDomains: string[]; dkimDomains: string[] }

/**
 * Returns the domains that SPF and the signatures prove to have sent a message. The function leaves out a name such as
 * `victim.test/.attacker.test`. mailauth looks up the DNS records of the attacker for this name. When it compares
 * domains, however, it reads the name as a URL, and would take it for the victim's domain.
 */
function proofOf(
  spf: AuthenticateResult['spf'],
  signatures: readonly Signature[],
  words: readonly string[],
): Proof {
  const isProven = spf !== false && spf?.status.result === 'pass'
  const spfDomains = isProven ? [asciiDomain(spf.domain)].filter(isDomain) : []
  const proven = signatures.filter((_, n) => words[n] === 'pass')
  return { spfDomains, dkimDomains: proven.map(({ signingDomain }) => asciiDomain(signingDomain)) }
}

/**
 * Returns the DMARC verdict on a message. A DMARC verdict is possible only if all authors of the message have the same
 * domain (RFC 7489 §6.6.1). If a message has several author domains or an invalid author domain, no sender of the
 * message counts as proven.
 */
async function dmarcWord(
  authors: readonly string[],
  { spfDomains, dkimDomains }: Proof,
  resolver: DNSResolver,
): Promise<AuthenticationWord> {
  const [domain, ...others] = new Set(authors.map(domainOf))
  if (domain === undefined) return 'none'
  if (others.length > 0 || !isDomain(domain)) return 'permerror'
  const { dmarc } = await library()
  const verdict = await dmarc({
    headerFrom: domain,
    spfDomains,
    dkimDomains: dkimDomains.map((one) => ({ domain: one })),
    resolver,
  })
  if (verdict === false) return 'none'
  const { status, alignment, rr = '' } = verdict
  if (status.result !== 'pass') return authenticationWord(status.result)
  // mailauth 4.13.3 reads the strict mode, but then compares only the organizational domains. Therefore the code itself
  // compares the exact domains in the strict mode.
  const author = asciiDomain(domain)
  const isProven =
    (STRICT_SPF.test(rr) ? spfDomains.includes(author) : Boolean(alignment.spf.result)) ||
    (STRICT_DKIM.test(rr) ? dkimDomains.includes(author) : Boolean(alignment.dkim.result))
  return isProven ? 'pass' : 'fail'
}

/** Match the tags of a DMARC record that demand the exact domain of the author (RFC 7489 §6.3). */
const STRICT_SPF = /;\s*aspf\s*=\s*s\s*(?:;|$)/i
const STRICT_DKIM = /;\s*adkim\s*=\s*s\s*(?:;|$)/i

/**
 * Creates a DNS resolver with one deadline for all its queries. A DNS answer that arrives after this deadline, or after
 * the signal, is ignored, as if the name server had not answered.
 */
function withDeadline(lookUp: LookUp, totalMs: number, signal: AbortSignal): DNSResolver {
  const deadline = performance.now() + totalMs
  return async (name, type) => {
    if (signal.aborted) throw silence(name)
    const { promise: late, reject } = Promise.withResolvers<never>()
    const stop = () => reject(silence(name))
    const timer = setTimeout(stop, Math.max(0, Math.min(ANSWER_MS, deadline - performance.now())))
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await Promise.race([lookUp(name, type) as ReturnType<DNSResolver>, late])
    } catch (error) {
      // RFC 7208 §2.6.6 demands temperror after an unknown error, but for SPF, mailauth takes such an error as proof
      // that the record does not exist. Therefore the code throws the error of a silent name server instead.
      throw ABSENT.includes((error as { code?: string }).code ?? '') ? error : silence(name)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }
}

/** Lists the error codes that mean that a DNS name or record does not exist. */
const ABSENT = ['ENOTFOUND', 'ENODATA']

const silence = (name: string): Error =>
  Object.assign(new Error(`no answer in time: ${name}`), { code: 'ETIMEOUT' })

/**
 * Returns the verdict on one DKIM signature. If the message body was changed after signing, the verdict on the DKIM
 * signature is `fail` (RFC 8601 §2.7.1). mailauth reports `neutral` both for a changed message body and for a DKIM key
 * that it cannot find. mailauth also accepts signatures that prove nothing, so this function corrects their verdicts:
 * - The verdict is `permerror` if the signer is no domain, if the signature leaves out the field From (RFC 6376 §6.1.1),
 *   or if the key is not for mail or not for SHA-256 (RFC 6376 §3.6.1).
 * - The verdict is `policy` if anybody could add text to the message without breaking the signature. This is the case
 *   if the signature leaves out the end of the body (RFC 6376 §8.2), or one of several fields of the same name (RFC
 *   6376 §8.15). It is also the case if the hash function is SHA-1 (RFC 8301 §3.1).
 */
function signatureWord(signature: Signature, fields: ReadonlyMap<string, number>): string {
  const { status, signingDomain, signingHeaders, rr } = signature
  const { result, comment, header, underSized } = status
  if (comment === 'body hash did not verify') return 'fail'
  if (result !== 'pass') return result
  const signed = signingHeaders?.keys.toLowerCase().split(/:\s*/) ?? []
  const isSigner = isDomain(asciiDomain(signingDomain))
  if (!isSigner || !signed.includes('from') || !isForMail(rr ?? '')) return 'permerror'
  const isAdded = SINGLE_FIELDS.some((name) => {
    const count = fields.get(name) ?? 0
    return count > 1 && count > signed.filter((one) => one === name).length
  })
  const isPartial = Number(underSized ?? 0) > 0 || isAdded
  return isPartial || /sha1\s*$/i.test(String(header?.a)) ? 'policy' : 'pass'
}

/** Lists the header fields that a reader sees and that a mail may contain only once (RFC 5322 §3.6, RFC 2045 §3). */
const SINGLE_FIELDS = [
  ...['subject', 'date', 'to', 'cc', 'reply-to', 'sender', 'message-id', 'in-reply-to'],
  ...['references', 'content-type', 'content-transfer-encoding'],
]

/** Describes a DKIM signature, with the fields that the types of mailauth leave out. */
type Signature = AuthenticateResult['dkim']['results'][number] & {
  /** Holds the names of the signed header fields, divided by colons. */
  signingHeaders?: { keys: string }
  /** Holds the DNS record that contains the public key of the DKIM signature. */
  rr?: string
}

/** Tells whether the DNS record of a key allows SHA-256 signatures of mail. */
function isForMail(record: string): boolean {
  const allows = (tag: string, wanted: readonly string[]) => {
    const values = record
      .split(';')
      .map((part) => part.replace(/\s/g, '').toLowerCase())
      .find((part) => part.startsWith(`${tag}=`))
      ?.slice(tag.length + 1)
    return values === undefined || values.split(':').some((value) => wanted.includes(value))
  }
  return allows('s', ['*', 'email']) && allows('h', ['sha256'])
}

/**
 * Returns the verdict on all DKIM signatures of a message. One valid DKIM signature is enough, because forwarders break
 * some signatures.
 */
function dkimWord(words: readonly (string | undefined)[]) {
  return authenticationWord(words.includes('pass') ? 'pass' : words[0])
}

/** Match the signing domain and the selector of a DKIM signature whose white space was removed (RFC 6376 §3.5). */
const SIGNING_DOMAIN = /[:;]d=([^;]{1,255})/gi
const SELECTOR = /[:;]s=([^;]{1,255})/gi

/** Matches the header fields whose signing keys mailauth looks up: DKIM signatures, and ARC seals and signatures. */
const SIGNED = [/^dkim-signature\s*:/i, /^arc-seal\s*:/i, /^arc-message-signature\s*:/i]

/** Returns the names of DNS records. Each record holds the public key of a DKIM or ARC signature in the header. */
function keyNames(header: Buffer, authors: readonly string[]): string[] {
  if (authenticable(header) === 'no') return []
  const kept = withSignatures(header, SIGNATURES_MAX, authors.map(domainOf)).toString()
  const fields = kept.split(/\r?\n(?!\s)/)
  const names = SIGNED.flatMap((kind) => fields.filter((field) => kind.test(field))).flatMap(
    (field) => {
      // Like the mailauth library, the code takes the last of several equal tags, and ignores comments.
      const tags = field.replace(/\([^()]*\)|\s/g, '')
      const [domain, selector] = [SIGNING_DOMAIN, SELECTOR].map(
        (tag) => [...tags.matchAll(tag)].at(-1)?.[1],
      )
      return domain && selector ? [`${selector}._domainkey.${domain}`] : []
    },
  )
  return [...new Set(names)].slice(0, KEYS_MAX)
}

/**
 * Returns the part of a message that mailauth needs. Of the DKIM signatures, only `max` stay: first the signatures of
 * the authors' domains, then the topmost signatures. A forwarder puts its signature above the author's signature, but
 * only the author's signature can prove the author. If the message has no DKIM signature, the function removes the
 * body, which nobody then needs to hash. This saved 0.15 ms for a body of 4 KB. If `max` is 0, the function also
 * removes the ARC fields of the message.
 */
function withSignatures(bytes: Buffer, max: number, authorDomains: readonly string[]): Buffer {
  const text = bytes.toString('latin1')
  const blank = /\r?\n\r?\n/.exec(text)
  const end = blank?.index ?? text.length
  const fields = text.slice(0, end).split(/\r?\n(?!\s)/)
  // As in the mailauth library, a blank or a folded line may precede the colon of a header field.
  const names = fields.map((field) => field.slice(0, field.indexOf(':')).trim().toLowerCase())
  const isSeal = (n: number) => names[n]!.startsWith('arc-')
  const isSignature = (n: number) => names[n] === 'dkim-signature' || (max === 0 && isSeal(n))
  const isOfAuthor = (field: string) => {
    const domain = field
      .replace(/\s/g, '')
      .matchAll(SIGNING_DOMAIN)
      .next()
      .value?.[1]?.toLowerCase()
    return authorDomains.some((one) => one === domain || one.endsWith(`.${domain}`))
  }
  const signatures = fields.flatMap((field, n) =>
    isSignature(n) ? [{ n, rank: isOfAuthor(field) ? 0 : 1 }] : [],
  )
  signatures.sort((a, b) => a.rank - b.rank || a.n - b.n)
  const wanted = new Set(signatures.slice(0, max).map(({ n }) => n))
  const kept = fields.filter((_field, n) => !isSignature(n) || wanted.has(n))
  const isSigned = names.some((_name, n) => isSeal(n) || isSignature(n))
  if (max > 0 && !isSigned && blank !== null) return bytes.subarray(0, end + blank[0].length)
  if (kept.length === fields.length) return bytes
  return Buffer.from(kept.join('\r\n') + text.slice(end), 'latin1')
}
