/**
 * Makes the findings of the doctor (the service's self-check) about MTA-STS (RFC 8461), TLS-RPT (RFC 8460) and CAA (RFC
 * 8659).
 */
import { counted, type Finding, findingsIn, shown } from './finding.ts'
import { tagOf } from './mailOutFindings.ts'
import { ownPolicy, stsRecord, tlsReportRecord, type ZoneSettings, zoneLine } from './zone.ts'

const { ok, warning, broken } = findingsIn('policies')

/**
 * Holds the MTA-STS policy from the policy host. The field `failure` tells why the doctor (the self-check) could not
 * read the MTA-STS policy.
 */
export type SeenPolicy = { failure: string } | { mode: string; maxAgeS: number; coversUs: boolean }

const ID = /^[a-z0-9]{1,32}$/i
const DAY_S = 24 * 60 * 60

/** The parameter `records` lists the TXT records that begin with v=STSv1. */
export function judgeSts({
  domain,
  records,
  policy,
  settings,
  stsId,
}: {
  domain: string
  records: readonly string[]
  /**
   * Holds the MTA-STS policy from the policy host. Null means that the doctor (the self-check) did not request the
   * policy, because no DNS record announces an MTA-STS policy.
   */
  policy: SeenPolicy | null
  settings: PolicySettings
  stsId: string
}): Finding[] {
  const check = `MTA-STS of ${domain}`
  const line = zoneLine(stsRecord(domain, stsId))
  const fix = settings.mtaSts === 'none' ? `${PUBLISH}\n${line}` : line
  if (records.length === 0) {
    return [warning(check, 'none: a listener on the way can take away the TLS', fix)]
  }
  if (records.length > 1) return [broken(check, `${records.length} records instead of one`, fix)]
  const id = tagOf(records[0]!, 'id')
  if (!ID.test(id)) return [broken(check, `id=${shown(id)} is not 1 to 32 letters or digits`, fix)]
  return [
    ok(check, `id=${id}`),
    ...(policy === null ? [] : [judgePolicy(domain, policy, settings)]),
  ]
}

type PolicySettings = Pick<ZoneSettings, 'mtaSts' | 'mailHostname'>

const PUBLISH = 'MTA_STS=testing   # publishes the policy'

function judgePolicy(domain: string, policy: SeenPolicy, settings: PolicySettings): Finding {
  const { mailHostname, mtaSts } = settings
  const check = `policy of ${domain}`
  const lines = ownPolicy(settings).trim().replaceAll('\r\n', ' | ')
  const url = `https://mta-sts.${domain}/.well-known/mta-sts.txt`
  const wanted = mtaSts === 'none' ? PUBLISH : `curl -i ${url}   # must answer: ${lines}`
  if ('failure' in policy) return broken(check, policy.failure, wanted)
  const { mode, maxAgeS, coversUs } = policy
  if (!coversUs && mode !== 'none') {
    // A sender that follows an `enforce` policy delivers mail only to the hosts in the policy. If the policy lacks this
    // service's mail host, this sender cannot deliver mail here.
    const found = `it does not name ${mailHostname}`
    return mode === 'enforce' ? broken(check, found, wanted) : warning(check, found, wanted)
  }
  if (maxAgeS < DAY_S) return warning(check, `max_age is ${maxAgeS} s, less than a day`, wanted)
  return ok(check, `mode ${mode}, for ${counted(Math.floor(maxAgeS / DAY_S), 'day')}`)
}

/**
 * Makes the finding of the doctor (the service's self-check) about the TXT record of TLS-RPT. @param records lists the
 * TXT records that begin with v=TLSRPTv1.
 */
export function judgeTlsReports(
  domain: string,
  records: readonly string[],
  mailDomain: string,
): Finding {
  const check = `TLS-RPT of ${domain}`
  const fix = zoneLine(tlsReportRecord(domain, mailDomain))
  if (records.length === 0) return warning(check, 'none: nobody tells of failed TLS', fix)
  if (records.length > 1) return broken(check, `${records.length} records instead of one`, fix)
  const places = tagOf(records[0]!, 'rua').split(',')
  const wrong = places.find((place) => !/^(?:mailto:[^@\s]+@[^@\s]+|https:\/\/\S+)$/i.test(place))
  if (wrong !== undefined)
    return broken(check, `rua=${shown(wrong)} is no mailto: or https: URL`, fix)
  return ok(check, `reports go to ${shown(places[0]!)}`)
}

/**
 * Maps each organisation that issues certificates to the names by which CAA records allow this organisation. The doctor
 * (the service's self-check) suggests the first of these names.
 */
const AUTHORITIES: readonly [organisation: RegExp, names: readonly string[]][] = [
  [/let's encrypt|internet security research group/i, ['letsencrypt.org']],
  [/google trust services/i, ['pki.goog']],
  [
    /zerossl|sectigo|comodo/i,
    ['sectigo.com', 'comodoca.com', 'comodo.com', 'usertrust.com', 'trust-provider.com'],
  ],
  [/digicert|geotrust|thawte/i, ['digicert.com']],
  [/globalsign/i, ['globalsign.com']],
  [/amazon/i, ['amazon.com', 'amazontrust.com', 'awstrust.com', 'amazonaws.com']],
  [/buypass/i, ['buypass.com']],
]

export type CaaRecord = { tag: string; value: string }

/**
 * Judges whether the CAA records allow the issuer of a certificate to renew the certificate.
 * @param set holds the CAA records that apply to the name. These are the records of the name itself, or of the nearest
 * parent domain with CAA records. Null means that neither has CAA records.
 * @param issuer is the name of the organisation that issued the certificate. If `issuer` is empty, the doctor (the
 * self-check) has seen no certificate.
 */
export function judgeCaa(
  name: string,
  set: { at: string; records: readonly CaaRecord[] } | null,
  issuer: string,
): Finding {
  const check = `CAA of ${name}`
  if (set === null) return ok(check, 'none: every authority may issue')
  const allowed = set.records
    .filter(({ tag }) => tag.toLowerCase() === 'issue')
    .map(({ value }) => value.split(';')[0]!.trim().toLowerCase())
  if (allowed.length === 0) return ok(check, 'no record names an authority')
  const names = AUTHORITIES.find(([organisation]) => organisation.test(issuer))?.[1] ?? []
  const [authority] = names
  if (authority === undefined) {
    return ok(
      check,
      `${set.at} allows ${allowed.map((one) => (one === '' ? 'none' : one)).join(', ')}`,
    )
  }
  const named = allowed.find((one) => names.includes(one))
  return named !== undefined
    ? ok(check, `${set.at} allows ${named}`)
    : broken(
        check,
        `${set.at} forbids ${authority}, which issued the certificate`,
        `${set.at}. IN CAA 0 issue "${authority}"`,
      )
}
