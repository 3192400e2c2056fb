import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { BlobsAwayError, openObjectStore } from '../../../shared/blobs/objectStore.ts'
import type { BlobStoreSettings } from '../../../shared/config/blobStoreSettings.ts'
import { parseConfig } from '../../../shared/config/config.ts'
import { createBlobs } from '../../../sql/blobs/blobs.ts'
import { openBlob, sealBlob, sha256 } from '../../../sql/blobs/sealedBlob.ts'
import { type Bucket, startBucket } from '../../support/database/bucket.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { silentLog } from '../../support/logs.ts'
import { waitFor } from '../../support/waitFor.ts'

let bucket: Bucket
let database: TestDatabase
beforeAll(async () => {
  bucket = await startBucket()
  database = await createTestDatabase()
})
afterAll(async () => {
  await bucket[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const settings = (more: Partial<BlobStoreSettings> = {}): BlobStoreSettings => ({
  ...parseConfig(bucket.env).blobStore!,
  ...more,
})
const failure = (work: Promise<unknown>) => work.then(() => null).catch((error: Error) => error)
/**
 * Returns the message of the error with which a promise is rejected, or a text about the value to which the promise
 * resolved.
 */
const outcome = (work: Promise<Buffer | null>) =>
  work.then((bytes) => `resolved to ${bytes?.length} bytes`).catch((error: Error) => error.message)
const large = (text: string) => Buffer.from(text.repeat(100_000 / text.length))

describe('the object store client reads and writes objects', () => {
  test('the object store client writes, reads and removes objects, and reads a missing object as null', async () => {
    const { store } = bucket
    await store.put('one', Buffer.from('bytes'))
    await store.put('one', Buffer.from('bytes'))
    expect(bucket.names()).toContain('purser/one')
    expect((await store.get('one', 5))?.toString()).toBe('bytes')
    await store.remove('one')
    await store.remove('one')
    expect(await store.get('one', 5)).toBeNull()
  })

  test('the object store client refuses an object with more bytes than the caller expects, and still serves the next read', async () => {
    await bucket.store.put('long', Buffer.alloc(10))
    expect(await outcome(bucket.store.get('long', 9))).toMatch(/over 9 bytes/)
    expect(await bucket.store.get('long', 10)).toHaveLength(10)
  })

  test('an object store that refuses connections counts as unreachable, and is used again without a restart when it accepts connections', async () => {
    await bucket.proxy.cut()
    expect(await failure(bucket.store.put('two', Buffer.from('x')))).toBeInstanceOf(BlobsAwayError)
    await bucket.proxy.mend()
    await waitFor('the store', async () => (await failure(bucket.store.get('two', 1))) === null)
  })

  test('if an object store hangs, the first caller waits until the deadline, and the next callers fail at once', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await waitFor('the server', () => silent.listening)
    const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const deadlineMs = 300
    const store = openObjectStore(settings({ endpoint }), fetch, silentLog, { deadlineMs })
    const startMs = performance.now()
    expect(await failure(store.put('x', Buffer.from('x')))).toBeInstanceOf(BlobsAwayError)
    expect(performance.now() - startMs).toBeGreaterThan(deadlineMs - 5)
    const nextMs = performance.now()
    for (let n = 0; n < 50; n++) {
      expect(await failure(store.get('x', 1))).toBeInstanceOf(BlobsAwayError)
    }
    // If each of the 50 calls waited for its own deadline, the calls would take 50 times as long.
    expect(performance.now() - nextMs).toBeLessThan(25 * deadlineMs)
    silent.close()
  })

  test('an object store without its bucket counts as unreachable, so that stored objects do not seem to be deleted', async () => {
    const store = openObjectStore(settings({ bucket: 'other' }), fetch, silentLog)
    const error = await failure(store.get('x', 1))
    expect(error).toBeInstanceOf(BlobsAwayError)
    expect(error?.message).toBe('the object store is away: 404 NoSuchBucket')
  })

  test('if a proxy in front of the object store answers 404, the service does not treat an object as lost or deleted', async () => {
    // The proxy Traefik answers 404 while the object store behind it restarts, so a status 404 alone does not prove
    // that an object is missing.
    const fetch404 = (async () => new Response('404 page not found', { status: 404 })) as never
    const calls = [
      (store: typeof bucket.store) => store.get('x', 1),
      (store: typeof bucket.store) => store.remove('x'),
    ]
    for (const call of calls) {
      const error = await failure(call(openObjectStore(settings(), fetch404, silentLog)))
      expect(error).toBeInstanceOf(BlobsAwayError)
      expect(error?.message).toBe('the object store is away: 404')
    }
  })

  test('if an object store refuses only deletions, the service still uses the store for all other requests', async () => {
    const body = '<Error><Code>AccessDenied</Code></Error>'
    const noDelete = (async (_url: string, { method }: RequestInit) =>
      method === 'DELETE' ? new Response(body, { status: 403 }) : new Response('x')) as never
    const store = openObjectStore(settings(), noDelete, silentLog)
    const error = await failure(store.remove('x'))
    expect(error?.message).toBe('the object store refuses to remove an object: 403 AccessDenied')
    expect(error).not.toBeInstanceOf(BlobsAwayError)
    expect((await store.get('x', 1))?.toString()).toBe('x')
  })

  test.each([
    [413, '<html>413 Request Entity Too Large</html>'],
    [400, '<Error><Code>EntityTooLarge</Code></Error>'],
  ])(
    'if an object store answers %p because one object is too large, the database keeps this content, and the service still uses the store',
    async (status, body) => {
      const limited = (async (url: string, init: RequestInit) =>
        Number((init.body as Uint8Array | undefined)?.length) > 200_000
          ? new Response(body, { status })
          : await fetch(url, init)) as never
      const store = openObjectStore(settings(), limited, silentLog)
      const blobs = createBlobs(database.pool, store)
      const [tooLarge, taken] = [Buffer.alloc(300_000), large('taken ')]
      const ends = await Promise.all([blobs.keep(tooLarge), blobs.keep(taken)])
      expect([ends[0], ends[1]?.length]).toEqual([null, 32])
      expect((await blobs.read({ bytes: tooLarge, blob: null })).equals(tooLarge)).toBe(true)
      expect((await blobs.read({ bytes: Buffer.alloc(0), blob: ends[1]! })).equals(taken)).toBe(
        true,
      )
    },
  )

  test('the errors and logs about an object store contain no URL, signature or credential', async () => {
    const lines: string[] = []
    const log = { warn: (...args: unknown[]) => lines.push(JSON.stringify(args)) }
    const store = openObjectStore(
      settings({ endpoint: 'http://127.0.0.1:1', secretAccessKey: 'canary-of-the-secret' }),
      fetch,
      log as never,
    )
    const error = await failure(store.put('x', Buffer.from('x')))
    const said = `${Bun.inspect(error)} ${lines.join(' ')}`
    expect(lines).toHaveLength(1)
    expect(said).toContain('away')
    expect(said).not.toMatch(/canary|X-Amz|Signature|S3RVER|http:/)
  })
})

describe('the service encrypts a blob (a large content), so that only its own key decrypts it', () => {
  test('an encrypted blob can be decrypted only with its own key and its own bytes', () => {
    const [one, two] = [sealBlob(Buffer.from('secret')), sealBlob(Buffer.from('secret'))]
    expect(openBlob(one).toString()).toBe('secret')
    expect(one.bytes.includes('secret')).toBe(false)
    expect(one.hash.equals(two.hash)).toBe(false)
    expect(() => openBlob({ ...one, key: two.key })).toThrow()
    expect(() => openBlob({ ...one, bytes: two.bytes })).toThrow(/not the one/)
    expect(() => openBlob({ ...one, bytes: Buffer.alloc(3) })).toThrow(/not the one/)
  })

  test('an encrypted empty blob can be decrypted, but bytes that are too short for a nonce and a tag are refused as no blob', () => {
    const empty = sealBlob(Buffer.alloc(0))
    expect(openBlob(empty)).toEqual(Buffer.alloc(0))
    const bytes = empty.bytes.subarray(1)
    expect(() => openBlob({ ...empty, hash: sha256(bytes), bytes })).toThrow(/not the one/)
  })
})

describe('the service keeps large contents in an object store', () => {
  test('contents above 64 KB move to the object store in encrypted form, and contents of up to 64 KB are not moved there', async () => {
    const blobs = createBlobs(database.pool, bucket.store)
    expect(await blobs.keep(Buffer.alloc(64 * 1024))).toBeNull()
    const content = large('marker of the content ')
    const blob = (await blobs.keep(content))!
    const name = `purser/${blob.toString('hex')}`
    expect(bucket.bytesOf(name).includes('marker')).toBe(false)
    expect((await blobs.read({ bytes: Buffer.alloc(0), blob })).equals(content)).toBe(true)
  })

  test('if large contents in the object store were changed or lost, reading them causes an error and never returns wrong bytes', async () => {
    const blobs = createBlobs(database.pool, bucket.store)
    const stored = { bytes: Buffer.alloc(0), blob: (await blobs.keep(large('text '))) as Buffer }
    const path = bucket.path(`purser/${stored.blob.toString('hex')}`)
    const bytes = bucket.bytesOf(`purser/${stored.blob.toString('hex')}`)
    bytes[bytes.length - 1]! ^= 1
    writeFileSync(path, bytes)
    expect((await failure(blobs.read(stored)))?.message).toMatch(/not the one that was written/)
    rmSync(path)
    expect((await failure(blobs.read(stored)))?.message).toMatch(/is missing/)
  })

  test('large contents of one project are read at most three at a time, and other projects are not delayed', async () => {
    const held = Promise.withResolvers<void>()
    let running = 0
    let most = 0
    const slow: typeof bucket.store = {
      ...bucket.store,
      async get(name, maxBytes) {
        most = Math.max(most, ++running)
        await held.promise
        running--
        return await bucket.store.get(name, maxBytes)
      },
    }
    const blobs = createBlobs(database.pool, slow)
    const content = large('shared ')
    const stored = { bytes: Buffer.alloc(0), blob: await blobs.keep(content) }
    const greedy = Array.from({ length: 20 }, () => blobs.of('greedy').read(stored))
    await waitFor('the first turns', () => running === 3)
    const other = blobs.of('other').read(stored)
    await waitFor('the turn of the other project', () => running === 4)
    held.resolve()
    expect((await other).equals(content)).toBe(true)
    for (const bytes of await Promise.all(greedy)) expect(bytes.equals(content)).toBe(true)
    expect(most).toBe(4)
  })

  test('if BLOB_STORE is not set, contents in the object store are reported as unreachable, not as lost', async () => {
    const blob = await createBlobs(database.pool, bucket.store).keep(large('text '))
    const without = createBlobs(database.pool, null)
    const error = await failure(without.read({ bytes: Buffer.alloc(0), blob }))
    expect(error).toBeInstanceOf(BlobsAwayError)
    expect(error?.message).toMatch(/BLOB_STORE is not set/)
  })
})
