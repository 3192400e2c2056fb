import { createHash } from 'node:crypto'

/** A file that a page loads. */
export type Asset = { bytes: Uint8Array<ArrayBuffer>; contentType: string; etag: string }

export const toAsset = (bytes: Uint8Array<ArrayBuffer>, contentType: string): Asset => ({
  bytes,
  contentType,
  etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
})

/** Answers with the file, or with 304 where the browser has it. */
export function assetResponse(asset: Asset, request: Request): Response {
  const headers = { etag: asset.etag, 'cache-control': 'no-cache' }
  if (request.headers.get('if-none-match') === asset.etag) {
    return new Response(null, { status: 304, headers })
  }
  return new Response(asset.bytes, { headers: { ...headers, 'content-type': asset.contentType } })
}

/** Headers of every HTML page, beside its policy. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
  'x-frame-options': 'DENY',
  'cache-control': 'no-cache',
} as const
