import { TOOLS } from '../mcp/tools/tools.ts'
import { errorPage } from './errorPage.ts'
import { type Guide, guides } from './guides.ts'
import { type OpenApiDocument, type OperationObject, plain } from './openApi.ts'

/** Holds the Markdown documentation: the pages by name, and an index of the pages. */
export type MarkdownDocs = { pages: ReadonlyMap<string, string>; index: string }

/**
 * Lists the HTTP statuses of errors that every operation of the API can return. The documentation explains them only
 * once, on the page of errors.
 */
const ANYWHERE = new Set(['401', '408', '415', '500', '503'])

type Media = { content?: { 'application/json'?: { schema?: unknown; example?: unknown } } }

/**
 * Makes the Markdown documentation: one page for each guide and for each tag of the API, a page of errors, a page on
 * MCP, and /llms.txt (llmstxt.org).
 */
export function markdownDocs(document: OpenApiDocument, baseUrl: string): MarkdownDocs {
  const pages: Guide[] = [
    ...guides(baseUrl),
    { name: 'errors', summary: 'Each error code, and its remedy', text: errorPage() },
    { name: 'mcp', summary: 'The MCP tools, and how to connect', text: mcpPage(baseUrl) },
  ]
  const reference = document.tags.map((tag): Guide => {
    const text = tagPage(tag, document.paths)
    return { name: `api-${tag.name.toLowerCase()}`, summary: tag.description, text }
  })
  const links = (pages: Guide[]) =>
    pages.map(({ name, summary }) => `- [${name}](${baseUrl}/docs/${name}.md): ${summary}`)
  const index = [
    '# Purser',
    `> ${document.info.description}`,
    'Send `Authorization: Bearer <key>` with every request: a project key (`loid-…`) acts as one agent, a platform ' +
      'key (`lopk-…`) manages projects. Errors are `{error, message, status}`; `message` says what to change. ' +
      '200 requests a minute, unless the operator sets another limit; a 429 carries `Retry-After` in seconds.',
    '## Guides',
    links(pages).join('\n'),
    '## Reference',
    links(reference).join('\n'),
    '## Optional',
    `- [openapi.json](${baseUrl}/openapi.json): the whole API as OpenAPI 3.1`,
  ]
  return {
    index: `${index.join('\n\n')}\n`,
    pages: new Map([...pages, ...reference].map(({ name, text }) => [`${name}.md`, text])),
  }
}

function tagPage(
  tag: { name: string; description: string },
  paths: OpenApiDocument['paths'],
): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag.name))
      .map(([method, operation]) => operationSection(method, path, operation)),
  )
  return `# ${tag.name}\n\n${tag.description}\n\n${operations.join('\n\n')}\n`
}

function operationSection(method: string, path: string, operation: OperationObject): string {
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: place, required, description, schema }) =>
      `- \`${name}\` (${[place, ...(required ? ['required'] : []), ...rangeOf(schema as Schema)].join('; ')})` +
      (description === undefined ? '' : `: ${description}`),
  )
  const body = (operation.requestBody as Media | undefined)?.content?.['application/json']
  const answers = Object.entries(operation.responses)
  const [status, success] = answers.find(([code]) => code.startsWith('2'))!
  const example = (success as Media).content?.['application/json']?.example
  const errors = answers
    .filter(([code]) => !code.startsWith('2') && !ANYWHERE.has(code))
    .map(([code, { description }]) => `- ${code}: ${description}`)
  return [
    `## ${method.toUpperCase()} ${path}`,
    `${operation.summary}. ${operation.description}`.trim(),
    ...(parameters.length === 0 ? [] : [`Parameters:\n${parameters.join('\n')}`]),
    ...(body === undefined
      ? []
      : [`Request body, for example:\n${json(body.example)}`, `Its schema:\n${json(body.schema)}`]),
    `Answer ${status}: ${success.description}${example === undefined ? '' : `\n${json(example)}`}`,
    ...(errors.length === 0
      ? []
      : [`Errors beside the [common ones](errors.md):\n${errors.join('\n')}`]),
  ].join('\n\n')
}

type Schema = Partial<
  Record<'type' | 'format' | 'pattern' | 'enum' | 'const' | 'default', unknown>
> &
  Partial<Record<'minimum' | 'maximum' | 'minLength' | 'maxLength', number>> & { anyOf?: Schema[] }

/** Returns texts that state the type, the allowed values, the bounds and the default of a parameter. */
function rangeOf(schema: Schema): string[] {
  const { type, format, pattern, minimum, maximum, minLength, maxLength } = schema
  const values = schema.enum ?? schema.anyOf?.map((member) => member.const)
  const isChoice = Array.isArray(values) && values.every((value) => value !== undefined)
  const between = (from: number | undefined, to: number | undefined, unit: string): string[] => {
    if (from === undefined && to === undefined) return []
    if (to === undefined) return [`at least ${from}${unit}`]
    return [from === undefined ? `at most ${to}${unit}` : `${from} to ${to}${unit}`]
  }
  return [
    ...(isChoice ? [values.join(' | ')] : [String(format ?? type ?? 'string')]),
    ...between(minimum, maximum, ''),
    ...between(minLength, maxLength, ' characters'),
    ...(pattern === undefined ? [] : [`matches ${pattern}`]),
    ...(schema.default === undefined ? [] : [`default ${schema.default}`]),
  ]
}

function mcpPage(baseUrl: string): string {
  const connect = { mcpServers: { purser: connection(`${baseUrl}/mcp`) } }
  const tools = TOOLS.map(
    (tool) =>
      `## ${tool.name}\n\n${tool.description}\n\n${tool.scope === 'key' ? 'Any project key.' : `Scope: \`${tool.scope}\`.`} Arguments:\n${json(plain(tool.input))}`,
  )
  return `# MCP

Streamable HTTP at ${baseUrl}/mcp, with a project key. A host that refuses dots in names connects to
${baseUrl}/mcp?names=underscore: the tool names are then \`mail_send\` and so on. The list holds only the tools that the
scopes of the key allow. A failed call answers a tool result with \`isError\`; its text says how to fix the call.

${json(connect)}

${tools.join('\n\n')}
`
}

const connection = (url: string) => ({
  type: 'http',
  url,
  headers: { Authorization: 'Bearer loid-…' },
})

const json = (value: unknown): string => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``
