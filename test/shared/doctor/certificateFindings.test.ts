import { expect, test } from 'bun:test'
import {
  judgeCertificate,
  type SeenCertificate,
} from '../../../shared/doctor/certificateFindings.ts'

const NOW = new Date('2026-11-26T12:00:00Z')
const DAY_MS = 24 * 3_600_000

function judge(changes: Partial<SeenCertificate> & { leftMs?: number } = {}, isDemanded = false) {
  const { leftMs = 90 * DAY_MS, ...certificate } = changes
  const { verdict, found } = judgeCertificate({
    area: 'web',
    check: 'certificate',
    name: 'mail.example.com',
    certificate: {
      fits: true,
      names: ['mail.example.com'],
      expiresAt: new Date(NOW.getTime() + leftMs),
      trusted: true,
      issuer: 'An authority',
      ...certificate,
    },
    now: NOW,
    isDemanded,
    fix: 'renew it',
  })
  return [verdict, found]
}

test.each([
  [90 * DAY_MS, 'ok', 'for mail.example.com, 90 days left'],
  [14 * DAY_MS, 'ok', 'for mail.example.com, 14 days left'],
  [14 * DAY_MS - 1, 'warning', 'for mail.example.com, 13 days left'],
  [DAY_MS, 'warning', 'for mail.example.com, 1 day left'],
  [0, 'warning', 'for mail.example.com, 0 days left'],
  [-1, 'broken', 'it ended 2026-11-26'],
])(
  'the command `bun run doctor` judges a certificate that expires in %p ms as %s',
  (leftMs, verdict, found) => {
    expect(judge({ leftMs })).toEqual([verdict, found])
  },
)

test('the doctor command reports a TLS certificate for another name as broken, and shows three of the names in the certificate', () => {
  const found = (names: string[]) => judge({ fits: false, names })
  expect(found([])).toEqual(['broken', 'it is not for mail.example.com'])
  expect(found(['a.example', 'b.example', 'c.example', 'd.example'])[1]).toMatch(
    /^it is not for mail\.example\.com, but for .*a\.example.*b\.example.*c\.example[^d]*$/,
  )
})

test('the doctor command reports a certificate from an unknown authority as a warning, or as broken if a known authority is demanded', () => {
  const found = 'it leads to no authority that others know'
  expect(judge({ trusted: false })).toEqual(['warning', found])
  expect(judge({ trusted: false }, true)).toEqual(['broken', found])
})

test('if a certificate has several faults, the doctor command reports only the expiry, or else only the wrong name', () => {
  expect(judge({ leftMs: -1, fits: false, trusted: false })[1]).toBe('it ended 2026-11-26')
  expect(judge({ fits: false, trusted: false, names: [] })[1]).toBe(
    'it is not for mail.example.com',
  )
})
