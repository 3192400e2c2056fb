import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { assetResponse, PAGE_HEADERS } from '../http/asset.ts'
import { notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import type { MarkdownDocs } from './docsMarkdown.ts'
import { linkedFiles } from './guides.ts'
import { LANDING_PAGE, LANDING_POLICY } from './landing.ts'
import type { OpenApiDocument } from './openApi.ts'
import { findViewerAsset, VIEWER_PAGE, VIEWER_POLICY } from './viewer.ts'

/**
 * Serves the OpenAPI document, the API viewer and the Markdown documentation. The service makes the Markdown
 * documentation only when somebody requests this documentation for the first time.
 */
export function docsRoutes(document: OpenApiDocument, markdown: () => MarkdownDocs) {
  const describe = { tag: 'Service', access: 'public' } as const
  return new Elysia()
    .get('/openapi.json', () => document, {
      detail: operation({
        ...describe,
        cors: true,
        summary: 'This API as an OpenAPI 3.1 document',
        success: { status: 200, description: 'The document.', schema: t.Object({}) },
      }),
    })
    .get('/docs', () => page(VIEWER_PAGE, VIEWER_POLICY), {
      detail: operation({
        ...describe,
        summary: 'This API as a page',
        success: { status: 200, description: 'An HTML page.' },
      }),
    })
    .get('/llms.txt', () => text(markdown().index, 'text/plain'), {
      detail: operation({
        ...describe,
        summary: 'The index of the documentation for language models',
        success: { status: 200, description: 'Markdown (llmstxt.org).' },
      }),
    })
    .get(
      '/docs/:page',
      ({ params }) => {
        const found = markdown().pages.get(params.page)
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

const page = (html: string, policy: string): Response =>
  new Response(html, { headers: { ...PAGE_HEADERS, 'content-security-policy': policy } })

/** Serves pages and files for browsers. They are not part of the documented API. */
export function docsPageRoutes() {
  const open = { detail: { access: 'public' as const, hide: true } }
  const files = linkedFiles()
  const file = (path: string) => {
    const found = files.get(path)
    if (found === undefined) throw notFound()
    return text(found, path.endsWith('.md') ? 'text/markdown' : 'text/plain')
  }
  return new Elysia()
    .get('/SECURITY.md', () => file('SECURITY.md'), open)
    .get('/examples/:name', ({ params }) => file(`examples/${params.name}`), {
      params: t.Object({ name: t.String({ maxLength: 100 }) }),
      ...open,
    })
    .get('/', () => page(LANDING_PAGE, LANDING_POLICY), open)
    .get(
      '/docs/assets/:name',
      async ({ params, request }) => {
        const asset = await findViewerAsset(params.name)
        if (asset === undefined) throw notFound()
        return assetResponse(asset, request)
      },
      { params: t.Object({ name: t.String({ maxLength: 100 }) }), ...open },
    )
}
