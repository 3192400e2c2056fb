import type { OpenApiDocument, OperationObject } from './openApi.ts'

const STYLE = `
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--get:#0a7d4b;--post:#1a5fb4;--patch:#9a5b00;--delete:#b3261e}
@media (prefers-color-scheme:dark){:root{--get:#57d9a3;--post:#7fb4ff;--patch:#ffc266;--delete:#ff8a80}}
*{box-sizing:border-box}body{font:16px/1.55 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem 1.25rem 4rem}
h1{margin-bottom:0}h2{margin-top:3rem;border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:0;overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,monospace;font-size:.9em}pre{background:var(--soft);padding:.75rem;overflow-x:auto;border-radius:.4rem}
details{border:1px solid var(--line);border-radius:.5rem;margin:.75rem 0;padding:.25rem .9rem}summary{cursor:pointer;padding:.4rem 0}
summary h3{display:inline}summary span{opacity:.8}table{border-collapse:collapse;width:100%}td,th{border-top:1px solid var(--line);padding:.35rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}
.get{color:var(--get)}.post{color:var(--post)}.patch{color:var(--patch)}.delete{color:var(--delete)}nav a{margin-right:1rem}`

/** The documentation page: one HTML text made from the OpenAPI document, complete in itself. */
export function docsPage(document: OpenApiDocument): string {
  const sections = document.tags.map((tag) => section(tag, document.paths)).join('\n')
  const links = document.tags
    .map(({ name }) => `<a href="#${name}">${escapeHtml(name)}</a>`)
    .join('')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Purser API</title><style>${STYLE}</style></head><body>
<header><h1>Purser API</h1><p>${escapeHtml(String(document.info.description))}</p>
<p>Send <code>Authorization: Bearer &lt;key&gt;</code> with every request. The same as data: <a href="/openapi.json">/openapi.json</a>.</p>
<nav aria-label="Sections">${links}</nav></header>
<main>${sections}</main></body></html>`
}

function section(
  tag: { name: string; description: string },
  paths: OpenApiDocument['paths'],
): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, described]) => described.tags.includes(tag.name))
      .map(([method, described]) => operationBlock(method, path, described)),
  )
  return `<section><h2 id="${tag.name}">${escapeHtml(tag.name)}</h2><p>${escapeHtml(tag.description)}</p>${operations.join('\n')}</section>`
}

function operationBlock(method: string, path: string, described: OperationObject): string {
  return `<details id="${described.operationId}"><summary><h3><code><span class="${method}">${method.toUpperCase()}</span> ${escapeHtml(path)}</code></h3> <span>${escapeHtml(described.summary)}</span></summary>
<p>${inlineCode(escapeHtml(described.description))}</p>
${parameterTable(described)}${bodyBlock(described)}${responseTable(described)}</details>`
}

function parameterTable({ parameters = [] }: OperationObject): string {
  if (parameters.length === 0) return ''
  const rows = parameters.map(
    (parameter) =>
      `<tr><td><code>${escapeHtml(String(parameter.name))}</code></td><td>${escapeHtml(String(parameter.in))}</td><td>${escapeHtml(String(parameter.description ?? ''))}</td></tr>`,
  )
  return `<h4>Parameters</h4><table><thead><tr><th>Name</th><th>In</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

type Content = { content?: { 'application/json'?: { schema?: unknown; example?: unknown } } }

function bodyBlock({ requestBody }: OperationObject): string {
  const media = (requestBody as Content | undefined)?.content?.['application/json']
  if (media === undefined) return ''
  return `<h4>Request body</h4>${block(media.example)}<details><summary>Schema</summary>${block(media.schema)}</details>`
}

function responseTable({ responses }: OperationObject): string {
  const rows = Object.entries(responses).map(([status, response]) => {
    const example = (response as Content).content?.['application/json']?.example
    return `<tr><td><code>${status}</code></td><td>${escapeHtml(String(response.description))}${block(example)}</td></tr>`
  })
  return `<h4>Responses</h4><table><thead><tr><th>Status</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

const block = (value: unknown): string =>
  value === undefined ? '' : `<pre>${escapeHtml(JSON.stringify(value, null, 2))}</pre>`

const inlineCode = (html: string): string => html.replace(/`([^`]+)`/g, '<code>$1</code>')

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
