import { spf } from 'mailauth'
import nodemailer from 'nodemailer'
import type { Finding } from '../../../shared/doctor/finding.ts'
import { dnsAway, type Reached } from '../../../shared/doctor/mailInFindings.ts'
import {
  judgeDkim,
  judgeDmarc,
  judgeEhlo,
  judgePort25,
  judgeRelay,
  judgeReverse,
  judgeSpf,
  missingDkim,
  type RelayFacts,
  tagOf,
} from '../../../shared/doctor/mailOutFindings.ts'
import { relayHost, reverseName, type ServedDomain } from '../../../shared/doctor/zone.ts'
import { untrusted } from '../../mail/outbound/relay/relayTls.ts'
import { relayOptions } from '../../mail/outbound/relay/relayTransport.ts'
import type { SmtpFailure } from '../../mail/outbound/smtpOutcome.ts'
import {
  type DoctorTools,
  inTime,
  LOOK_MS,
  type Look,
  recordsAt,
  takeLooks,
  versionedTexts,
} from './look.ts'
import { type Outside, sendingAddresses } from './outside.ts'
import { zoneSettings } from './served.ts'
import { lookAtSmtp } from './smtpLook.ts'

/**
 * Names large mail providers, of which at least one should always answer. The doctor (the self-check) uses them to test
 * outbound connections.
 */
const RECEIVERS = ['gmail.com', 'outlook.com', 'yahoo.com']
const ADDRESSES_MAX = 4
const NAMES_MAX = 4
/**
 * Limits the DNS tree walk for DMARC records to eight domain names: a domain, and its parents of up to seven labels
 * (RFC 9989 §4.10).
 */
const WALK_MAX = 8
const REPORT_PLACES_MAX = 4
/** Sets the size of a mail that receivers should accept, because attachments of 25 MB become 35 MB in base64. */
const MAIL_BYTES_MAX = 35 * 1024 * 1024

/** Examines whether other hosts accept the mail of this service. */
export async function lookAtMailOut(
  tools: DoctorTools,
  served: readonly ServedDomain[],
  outside: Promise<Outside>,
): Promise<Finding[]> {
  const { config } = tools
  const isDirect = config.relayUrl === 'direct'
  const relay = relayHost(config.relayUrl)
  const addresses = addressesOf(tools, outside, relay)
  return takeLooks('mail out', [
    ...(isDirect
      ? [
          { check: 'port 25 outward', run: () => port25(tools) },
          { check: 'reverse name', run: async () => reverseNames(tools, await addresses) },
        ]
      : []),
    ...(relay === null
      ? []
      : [
          {
            check: `relay ${relay}`,
            run: async () => judgeRelay(await relayFacts(tools, relay), MAIL_BYTES_MAX),
          },
        ]),
    ...served.flatMap((one) => recordLooks(tools, one, { addresses, isDirect })),
  ])
}

/** Returns the network addresses from which this service sends mail, as far as they are known. */
async function addressesOf(
  tools: DoctorTools,
  outside: Promise<Outside>,
  relay: string | null,
): Promise<string[]> {
  const found =
    relay === null
      ? inTime(sendingAddresses(tools, await outside))
      : inTime(tools.dns.addresses(relay))
  return (await found.catch(() => [])).slice(0, ADDRESSES_MAX)
}

async function port25({ dns, ports, config }: DoctorTools): Promise<Finding> {
  const reached = await Promise.all(
    RECEIVERS.map(async (host): Promise<{ host: string; reached: Reached }> => {
      const [exchanger] = await inTime(dns.mx(host)).catch(() => [])
      const [address] =
        exchanger === undefined
          ? []
          : await inTime(dns.addresses(exchanger.exchange)).catch(() => [])
      if (address === undefined) return { host, reached: 'unreachable' }
      const { mailHostname: ownName } = config
      return {
        host,
        ...(await lookAtSmtp({ host: address, port: ports.smtp, ownName, servername: host })),
      }
    }),
  )
  return judgePort25(reached)
}

