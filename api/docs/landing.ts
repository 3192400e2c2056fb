/**
 * Sets the Content-Security-Policy of the page at `/`. The policy is strict, because this page has no script and loads
 * only images.
 */
export const LANDING_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const LINKS: readonly (readonly [path: string, title: string, text: string])[] = [
  ['/console', 'Console', 'mail, vault, payments, webhooks and jobs, for the operator'],
  ['/docs', 'API', 'documentation of every operation, with a request form'],
  [
    '/docs/agent.md',
    'First steps of an agent',
    'mail and vault over HTTP, MCP or the client library',
  ],
  ['/docs/seller.md', 'First steps of a seller', 'charge for an endpoint or a tool'],
  ['/llms.txt', 'llms.txt', 'the index of the documentation for language models'],
  ['/openapi.json', 'OpenAPI 3.1', 'the API as a JSON document'],
  ['/readyz', 'Health', 'the state of each component'],
]

const STYLE = `:root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;margin:4rem auto;max-width:38rem;padding:0 1.25rem}
h1{display:flex;align-items:center;gap:.6rem}h1 img{width:2rem;height:2rem}dt{font-weight:600;margin-top:1rem}dd{margin:0}a{color:LinkText}`

/** Holds the HTML page at `/`, which links to every page of this service. */
export const LANDING_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Purser</title>
<link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1><img src="/console/assets/icon.svg" alt="">Purser</h1>
<p>An email inbox, a vault and a till for software agents.</p>
<dl>
${LINKS.map(([path, title, text]) => `<dt><a href="${path}">${title}</a></dt><dd>${text}</dd>`).join('\n')}
</dl>
</main>
</body>
</html>
`
