import {
  afterCheck,
  type DomainRecord,
  dkimRecords,
  domainRecords,
  type Finding,
  type Findings,
  findingOfAny,
  judgeRecord,
  UNKNOWN,
  verdictOf,
} from '../../shared/mail/mailDomain.ts'
import { findMailDomain, recordCheck } from '../../sql/mail/domains/mailDomains.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import type { Dns } from './dns.ts'

type Options = {
  mailDomain: string
  /** Holds the host name in the MX records of the domains that this service serves. */
  mailHostname: string
  dns: Dns
}

/**
 * Checks the DNS records of a mail domain and stores the findings. A name server that does not answer proves nothing
 * about the DNS records of the domain. A verified domain with missing DNS records stays verified for a while, because
 * the mail of all projects in this domain depends on the verification.
 */
export const createVerifyDomain =
  ({ pool, log }: PoolContext, { mailDomain, mailHostname, dns }: Options): Task<'verify_domain'> =>
  async ({ domain }) => {
    const claim = await findMailDomain(pool, domain)
    if (claim === null) return
    const settings = { mailDomain, mailHostname }
    const records = domainRecords(claim, settings)
    const findings: Findings = Object.fromEntries(
      await Promise.all(
        records.map(async (record) => {
          const some = record.purpose === 'dkim' ? dkimRecords(claim, settings) : [record]
          const found = await Promise.all(some.map((one) => check(dns, one)))
          return [record.purpose, findingOfAny(found)]
        }),
      ),
    )
    const verdict = verdictOf(records, findings)
    const now = new Date()
    const wantingSince = verdict === 'verified' ? null : (claim.wantingSince ?? now)
    // The pause before the next check grows with the time for which records have been missing. If the name servers do
    // not answer, this time may count from the creation of the domain. Otherwise the service would query dead name
    // servers every minute for ever.
    const since = verdict === 'unknown' ? (claim.wantingSince ?? claim.createdAt) : wantingSince
    const wantingMs = since === null ? 0 : now.getTime() - since.getTime()
    const { status, recheckMs } = afterCheck(claim.status, verdict, wantingMs)
    const recheckAt = recheckMs === null ? null : new Date(now.getTime() + recheckMs)
    const isRecorded = await recordCheck(pool, {
      domain,
      token: claim.token,
      checkedBefore: claim.checkedAt,
      status,
      findings,
      // A name server that does not answer proves nothing. Therefore the stored time since which records are missing
      // stays unchanged.
      wantingSince: verdict === 'unknown' ? claim.wantingSince : wantingSince,
      recheckAt,
    })
    if (isRecorded && status !== claim.status)
      log.info({ domain, status }, 'a mail domain changed its status')
  }

async function check(dns: Dns, record: DomainRecord): Promise<Finding> {
  try {
    const found =
      record.type === 'MX'
        ? (await dns.mx(record.name)).map(({ exchange }) => exchange)
        : await dns.txt(record.name)
    return judgeRecord(record, found)
  } catch {
    return UNKNOWN
  }
}
