/**
 * Tests in which cases `bun run doctor` reports a warning or a fault in the policies of a domain (MTA-STS, TLS-RPT,
 * CAA).
 */
import { describe, expect, test } from 'bun:test'
import {
  judgeCaa,
  judgeSts,
  judgeTlsReports,
  type SeenPolicy,
} from '../../../shared/doctor/policyFindings.ts'

const D = 'shop.example'
const MX = 'mx.shop.example'
const DAY_S = 86_400

describe('the doctor command checks that the MTA-STS record exists once and is valid', () => {
  const LINE = `_mta-sts.${D}. IN TXT "v=STSv1; id=abc1"`
  const PUBLISH = 'MTA_STS=testing   # publishes the policy'
  type Mode = Parameters<typeof judgeSts>[0]['settings']['mtaSts']
  const judged = (records: string[], policy: SeenPolicy | null = null, mtaSts: Mode = 'testing') =>
    judgeSts({
      domain: D,
      records,
      policy,
      settings: { mailHostname: MX, mtaSts },
      stsId: 'abc1',
    })
  const withId = (id: string) => judged([`v=STSv1; id=${id}`])[0]!

  test('the MTA-STS check needs exactly one record, and a service without a policy must first publish the policy and then the record', () => {
    expect(judged([])).toEqual([
      {
        area: 'policies',
        check: `MTA-STS of ${D}`,
        found: 'none: a listener on the way can take away the TLS',
        verdict: 'warning',
        fix: LINE,
      },
    ])
    expect(judged([], null, 'none')[0]!.fix).toBe(`${PUBLISH}\n${LINE}`)
    const two = ['v=STSv1; id=a', 'v=STSv1; id=a']
    expect(judged(two, { failure: 'f' })).toMatchObject([
      { verdict: 'broken', found: '2 records instead of one', fix: LINE },
    ])
  })

  test('an MTA-STS record has an id of 1 to 32 letters or digits', () => {
    for (const id of ['a', 'Z9', '0'.repeat(32)])
      expect(withId(id)).toMatchObject({ verdict: 'ok', found: `id=${id}` })
    for (const id of ['', '0'.repeat(33), 'a-b', 'é'])
      expect(withId(id)).toMatchObject({
        verdict: 'broken',
        found: `id="${id}" is not 1 to 32 letters or digits`,
        fix: LINE,
      })
  })

  test('the doctor command judges the MTA-STS policy only if the record is valid and the service has tried to fetch the policy', () => {
    expect(judged(['v=STSv1; id=a'])).toHaveLength(1)
    expect(judged(['v=STSv1; id=-'], { failure: 'f' })).toHaveLength(1)
    expect(judged(['v=STSv1; id=a'], { failure: 'f' })).toHaveLength(2)
  })

  describe('the doctor command checks that the MTA-STS policy can be read and names the mail host', () => {
    const policy = (
      change: Partial<Extract<SeenPolicy, { mode: string }>>,
      mtaSts: Mode = 'testing',
    ) =>
      judged(
        ['v=STSv1; id=a'],
        { mode: 'enforce', maxAgeS: 7 * DAY_S, coversUs: true, ...change },
        mtaSts,
      )[1]!
    const CURL = `curl -i https://mta-sts.${D}/.well-known/mta-sts.txt   # must answer: version: STSv1 | mode: testing | mx: ${MX} | max_age: 604800`

    test('the doctor command reports an MTA-STS policy that cannot be fetched as broken', () => {
      const [, finding] = judged(['v=STSv1; id=a'], { failure: 'its host is away' })
      expect(finding).toEqual({
        area: 'policies',
        check: `policy of ${D}`,
        found: 'its host is away',
        verdict: 'broken',
        fix: CURL,
      })
    })

    test('the MTA-STS policy must name the mail host, unless its mode is `none`', () => {
      const found = `it does not name ${MX}`
      expect(policy({ coversUs: false })).toMatchObject({ verdict: 'broken', found, fix: CURL })
      expect(policy({ coversUs: false, mode: 'testing' })).toMatchObject({
        verdict: 'warning',
        found,
        fix: CURL,
      })
      expect(policy({ coversUs: false, mode: 'none' })).toMatchObject({
        verdict: 'ok',
        found: 'mode none, for 7 days',
      })
      expect(policy({ coversUs: false }, 'none').fix).toBe(PUBLISH)
    })

    test('the MTA-STS policy must be valid for at least a day, and the doctor command shows the number of whole days', () => {
      expect(policy({ maxAgeS: DAY_S - 1 })).toMatchObject({
        verdict: 'warning',
        found: 'max_age is 86399 s, less than a day',
        fix: CURL,
      })
      expect(policy({ maxAgeS: DAY_S }).verdict).toBe('ok')
      expect(policy({ maxAgeS: 3 * DAY_S - 1 }).found).toBe('mode enforce, for 2 days')
    })
  })
})