async function reverseNames(tools: DoctorTools, addresses: readonly string[]): Promise<Finding[]> {
  const { dns, lookUp, config } = tools
  const { mailHostname } = config
  const own = await inTime(dns.addresses(mailHostname)).catch(() => null)
  const found = await Promise.all(
    addresses.map(async (address) => {
      try {
        const names = (await recordsAt(lookUp, reverseName(address), 'PTR')) as string[]
        const forward = names.slice(0, NAMES_MAX).map(async (name) => ({
          name: name.toLowerCase().replace(/\.$/, ''),
          forward: await inTime(dns.addresses(name)),
        }))
        return [
          judgeReverse(address, mailHostname, await Promise.all(forward)),
          ...(own === null ? [] : [judgeEhlo(address, mailHostname, own)]),
        ]
      } catch {
        return [dnsAway('mail out', `reverse name of ${address}`)]
      }
    }),
  )
  return found.flat()
}

function recordLooks(
  tools: DoctorTools,
  { domain, dkim }: ServedDomain,
  sending: { addresses: Promise<string[]>; isDirect: boolean },
): Look[] {
  const { dns } = tools
  return [
    { check: `SPF of ${domain}`, run: () => spfOf(tools, domain, sending) },
    // If the database does not answer, the list of DKIM keys is empty because the keys are not known. Such a list does
    // not prove that the domain has no DKIM keys.
    ...(dkim.length === 0 && tools.database.pool !== null
      ? [{ check: `DKIM of ${domain}`, run: async () => missingDkim(domain) }]
      : []),
    ...dkim.map(({ selector, record }) => ({
      check: `DKIM ${selector} of ${domain}`,
      run: async () => {
        const found = await inTime(dns.txt(`${selector}._domainkey.${domain}`)).catch(() => null)
        return found === null
          ? dnsAway('mail out', `DKIM ${selector} of ${domain}`)
          : judgeDkim({ domain, selector, record }, found)
      },
    })),
    { check: `DMARC of ${domain}`, run: () => dmarcOf(tools, domain) },
  ]
}

async function spfOf(
  { dns, lookUp, config }: DoctorTools,
  domain: string,
  { addresses, isDirect }: { addresses: Promise<string[]>; isDirect: boolean },
): Promise<Finding> {
  const records = await versionedTexts(dns, domain, 'spf1').catch(() => null)
  if (records === null) return dnsAway('mail out', `SPF of ${domain}`)
  const results = await Promise.all(
    (await addresses).map(async (address) => {
      const checked = await inTime(
        spf({
          sender: `postmaster@${domain}`,
          ip: address,
          helo: config.mailHostname,
          mta: config.mailHostname,
          resolver: lookUp as Parameters<typeof spf>[0]['resolver'] & {},
        }),
      )
      const { result, comment } = checked.status
      // The message of the SPF library begins with the name of the library and the sender's address, and the cause of
      // the SPF result follows. Only the cause is shown.
      return { address, result, comment: (comment || '').split(': ').at(-1)! }
    }),
  )
  return judgeSpf({ domain, records, results, isDirect, settings: zoneSettings(config) })
}

/**
 * Judges the DMARC record whose policy applies to a domain (RFC 9989 §4.10). Also judges whether each host in the tag
 * `rua` confirms that it wants the DMARC reports (RFC 9990 §4).
 */
async function dmarcOf({ dns, config }: DoctorTools, domain: string): Promise<Finding> {
  const walked = await walkOf(dns, domain).catch(() => null)
  if (walked === null) return dnsAway('mail out', `DMARC of ${domain}`)
  const found = applying(walked)
  const strangers =
    found === null
      ? []
      : await reportHosts(dns, found.records[0]!, organisation(from(walked, found)))
  const confirmed = await Promise.all(
    strangers.map(async (host) => {
      const name = `${found!.at}._report._dmarc.${host}`
      return (await versionedTexts(dns, name, 'DMARC1').catch(() => ['unknown'])).length > 0
    }),
  )
  return judgeDmarc({
    domain,
    found,
    unconfirmed: strangers.filter((_, n) => !confirmed[n]),
    mailDomain: config.mailDomain,
  })
}

/** Holds the DMARC records at one name of the DNS tree walk. */
type Walked = { at: string; records: readonly string[] }

