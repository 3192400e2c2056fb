/** Tests how the public keys of sellers are found in their DID documents (did:web). */
import { afterAll, expect, test } from 'bun:test'
import { createSellerKeys } from '../../../workers/purse/sellerKeys.ts'
import { answering, closeServers, serve } from '../../support/process/localServer.ts'

const KEY = { kty: 'OKP', crv: 'Ed25519', x: 'AA' }
const OTHER = { ...KEY, x: 'BB' }
type Page = { status?: number; body: string }

afterAll(closeServers)

/** Starts a host that serves a DID document at each of the given paths. */
async function startHost(pages: (did: string) => Record<string, Page>) {
  const asked: string[] = []
  const port = await serve((request, response) => {
    const { url = '' } = request
    asked.push(url)
    const { status = 200, body } = pages(did)[url] ?? { status: 404, body: '' }
    response.writeHead(status)
    response.end(body)
  })
  const did = `did:web:127.0.0.1%3A${port}`
  const find = createSellerKeys({ allowPrivate: true })(`127.0.0.1:${port}`)
  return { did, port, asked, find }
}
const document = (...keys: [id: string, publicKeyJwk?: object][]): Page => ({
  body: JSON.stringify({
    verificationMethod: keys.map(([id, publicKeyJwk]) => ({ id, publicKeyJwk })),
  }),
})
const OWN = '/.well-known/did.json'

test('a key in the DID document of a seller’s host belongs to the host, and the document is downloaded only once', async () => {
  const { did, asked, find } = await startHost((did) => ({
    [OWN]: document([`${did}#a`, OTHER], [`${did}#b`, KEY], [`${did}#c`]),
  }))
  expect(await find(`${did}#b`)).toEqual({ jwk: KEY as never, isOfHost: true })
  expect(await find(`${did}#a`)).toEqual({ jwk: OTHER as never, isOfHost: true })
  for (const name of ['c', 'd']) expect([name, await find(`${did}#${name}`)]).toEqual([name, null])
  expect(asked).toEqual([OWN])
})

test('a DID document of a seller’s host may name its keys by a relative DID URL', async () => {
  // The id `#a` is relative: it stands for the DID of the document with this fragment (DID Core §3.2.2), so the key is
  // found by its full DID URL.
  const { did, find } = await startHost(() => ({ [OWN]: document(['#a', KEY]) }))
  expect(await find(`${did}#a`)).toEqual({ jwk: KEY as never, isOfHost: true })
  expect(await find(`${did}#b`)).toBeNull()
})

test('a key in another DID document belongs to a seller’s host only if the DID document of the host also lists the key', async () => {
  for (const [own, isOfHost] of [
    [[['x', OTHER], ['y'], ['z', KEY]], true],
    [[['x', OTHER], ['y']], false],
    [[['x', { ...KEY, crv: 'Ed448' }]], false],
    [[], false],
  ] as [[string, object?][], boolean][]) {
    const { did, asked, find } = await startHost((did) => ({
      [OWN]: document(...own),
      '/shops/joke/did.json': document([`${did}:shops:joke#a`, KEY]),
    }))
    expect([own, await find(`${did}:shops:joke#a`)]).toEqual([own, { jwk: KEY as never, isOfHost }])
    expect(asked).toEqual(['/shops/joke/did.json', OWN])
  }
})

test('a key in another DID document does not belong to a seller’s host if the host has no DID document', async () => {
  const { did, find } = await startHost((did) => ({
    '/a/did.json': document([`${did}:a#k`, KEY]),
  }))
  expect(await find(`${did}:a#k`)).toEqual({ jwk: KEY as never, isOfHost: false })
})

test('a DID document that is missing, too long or malformed gives no keys, and is not downloaded again', async () => {
  const whole = (did: string) => document([`${did}#a`, KEY]).body
  for (const page of [
    (did: string) => ({ status: 404, body: whole(did) }),
    (did: string) => ({ status: 500, body: whole(did) }),
    (did: string) => ({ body: whole(did) + ' '.repeat(64 * 1024) }),
    (did: string) => ({ body: `${whole(did)}}` }),
    () => ({ body: '{"verificationMethod":{}}' }),
    () => ({ body: '' }),
  ]) {
    const { did, asked, find } = await startHost((did) => ({ [OWN]: page(did) }))
    for (let n = 0; n < 2; n++) expect(await find(`${did}#a`)).toBeNull()
    expect(asked).toEqual([OWN])
  }
})

test('a DID that is not a did:web of a plain host name is not looked up', async () => {
  const { did, asked, find } = await startHost((did) => ({ [OWN]: document([`${did}#a`, KEY]) }))
  for (const kid of [
    '',
    '#a',
    'did:key:z6Mk#a',
    `x${did}#a`,
    `${did}%3A1#a`,
    `${did}%2Fx#a`,
    `${did}/x#a`,
  ]) {
    expect([kid, await find(kid)]).toEqual([kid, null])
  }
  expect(asked).toEqual([])
})

test('the DID document of a host is downloaded only over https, except from the local machine', async () => {
  const { port, asked } = await startHost(() => ({}))
  const policy = { allowPrivate: true, resolve: answering('127.0.0.1') }
  const host = `shop.example:${port}`
  const did = `did:web:shop.example%3A${port}`
  expect(await createSellerKeys(policy)(host)(`${did}#a`)).toBeNull()
  expect(asked).toEqual([])
})
