import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Lists the content encodings that a response can have, the best first (RFC 9110 §12.5.3). */
const ENCODINGS = ['br', 'gzip'] as const
type Encoding = (typeof ENCODINGS)[number]

/** Describes a file that an HTML page loads. */
export type Asset = {
  bytes: Uint8Array<ArrayBuffer>
  contentType: string
  hash: string
  /**
   * Holds the compressed bytes of the file. The first request for the file makes them, without blocking the event loop.
   */
  packed: Map<Encoding, Promise<Uint8Array<ArrayBuffer>>>
}

export const toAsset = (bytes: Uint8Array<ArrayBuffer>, contentType: string): Asset => ({
  bytes,
  contentType,
  hash: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
  packed: new Map(),
})

/**
 * Sets the quality of brotli compression. The quality is below the two highest ones, because they make the script only
 * 2 % smaller, and take ten times as long.
 */
const BROTLI_QUALITY = 9
const PACK: Record<Encoding, (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>> = {
  br: async (bytes) => {
    const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY }
    return new Uint8Array(await promisify(brotliCompress)(bytes, { params }))
  },
  gzip: async (bytes) => new Uint8Array(await promisify(gzip)(bytes)),
}

/** Matches the media types of files that are worth compressing, because picture formats are already compressed. */
const PACKABLE = /^(?:text\/|image\/svg\+xml|application\/json)/

/**
 * Returns the best content encoding that the browser accepts. Returns `null` if the browser accepts no content
 * encoding.
 */
function chooseEncoding(header: string | null): Encoding | null {
  const taken = new Map<string, boolean>()
  for (const part of (header ?? '').split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    taken.set(name, !parameters.some((text) => /^q=0(?:\.0{0,3})?$/.test(text)))
  }
  return ENCODINGS.find((name) => taken.get(name)) ?? null
}

async function pack(asset: Asset, encoding: Encoding): Promise<Uint8Array<ArrayBuffer>> {
  const packed = asset.packed.get(encoding) ?? PACK[encoding](asset.bytes)
  asset.packed.set(encoding, packed)
  return await packed
}

const REVALIDATED = 'no-cache'
/**
 * Holds the cache header for a file whose name contains the hash of its bytes. If the bytes change, the file gets
 * another name. Therefore caches may keep it for a year.
 */
export const IMMUTABLE = 'public, max-age=31536000, immutable'

/**
 * Returns the file in a content encoding that the browser accepts. Returns a 304 response if the browser already has
 * the file.
 */
export async function assetResponse(
  asset: Asset,
  request: Request,
  headers: Record<string, string> = {},
): Promise<Response> {
  const isPackable = PACKABLE.test(asset.contentType)
  const encoding = isPackable ? chooseEncoding(request.headers.get('accept-encoding')) : null
  const head: Record<string, string> = {
    'cache-control': REVALIDATED,
    ...headers,
    // The entity tag contains the encoding, because each encoding of a file must have a different entity tag (RFC 9110
    // §8.8.3).
    etag: `"${asset.hash}${encoding === null ? '' : `-${encoding}`}"`,
    ...(isPackable ? { vary: 'accept-encoding' } : {}),
  }
  const known = request.headers
    .get('if-none-match')
    ?.split(',')
    // If-None-Match compares weak entity tags like strong ones (RFC 9110 §13.1.2), and many proxies make the tag of a
    // response weak.
    .map((tag) => tag.trim().replace(/^W\//, ''))
  if (known?.some((tag) => tag === head.etag || tag === '*'))
    return new Response(null, { status: 304, headers: head })
  const body = encoding === null ? asset.bytes : await pack(asset, encoding)
  return new Response(body, {
    headers: {
      ...head,
      'content-type': asset.contentType,
      ...(encoding === null ? {} : { 'content-encoding': encoding }),
    },
  })
}

/** Holds the headers of every HTML page except its Content-Security-Policy. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
  'x-frame-options': 'DENY',
  'cache-control': 'no-cache',
} as const