/** Reads the DMARC records of a domain and of its parent domains (the DNS tree walk of RFC 9989). */
function walkOf(dns: DoctorTools['dns'], domain: string): Promise<Walked[]> {
  const labels = domain.split('.')
  const walk = labels.map((_, n) => labels.slice(n).join('.'))
  const names = walk.length > WALK_MAX ? [walk[0]!, ...walk.slice(1 - WALK_MAX)] : walk
  return Promise.all(
    names.map(async (at) => ({ at, records: await versionedTexts(dns, `_dmarc.${at}`, 'DMARC1') })),
  )
}

/** Returns the rest of a DNS tree walk, beginning with one of its names. */
const from = (walked: readonly Walked[], { at }: Walked): Walked[] =>
  walked.slice(walked.findIndex((one) => one.at === at))

const psdOf = ({ records }: Walked): string => tagOf(records[0]!, 'psd').toLowerCase()

/** Returns the organisational domain of the first name of a DNS tree walk (RFC 9989 §4.10.2). */
function organisation(walked: readonly Walked[]): string {
  const [{ at: start } = { at: '' }] = walked
  // The code ignores a name with several DMARC records, which counts as a name without a record.
  const valid = walked.filter(({ records }) => records.length === 1)
  const marked = valid.find((one) => psdOf(one) === 'n' || (psdOf(one) === 'y' && one.at !== start))
  if (marked === undefined) return valid.at(-1)?.at ?? start
  const depth = marked.at.split('.').length + (psdOf(marked) === 'n' ? 0 : 1)
  return start.split('.').slice(-depth).join('.')
}

/**
 * Returns the DMARC records that apply to the first name of a DNS tree walk: its own records, or the records of its
 * organisational domain, or the records of its public suffix.
 */
function applying(walked: readonly Walked[]): Walked | null {
  const found = walked.filter(({ records }) => records.length > 0)
  const above = organisation(walked)
  return (
    found.find(({ at }) => at === walked[0]!.at) ??
    found.find(({ at }) => at === above) ??
    found.find((one) => psdOf(one) === 'y') ??
    found[0] ??
    null
  )
}

/**
 * Returns those hosts of report addresses in a DMARC record that belong to other organisations.
 * @param own is the organisational domain of the domain to which the DMARC record belongs.
 */
async function reportHosts(
  dns: DoctorTools['dns'],
  record: string,
  own: string,
): Promise<string[]> {
  const places = tagOf(record, 'rua').split(',').slice(0, REPORT_PLACES_MAX)
  const hosts = places.flatMap(
    (place) => /^mailto:[^@]+@([^!]+)/i.exec(place)?.[1]?.toLowerCase() ?? [],
  )
  const owners = await Promise.all(
    hosts.map((host) => walkOf(dns, host).then(organisation, () => own)),
  )
  return hosts.filter((_, n) => owners[n] !== own)
}

async function relayFacts({ config, ca }: DoctorTools, host: string): Promise<RelayFacts> {
  const options = relayOptions(config, config.mailHostname)
  const bounds = { connectionTimeout: LOOK_MS, greetingTimeout: LOOK_MS, socketTimeout: LOOK_MS }
  const mailer = nodemailer.createTransport({ ...options, ...bounds })
  const login = inTime(mailer.verify()).then(
    () => 'accepted' as const,
    (error) => failedLogin(error as SmtpFailure),
  )
  const [outcome, seen] = await Promise.all([
    login.finally(() => mailer.close()),
    lookAtSmtp({
      host: options.host,
      port: options.port,
      ownName: config.mailHostname,
      servername: options.host,
      isImplicit: options.secure,
      ...(ca === undefined ? {} : { ca }),
    }),
  ])
  const size =
    seen.reached === 'answered' ? seen.extensions.find((line) => /^SIZE\b/.test(line)) : undefined
  return {
    host,
    login: outcome,
    isEncrypted:
      seen.reached === 'answered' && seen.certificate !== null && config.relayTls !== 'off',
    sizeMax: size === undefined ? null : Number(size.slice(5)) || null,
  }
}

function failedLogin(failure: SmtpFailure): RelayFacts['login'] {
  if (failure.code === 'EAUTH') return 'refused'
  if (untrusted(failure) !== null) return 'untrusted'
  return failure.code === 'ETIMEDOUT' || failure.code === undefined ? 'silent' : 'unreachable'
}