describe('the doctor command checks that the TLS-RPT record exists once and names report addresses', () => {
  const judged = (...records: string[]) => judgeTlsReports(D, records, 'host.example')
  const of = (rua: string) => judged(`v=TLSRPTv1; rua=${rua}`)
  const FIX = `_smtp._tls.${D}. IN TXT "v=TLSRPTv1; rua=mailto:tlsrpt@host.example"`

  test('the doctor command accepts TLS-RPT only if the domain has exactly one TLS-RPT record', () => {
    expect(judged()).toEqual({
      area: 'policies',
      check: `TLS-RPT of ${D}`,
      found: 'none: nobody tells of failed TLS',
      verdict: 'warning',
      fix: FIX,
    })
    expect(judged('v=TLSRPTv1; rua=mailto:a@b.example', 'v=TLSRPTv1')).toMatchObject({
      verdict: 'broken',
      found: '2 records instead of one',
      fix: FIX,
    })
  })

  test('a TLS-RPT record must name mail addresses or https URLs for reports, and the doctor command shows the first of them', () => {
    for (const rua of ['mailto:a@b.example', 'HTTPS://r.example/x', 'MAILTO:a@b.example'])
      expect(of(`${rua}, https://other.example`)).toMatchObject({
        verdict: 'ok',
        found: `reports go to "${rua}"`,
      })
    for (const wrong of ['', 'mailto:a', 'mailto:a@b@c', 'http://r.example', 'https://', 'a@b'])
      expect(of(`mailto:a@b.example,${wrong}`)).toMatchObject({
        verdict: 'broken',
        found: `rua="${wrong}" is no mailto: or https: URL`,
        fix: FIX,
      })
    expect(judged('v=TLSRPTv1').found).toBe('rua="" is no mailto: or https: URL')
  })
})

describe('the doctor command checks that the CAA records allow the issuer of the certificate', () => {
  const judged = (issuer: string, ...records: [tag: string, value: string][]) =>
    judgeCaa(MX, { at: D, records: records.map(([tag, value]) => ({ tag, value })) }, issuer)

  test('if no CAA record names a certificate authority, every authority may issue certificates', () => {
    expect(judgeCaa(MX, null, "Let's Encrypt")).toEqual({
      area: 'policies',
      check: `CAA of ${MX}`,
      found: 'none: every authority may issue',
      verdict: 'ok',
    })
    expect(
      judged("Let's Encrypt", ['iodef', 'mailto:a@b.example'], ['issuewild', 'digicert.com']),
    ).toMatchObject({ verdict: 'ok', found: 'no record names an authority' })
  })

  test.each([
    ["Let's Encrypt", 'letsencrypt.org'],
    ['Internet Security Research Group', 'letsencrypt.org'],
    ['Google Trust Services LLC', 'pki.goog'],
    ['ZeroSSL', 'sectigo.com'],
    ['DigiCert Inc', 'digicert.com'],
    ['GlobalSign nv-sa', 'globalsign.com'],
    ['Amazon', 'amazon.com'],
    ['Buypass AS-983163327', 'buypass.com'],
  ])(
    'the CAA records must allow the certificate authority of the issuer %p',
    (issuer, authority) => {
      expect(
        judged(issuer.toUpperCase(), ['issue', 'other.example'], ['ISSUE', ` ${authority} ; x=1`]),
      ).toMatchObject({ verdict: 'ok', found: `${D} allows ${authority}` })
      expect(judged(issuer, ['issue', 'other.example'], ['issuewild', authority])).toMatchObject({
        verdict: 'broken',
        found: `${D} forbids ${authority}, which issued the certificate`,
        fix: `${D}. IN CAA 0 issue "${authority}"`,
      })
    },
  )

  test.each([
    ['Amazon', 'amazonaws.com'],
    ['Amazon', 'amazontrust.com'],
    ['Sectigo Limited', 'comodoca.com'],
  ])(
    'a CAA record may name the certificate authority of the issuer %p by its other name %p',
    (issuer, name) => {
      expect(judged(issuer, ['issue', name])).toMatchObject({
        verdict: 'ok',
        found: `${D} allows ${name}`,
      })
    },
  )

  test('if the certificate’s issuer is unknown or absent, the doctor command lists the authorities that the CAA records allow', () => {
    for (const issuer of ['', 'An Own Authority'])
      expect(judged(issuer, ['issue', ';'], ['issue', 'A.example; x=1'])).toMatchObject({
        verdict: 'ok',
        found: `${D} allows none, a.example`,
      })
  })
})
