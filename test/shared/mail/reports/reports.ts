/** Makes test reports (DMARC and TLS) in the forms that large mail hosts send. */
import { gzipSync } from 'node:zlib'
import { strToU8, zipSync } from 'fflate'

type Record = { source: string; count: number; dkim: 'pass' | 'fail'; spf: 'pass' | 'fail' }

export const dmarcXml = (domain: string, records: readonly Record[], id = '17'): string =>
  `<?xml version="1.0" encoding="UTF-8" ?>
<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">
  <report_metadata>
    <org_name>Example &amp; Sons</org_name><email>noreply@reporter.test</email>
    <report_id>${id}</report_id>
    <date_range><begin>1795305600</begin><end>1795391999</end></date_range>
  </report_metadata>
  <policy_published><domain>${domain}</domain><adkim>r</adkim><p>none</p></policy_published>
  ${records
    .map(
      ({ source, count, dkim, spf }) => `<record>
    <row><source_ip>${source}</source_ip><count>${count}</count>
      <policy_evaluated><disposition>none</disposition><dkim>${dkim}</dkim><spf>${spf}</spf></policy_evaluated></row>
    <identifiers><header_from>${domain}</header_from></identifiers>
    <auth_results><spf><domain>${domain}</domain><result>${spf}</result></spf></auth_results>
  </record>`,
    )
    .join('\n  ')}
</feedback>`

export const tlsJson = (domain: string): string =>
  JSON.stringify({
    'organization-name': 'Example',
    'date-range': {
      'start-datetime': '2026-11-22T00:00:00Z',
      'end-datetime': '2026-11-22T23:59:59Z',
    },
    'report-id': 'tls-1',
    policies: [
      {
        policy: { 'policy-type': 'sts', 'policy-domain': domain },
        summary: { 'total-successful-session-count': 40, 'total-failure-session-count': 2 },
        'failure-details': [
          {
            'result-type': 'certificate-expired',
            'sending-mta-ip': '192.0.2.9',
            'failed-session-count': 2,
          },
        ],
      },
    ],
  })

export const gzipped = (text: string): Uint8Array => gzipSync(text)
export const zipped = (text: string): Uint8Array => zipSync({ 'report.xml': strToU8(text) })
