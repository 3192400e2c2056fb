/** Tests the page that a browser gets for a paid resource, and the JSON response for other programs. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Purser } from '../../../api/client/main.ts'
import type { Agent } from '../../support/service.ts'
import { pay, startTestTill, type TestTill } from '../../support/till/till.ts'
import { OUR_PAYWALLS } from '../ourPaywalls.ts'
import '../../support/whole.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

let till: TestTill
let seller: Agent
let purser: Purser
beforeAll(async () => {
  till = await startTestTill({ env: { ALLOW_PRIVATE_NETWORKS: 'true' } })
  seller = await till.newSeller()
  purser = new Purser({ apiKey: seller.key, baseUrl: till.service.url, retries: 0 })
})
afterAll(() => till[Symbol.asyncDispose]())

const sell = () => new Response('ha')

for (const [name, open] of Object.entries(OUR_PAYWALLS)) {
  test(`the ${name} paywall sends a browser a 402 response with the payment header and a page that shows the price`, async () => {
    const description = `Jokes & "puns" <script>alert('1')</script>`
    await using shop = await open({ purser, amount: '0.01', description }, sell)
    await purser.sellers.put({ urlPattern: shop.url, priceUsdc: '0.01' })
    const response = await fetch(shop.url, { headers: { accept: BROWSER } })
    expect(response.status).toBe(402)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('payment-required')).toBeString()
    const policy = response.headers.get('content-security-policy')!
    expect(policy).toStartWith("default-src 'none'; style-src 'sha256-")
    expect(policy).not.toContain('unsafe')
    const html = await response.text()
    expect(html).toContain('0.01 USDC')
    expect(html).toContain(shop.url)
    expect(html).toContain('PAYMENT-SIGNATURE')
    expect(html).toContain(
      'Jokes &amp; &quot;puns&quot; &lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;',
    )
    expect(html).not.toContain('<script')
    const [, style = ''] = /<style>([^<]*)<\/style>/.exec(html)!
    const hash = new Bun.CryptoHasher('sha256').update(style).digest('base64')
    expect(policy).toContain(`'sha256-${hash}'`)
  })

  test(`the ${name} paywall sends JSON to programs that are not browsers`, async () => {
    await using shop = await open({ purser, amount: '0.01' }, sell)
    await purser.sellers.put({ urlPattern: shop.url, priceUsdc: '0.01' })
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, text/html;q=0.9',
      'text/html;q=0, */*',
      `${'a/b,'.repeat(1_500)}text/html`,
    ]) {
      const response = await fetch(shop.url, { headers: { accept } })
      expect([accept.length, response.status]).toEqual([accept.length, 402])
      expect(response.headers.get('content-type')).toStartWith('application/json')
      expect((await response.json()) as any).toMatchObject({ x402Version: 1 })
    }
  })

  test(`the page of the ${name} paywall shows the reason of a refusal, and says when payments are unavailable`, async () => {
    let away = false
    const purser = new Purser({
      apiKey: seller.key,
      baseUrl: till.service.url,
      retries: 0,
      fetch: (request) => (away ? Promise.reject(new Error('away')) : fetch(request)),
    })
    await using shop = await open({ purser, amount: '0.01', versions: [2] }, sell)
    await purser.sellers.put({ urlPattern: shop.url, priceUsdc: '0.01' })
    const { header } = await pay({ value: 9_999n })
    const refused = await fetch(shop.url, { headers: { accept: BROWSER, 'x-payment': header } })
    expect(refused.status).toBe(402)
    const html = await refused.text()
    expect(html).toContain('0.01 USDC')
    expect(html).toContain('invalid_exact_evm_payload_authorization_value')
    away = true
    const closed = await fetch(shop.url, { headers: { accept: BROWSER } })
    expect([closed.status, closed.headers.get('retry-after')]).toEqual([503, '5'])
    const page = await closed.text()
    expect(page).toContain('Payments are unavailable right now.')
    expect(page).not.toContain('USDC')
  })
}
