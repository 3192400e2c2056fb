import type { Config } from '../../../shared/config/config.ts'
import { judgeCertificate } from '../../../shared/doctor/certificateFindings.ts'
import type { Finding } from '../../../shared/doctor/finding.ts'
import {
  dnsAway,
  judgeListener,
  judgeMailHost,
  judgeMx,
  judgeReportAddresses,
  judgeReservedNames,
  judgeStartTls,
} from '../../../shared/doctor/mailInFindings.ts'
import type { ServedDomain } from '../../../shared/doctor/zone.ts'
import { reportAddresses, reservedAddresses } from '../../../shared/mail/reservedAddresses.ts'
import { findHolders } from '../../../sql/mail/domains/addresses.ts'
import { type DoctorTools, inTime, recordsAt, takeLooks } from './look.ts'
import type { Outside } from './outside.ts'
import { lookAtSmtp, type SmtpLook } from './smtpLook.ts'

const ADDRESSES_MAX = 4
const CERTIFICATE_FIX =
  'SMTP_TLS_CERT_FILE=/etc/purser/cert.pem SMTP_TLS_KEY_FILE=/etc/purser/key.pem'

/** Examines whether strangers can send mail to this service. */
export async function lookAtMailIn(
  tools: DoctorTools,
  served: readonly ServedDomain[],
  { outside, listeners }: { outside: Promise<Outside>; listeners: Promise<Listeners> },
): Promise<Finding[]> {
  const { config, dns, database } = tools
  return takeLooks('mail in', [
    ...served.map(({ domain }) => ({
      check: `MX of ${domain}`,
      run: async () => {
        const found = await inTime(dns.mx(domain)).catch(() => null)
        return found === null
          ? dnsAway('mail in', `MX of ${domain}`)
          : judgeMx(domain, config.mailHostname, found)
      },
    })),
    { check: `address of ${config.mailHostname}`, run: () => mailHost(tools, outside) },
    { check: 'listener', run: async () => judgeListeners(tools, await listeners) },
    {
      check: 'reports',
      run: async () => {
        if (database.pool === null) return []
        const wanted = config.postmaster === undefined ? reportAddresses(config.mailDomain) : []
        const held = (await findHolders(database.pool, wanted)).map(({ address }) => address)
        const refused = wanted.filter((address) => !held.includes(address))
        return judgeReportAddresses(refused, config.mailDomain)
      },
    },
    {
      check: 'kept names',
      run: async () =>
        database.pool === null
          ? []
          : judgeReservedNames(
              await findHolders(database.pool, reservedAddresses(config.mailDomain)),
            ),
    },
  ])
}

async function mailHost(tools: DoctorTools, outside: Promise<Outside>): Promise<Finding> {
  const { config, dns, lookUp } = tools
  const { mailHostname, allowPrivateNetworks: allowPrivate } = config
  const found = await Promise.all([
    inTime(dns.addresses(mailHostname)),
    recordsAt(lookUp, mailHostname, 'CNAME'),
  ]).catch(() => null)
  if (found === null) return dnsAway('mail in', `address of ${mailHostname}`)
  const [addresses, [alias]] = found
  return judgeMailHost({
    mailHostname,
    addresses,
    alias: typeof alias === 'string' ? alias : null,
    seenAddress: (await outside).address,
    allowPrivate,
  })
}

/** Holds the answers of the SMTP listener at SMTP_HOST and SMTP_PORT, and at the public addresses of MAIL_HOSTNAME. */
type Listeners = { own: SmtpLook; others: { address: string; look: SmtpLook }[] }

/**
 * Queries the SMTP listener from this machine, at two places: at the public addresses, and at SMTP_HOST and SMTP_PORT.
 */
export async function lookAtListeners({ config, dns, ports, ca }: DoctorTools): Promise<Listeners> {
  const { mailHostname, smtp } = config
  const look = (host: string, port: number) =>
    lookAtSmtp({
      host,
      port,
      ownName: mailHostname,
      servername: mailHostname,
      ...(ca === undefined ? {} : { ca }),
    })
  const addresses = await inTime(dns.addresses(mailHostname)).catch(() => [])
  const [own, others] = await Promise.all([
    look(localHost(smtp), smtp.port),
    Promise.all(
      addresses
        .slice(0, ADDRESSES_MAX)
        .map(async (address) => ({ address, look: await look(address, ports.smtp) })),
    ),
  ])
  return { own, others }
}

function judgeListeners({ config, ports }: DoctorTools, { own, others }: Listeners): Finding[] {
  const { smtp } = config
  const local = { at: `${smtp.host}:${smtp.port}`, reached: own.reached }
  const reached = others.map(({ address, look }) =>
    judgeListener({ address, port: ports.smtp, reached: look.reached, local }),
  )
  return [...reached, ...judgeTls(config, answeringOf({ own, others }))]
}

type Answering = Extract<SmtpLook, { reached: 'answered' }>

/** Returns the findings about the first SMTP listener that answers. */
const answeringOf = ({ own, others }: Listeners): Answering | undefined =>
  [...others.map(({ look }) => look), own].find(
    (look): look is Answering => look.reached === 'answered',
  )

/**
 * Returns the organisation that issued the certificate of the SMTP listener. The name is an empty text if the listener
 * showed no certificate.
 */
export const listenerIssuer = (listeners: Listeners): string =>
  answeringOf(listeners)?.certificate?.issuer ?? ''

const localHost = ({ host }: Config['smtp']): string =>
  host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host

/** Judges the certificate of the SMTP listener. */
function judgeTls({ mailHostname, mtaSts }: Config, answered: Answering | undefined): Finding[] {
  if (answered === undefined) return []
  // Senders of mail accept any certificate, unless an MTA-STS policy demands a valid one. Therefore the certificate is
  // judged strictly only under such a policy.
  const isDemanded = mtaSts === 'enforce'
  const offered = judgeStartTls(answered.extensions.includes('STARTTLS'), isDemanded)
  if (answered.certificate === null) return [offered]
  return [
    offered,
    judgeCertificate({
      area: 'mail in',
      check: 'certificate of the listener',
      name: mailHostname,
      certificate: answered.certificate,
      now: new Date(),
      isDemanded,
      fix: CERTIFICATE_FIX,
    }),
  ]
}
