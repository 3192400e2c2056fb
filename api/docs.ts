import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { docsPage } from './docsPage.ts'
import type { OpenApiDocument } from './openApi.ts'
import { operation } from './operation.ts'

/** The page has no script, loads nothing, and may not be framed. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The OpenAPI document, and the same for people. */
export function docsRoutes(document: OpenApiDocument) {
  const page = docsPage(document)
  return new Elysia()
    .get('/openapi.json', () => document, {
      detail: operation({
        summary: 'This API as an OpenAPI 3.1 document',
        tag: 'Service',
        access: 'public',
        success: { status: 200, description: 'The document.', schema: t.Object({}) },
      }),
    })
    .get(
      '/docs',
      () =>
        new Response(page, {
          headers: {
            'content-type': 'text/html; charset=utf-8',
            'content-security-policy': CONTENT_SECURITY_POLICY,
            'referrer-policy': 'no-referrer',
          },
        }),
      {
        detail: operation({
          summary: 'This API as a page',
          tag: 'Service',
          access: 'public',
          success: { status: 200, description: 'An HTML page.' },
        }),
      },
    )
}
