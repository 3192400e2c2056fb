import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Asset, toAsset } from '../http/asset.ts'

/**
 * Sets the Content-Security-Policy of the API viewer, which allows only resources of this service. The policy allows
 * inline style attributes and `data:` images, because Swagger UI uses both.
 */
export const VIEWER_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "style-src-attr 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const VIEWER_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Purser API</title>
<link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/assets/viewer.css">
<script defer src="/docs/assets/viewer.js"></script>
<script type="module" src="/docs/assets/start.js"></script>
</head>
<body>
<div id="viewer"></div>
<noscript>The same without JavaScript: <a href="/llms.txt">/llms.txt</a>, <a href="/openapi.json">/openapi.json</a>.</noscript>
</body>
</html>
`

const packaged = (name: string) => fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`))

const FILES: Readonly<Record<string, { path: string; contentType: string }>> = {
  'viewer.js': {
    path: packaged('swagger-ui-bundle.js'),
    contentType: 'text/javascript; charset=utf-8',
  },
  'viewer.css': { path: packaged('swagger-ui.css'), contentType: 'text/css; charset=utf-8' },
  'start.js': {
    path: join(import.meta.dir, 'viewer/start.js'),
    contentType: 'text/javascript; charset=utf-8',
  },
}

const loaded = new Map<string, Promise<Asset>>()

/**
 * Returns a file of the API viewer by its name. Returns `undefined` if there is no such file. The first request for a
 * file reads it from disk.
 */
export function findViewerAsset(name: string): Promise<Asset> | undefined {
  const file = Object.hasOwn(FILES, name) ? FILES[name] : undefined
  if (file === undefined) return undefined
  const known = loaded.get(name)
  if (known !== undefined) return known
  const asset = readFile(file.path).then((bytes) =>
    toAsset(new Uint8Array(bytes), file.contentType),
  )
  loaded.set(name, asset)
  return asset
}
