import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import type { MarkdownDocs } from './docsMarkdown.ts'
import { docsPage } from './docsPage.ts'
import type { OpenApiDocument } from './openApi.ts'

/** The page has no script, loads nothing, and may not be framed. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The OpenAPI document, and the same for people and for models. */
export function docsRoutes(document: OpenApiDocument, markdown: MarkdownDocs) {
  const page = docsPage(document)
  const describe = { tag: 'Service', access: 'public' } as const
  return new Elysia()
    .get('/openapi.json', () => document, {
      detail: operation({
        ...describe,
        summary: 'This API as an OpenAPI 3.1 document',
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
          ...describe,
          summary: 'This API as a page',
          success: { status: 200, description: 'An HTML page.' },
        }),
      },
    )
    .get('/llms.txt', () => text(markdown.index, 'text/plain'), {
      detail: operation({
        ...describe,
        summary: 'The documentation, listed for models',
        success: { status: 200, description: 'Markdown (llmstxt.org).' },
      }),
    })
    .get(
      '/docs/:page',
      ({ params }) => {
        const found = markdown.pages.get(params.page)
        if (found === undefined) throw notFound()
        return text(found, 'text/markdown')
      },
      {
        params: t.Object({ page: t.String({ maxLength: 100 }) }),
        detail: operation({
          ...describe,
          summary: 'One part of the documentation as Markdown',
          success: { status: 200, description: 'Markdown.' },
        }),
      },
    )
}

const text = (body: string, type: string): Response =>
  new Response(body, { headers: { 'content-type': `${type}; charset=utf-8` } })
