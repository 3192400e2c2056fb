import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Asset, assetResponse, IMMUTABLE, PAGE_HEADERS, toAsset } from '../http/asset.ts'
import { notFound } from '../http/errors.ts'
import { findAsset, withAddresses } from './assets.ts'
import { openOperation } from './consoleOperation.ts'

/**
 * Sets the Content-Security-Policy of the console page. It allows only resources of this service, and no inline scripts
 * and styles. Frames that show mails have a separate policy.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Purser</title>
<link rel="icon" href="{{icon.svg}}" type="image/svg+xml">
<link rel="stylesheet" href="{{style.css}}">
<script type="module" src="{{app.js}}"></script>
</head>
<body><noscript>The console needs JavaScript.</noscript></body>
</html>
`

let made: Promise<Asset> | null = null

/**
 * Returns the console page. The page names its files by their hashes. Therefore a browser sees a new release at the
 * next load, and requests no file a second time.
 */
async function page({ request }: { request: Request }): Promise<Response> {
  made ??= withAddresses(PAGE)
    .then((html) => toAsset(new TextEncoder().encode(html), PAGE_HEADERS['content-type']))
    .catch((error) => {
      made = null
      throw error
    })
  const headers = { ...PAGE_HEADERS, 'content-security-policy': PAGE_POLICY }
  return assetResponse(await made, request, headers)
}

/**
 * Serves the page of the console and its files. The page holds no data, because its script loads the data. A sign-in
 * link has its token behind a `#` character. Browsers do not send this part of a URL, so no server, proxy or log sees
 * the token. A program that previews links does not use up the token either.
 */
export function pageRoutes() {
  const open = { detail: openOperation() }
  return new Elysia()
    .get('/console', page, open)
    .get('/console/', page, open)
    .get('/console/login', page, open)
    .get('/console/connect', page, open)
    .get('/console/company', page, open)
    .get(
      '/console/assets/:name',
      async ({ params, request }) => {
        const found = await findAsset(params.name)
        if (found === undefined) throw notFound()
        return assetResponse(
          found.asset,
          request,
          found.isHashed ? { 'cache-control': IMMUTABLE } : {},
        )
      },
      { params: t.Object({ name: t.String({ maxLength: 100 }) }), ...open },
    )
}
