/**
 * Tests that the console's files are compressed in an encoding that the browser accepts, and that their names contain a
 * hash of their bytes.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { startTestService, type TestService } from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(service.url + path, { headers, decompress: false } as RequestInit)
const filesOf = async () => {
  const html = await (await get('/console', { 'accept-encoding': 'identity' })).text()
  return [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file!)
}

test('the console’s page, script, styles and icon are compressed in an encoding that the browser accepts, and decompress to the same bytes', async () => {
  for (const path of ['/console', ...(await filesOf())]) {
    const plain = await get(path, { 'accept-encoding': 'identity' })
    expect([path, plain.headers.get('content-encoding')]).toEqual([path, null])
    const bytes = Buffer.from(await plain.arrayBuffer())
    for (const [asked, encoding, unpack] of [
      ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
      ['gzip', 'gzip', gunzipSync],
      ['br;q=0, GZIP;q=0.5', 'gzip', gunzipSync],
    ] as const) {
      const packed = await get(path, { 'accept-encoding': asked })
      const { headers } = packed
      expect([path, headers.get('content-encoding'), headers.get('vary')]).toEqual([
        path,
        encoding,
        'accept-encoding',
      ])
      const body = Buffer.from(await packed.arrayBuffer())
      expect([path, unpack(body).equals(bytes)]).toEqual([path, true])
      if (bytes.length > 10_000) expect(body.length).toBeLessThan(bytes.length / 2.5)
    }
    for (const refused of ['br;q=0, gzip;q=0', 'zstd', 'x;y=br']) {
      const { headers } = await get(path, { 'accept-encoding': refused })
      expect([path, refused, headers.get('content-encoding')]).toEqual([path, refused, null])
    }
  }
})

test('a console file may be cached forever if the hash in its URL is right, and a URL with a wrong hash gets status 404', async () => {
  const files = await filesOf()
  expect(files.length).toBe(3)
  for (const file of files) {
    const { headers } = await get(file)
    expect([file, headers.get('cache-control')]).toEqual([
      file,
      'public, max-age=31536000, immutable',
    ])
    const hash = /\.([\w-]{22})\./.exec(file)![1]!
    expect((await get(file.replace(hash, 'A'.repeat(22)))).status).toBe(404)
    expect((await get(file.replace(hash, hash.slice(1)))).status).toBe(404)
    const plain = await get(file.replace(`.${hash}`, ''))
    expect([plain.status, plain.headers.get('cache-control')]).toEqual([200, 'no-cache'])
  }
  expect((await get('/console')).headers.get('cache-control')).toBe('no-cache')
})

test('the ETag of a file in one content encoding does not match the same file in another content encoding', async () => {
  const [, , script] = await filesOf()
  const tags = await Promise.all(
    ['identity', 'gzip', 'br'].map(async (encoding) =>
      (await get(script!, { 'accept-encoding': encoding })).headers.get('etag'),
    ),
  )
  expect(new Set(tags).size).toBe(3)
  const asked = async (encoding: string, tag: string) =>
    (await get(script!, { 'accept-encoding': encoding, 'if-none-match': tag })).status
  expect(await asked('gzip', `"other", ${tags[1]}`)).toBe(304)
  expect(await asked('gzip', tags[2]!)).toBe(200)
})
