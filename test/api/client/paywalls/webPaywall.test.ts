/**
 * Tests the paywalls for servers that answer a `Request` with a `Response`: the paywall for fetch and the paywall for
 * Hono.
 */
import { describe, expect, spyOn, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { write } from 'bun'
import { Hono } from 'hono'
import { requirePayment as fetchPaywall } from '../../../../api/client/paywalls/fetchPaywall.ts'
import { requirePayment as honoPaywall } from '../../../../api/client/paywalls/honoPaywall.ts'
import type { HttpPaywallOptions } from '../../../../api/client/paywalls/httpPaywall.ts'
import { ANSWER_MAX_BYTES } from '../../../../api/client/paywalls/paidAnswers.ts'
import {
  CACHED,
  newPaymentHeader,
  RESOURCE,
  shopService,
} from '../../../support/till/headers/shopService.ts'

const KEY = /^[0-9a-f]{64}$/
const REQUEST_MAX_BYTES = 1024 * 1024

type Handler = (request: Request) => Response | Promise<Response>
const SELLERS: Record<string, (options: HttpPaywallOptions, handler: Handler) => Handler> = {
  fetch: fetchPaywall,
  Hono: (options, handler) => {
    const app = new Hono()
    app.use('/joke', honoPaywall(options))
    app.all('/joke', ({ req }) => handler(req.raw))
    app.onError((error) => {
      throw error
    })
    return app.fetch
  },
}

for (const [name, sell] of Object.entries(SELLERS)) {
  const open = (handler: Handler, options: Partial<HttpPaywallOptions> = {}) => {
    const service = shopService()
    const serve = sell({ purser: service.purser, amount: '0.01', ...options }, handler)
    const ask = async (headers: Record<string, string>, sent: RequestInit = {}) => {
      const response = await serve(new Request(RESOURCE, { headers, ...sent }))
      return { response, seen: [response.status, await response.text()] }
    }
    return { service, serve, ask }
  }
  const reasonIn = (seen: (number | string)[]) => [seen[0], JSON.parse(seen[1] as string).error]
  const DUPLICATE = [402, 'duplicate_settlement']

  describe(`the paywall for ${name} sells responses`, () => {
    test('an unpaid request gets the payment offer as JSON, or as a page for a browser', async () => {
      const { ask } = open(() => new Response('ha'))
      const { response, seen } = await ask({})
      expect(reasonIn(seen)).toEqual([402, 'X-PAYMENT header is required'])
      expect(response.headers.get('payment-required')).toBeString()
      const page = await ask({ accept: 'text/html' })
      expect(page.seen).toEqual([402, expect.stringContaining('0.01 USDC')])
      expect(page.response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    })

    test('a preflight request gets status 204 and no body', async () => {
      const { ask } = open(() => new Response('ha'), { cors: '*' })
      const headers = { 'access-control-request-method': 'GET' }
      const { response, seen } = await ask(headers, { method: 'OPTIONS' })
      expect(seen).toEqual([204, ''])
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
    })

    test('a paid request gets the handler’s response, and a repeated request gets the same response again', async () => {
      let served = 0
      const bodies = ['ha', '', null]
      for (const body of bodies) {
        const headers = { 'cache-control': 'public', 'x-own': 'own' }
        const { ask } = open(() => {
          served++
          return new Response(body, { status: body === null ? 204 : 201, headers })
        })
        const paid = { 'x-payment': newPaymentHeader() }
        for (let n = 0; n < 2; n++) {
          const { response, seen } = await ask(paid)
          expect(seen).toEqual([body === null ? 204 : 201, body ?? ''])
          expect(response.headers.get('cache-control')).toBe('no-store')
          expect(response.headers.get('x-own')).toBe('own')
          expect(response.headers.get('payment-response')).toBeString()
        }
      }
      expect(served).toBe(bodies.length)
    })

    test('a paid response has no header that a cache prefers to Cache-Control', async () => {
      const { ask } = open(() => new Response('ha', { headers: { ...CACHED, 'x-cache': 'MISS' } }))
      const paid = { 'x-payment': newPaymentHeader() }
      for (let n = 0; n < 2; n++) {
        const { response, seen } = await ask(paid)
        expect(seen).toEqual([200, 'ha'])
        expect(Object.keys(CACHED).filter((name) => response.headers.has(name))).toEqual([])
        expect(response.headers.get('cache-control')).toBe('no-store')
        expect(response.headers.get('x-cache')).toBe('MISS')
      }
    })

    test('if the handler fails, the payer may repeat the request with the same payment until the paywall has sent a paid response', async () => {
      let served = 0
      const { ask } = open(() => {
        served++
        if (served === 1) return new Response('later', { status: 500 })
        if (served === 2) throw new Error('broken')
        if (served === 3) return new Response('slow down', { status: 429 })
        return new Response('gone', { status: 404 })
      })
      const paid = { 'x-payment': newPaymentHeader() }
      expect((await ask(paid)).seen).toEqual([500, 'later'])
      expect(await ask(paid).catch((error) => error.message)).toBe('broken')
      expect((await ask(paid)).seen).toEqual([429, 'slow down'])
      for (let n = 0; n < 2; n++) expect((await ask(paid)).seen).toEqual([404, 'gone'])
      expect(served).toBe(4)
    })

    test('a paid response keeps the content type of its body, and so does the stored response for repetitions', async () => {
      const file = join(mkdtempSync(join(tmpdir(), 'purser-paywall-')), 'page.html')
      await write(file, '<b>ha</b>')
      const form = new FormData()
      form.set('a', 'b')
      for (const [make, type] of [
        [() => new Response(Bun.file(file)), /^text\/html/],
        [() => new Response(new Blob(['ha'], { type: 'text/css' })), /^text\/css/],
        [() => new Response(form), /^multipart\/form-data; boundary=./],
        [() => new Response(new URLSearchParams('a=1')), /^application\/x-www-form-urlencoded/],
        [() => new Response(form, { status: 500 }), /^multipart\/form-data; boundary=./],
      ] as const) {
        const { ask } = open(make)
        const paid = { 'x-payment': newPaymentHeader() }
        for (let n = 0; n < 2; n++) {
          expect((await ask(paid)).response.headers.get('content-type')).toMatch(type)
        }
      }
    })

    test('a response that the paywall stores for repetitions is complete, even if the handler’s stream holds strings or buffers', async () => {
      const bytes = new TextEncoder().encode('shäs')
      const part = new DataView(bytes.buffer, 1, bytes.length - 2)
      for (const chunks of [['h', 'ä'], [new TextEncoder().encode('hä').buffer], [part]]) {
        const body = new ReadableStream({
          start(stream) {
            for (const chunk of chunks) stream.enqueue(chunk)
            stream.close()
          },
        })
        const { ask } = open(() => new Response(body))
        const paid = { 'x-payment': newPaymentHeader() }
        const { seen } = await ask(paid)
        expect(seen[0]).toBe(200)
        expect(seen[1]).toContain('hä')
        expect((await ask(paid)).seen).toEqual(seen)
      }
    })

    test('a response of up to 256 kB is stored for repeated requests, and a repeated request for a longer response is refused', async () => {
      for (const [bytes, again] of [
        [ANSWER_MAX_BYTES, [200, 'a'.repeat(ANSWER_MAX_BYTES)]],
        [ANSWER_MAX_BYTES + 1, DUPLICATE],
      ] as const) {
        const { ask } = open(() => new Response('a'.repeat(bytes)))
        const paid = { 'x-payment': newPaymentHeader() }
        expect((await ask(paid)).seen).toEqual([200, 'a'.repeat(bytes)])
        const { seen } = await ask(paid)
        expect(bytes > ANSWER_MAX_BYTES ? reasonIn(seen) : seen).toEqual([...again])
      }
    })

    test('if the payer disconnects during an endless response, the paywall ends the response, and the payer may repeat the request', async () => {
      let served = 0
      const ended = Promise.withResolvers<void>()
      const { serve, ask } = open(() => {
        if (++served > 1) return new Response('ha')
        const start = (stream: ReadableStreamDefaultController) => stream.enqueue(Buffer.from('h'))
        return new Response(new ReadableStream({ start, cancel: () => ended.resolve() }))
      })
      const paid = { 'x-payment': newPaymentHeader() }
      const first = await serve(new Request(RESOURCE, { headers: paid }))
      const reader = first.body!.getReader()
      await reader.read()
      const { setTimeout: wait } = globalThis
      const timer = spyOn(globalThis, 'setTimeout')
      timer.mockImplementation(((run: () => void, ms: number) =>
        wait(run, ms === 30_000 ? 20 : ms)) as never)
      try {
        void reader.cancel()
        await ended.promise
        expect((await ask(paid)).seen).toEqual([200, 'ha'])
      } finally {
        timer.mockRestore()
      }
    })

    test('a paid response is stored if the handler ends the response soon after the payer disconnected', async () => {
      let end = () => {}
      const { serve, ask } = open(
        () =>
          new Response(
            new ReadableStream({
              start(stream) {
                stream.enqueue(Buffer.from('h'))
                end = () => {
                  stream.enqueue(Buffer.from('a'))
                  stream.close()
                }
              },
            }),
          ),
      )
      const paid = { 'x-payment': newPaymentHeader() }
      const first = await serve(new Request(RESOURCE, { headers: paid }))
      const reader = first.body!.getReader()
      await reader.read()
      void reader.cancel()
      end()
      expect((await ask(paid)).seen).toEqual([200, 'ha'])
    })

    test('the handler gets the whole request body, and a repeated payment gets the stored response only with an equal body', async () => {
      const { service, ask } = open(async (request) => new Response(await request.text()))
      const paid = { 'x-payment': newPaymentHeader() }
      const post = (body: string | null) => ask(paid, { method: 'POST', body })
      for (let n = 0; n < 2; n++) expect((await post('a=1')).seen).toEqual([200, 'a=1'])
      expect(reasonIn((await post('a=2')).seen)).toEqual(DUPLICATE)
      expect(reasonIn((await post(null)).seen)).toEqual(DUPLICATE)
      expect(new Set(service.keys()).size).toBe(3)
    })

    test('the paywall does not compare a request body of more than 1 MB, or a body that other code has already read', async () => {
      const read = async (request: Request) => {
        await request.text()
        return request
      }
      const locked = async (request: Request) => {
        request.body?.getReader()
        return request
      }
      const as = async (request: Request) => request
      for (const [body, prepare, isCompared] of [
        ['a'.repeat(REQUEST_MAX_BYTES), as, true],
        ['a'.repeat(REQUEST_MAX_BYTES + 1), as, false],
        ['a', read, false],
        ['a', locked, false],
        [null, as, true],
      ] as const) {
        const { service, serve } = open(() => new Response('ha'))
        const headers = { 'x-payment': newPaymentHeader() }
        const request = new Request(RESOURCE, { method: 'POST', body, headers })
        expect((await serve(await prepare(request))).status).toBe(200)
        expect([body?.length, prepare.name, KEY.test(service.keys()[0]!)]).toEqual([
          body?.length,
          prepare.name,
          isCompared,
        ])
      }
    })
  })
}
