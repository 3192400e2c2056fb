import { TOOLS } from '../mcp/tools.ts'
import { agentGuide, sellerGuide } from './guides.ts'
import { type OpenApiDocument, type OperationObject, plain } from './openApi.ts'

/** The Markdown documentation: pages by name, and their index. */
export type MarkdownDocs = { pages: ReadonlyMap<string, string>; index: string }

type Page = { name: string; summary: string; text: string }
type Media = { content?: { 'application/json'?: { schema?: unknown; example?: unknown } } }

/** Writes one page for each tag of the API, for MCP and for each guide, and /llms.txt (llmstxt.org). */
export function markdownDocs(document: OpenApiDocument, baseUrl: string): MarkdownDocs {
  const guides: Page[] = [
    { name: 'agent', summary: 'First five minutes of an agent', text: agentGuide(baseUrl) },
    { name: 'seller', summary: 'First five minutes of a seller', text: sellerGuide(baseUrl) },
    { name: 'mcp', summary: 'The MCP tools, and how to connect', text: mcpPage(baseUrl) },
  ]
  const reference = document.tags.map((tag): Page => {
    const text = tagPage(tag, document.paths)
    return { name: tag.name.toLowerCase(), summary: tag.description, text }
  })
  const links = (pages: Page[]) =>
    pages.map(({ name, summary }) => `- [${name}](${baseUrl}/docs/${name}.md): ${summary}`)
  const index = [
    '# Purser',
    `> ${document.info.description}`,
    'Send `Authorization: Bearer <key>` with every request: a project key (`loid-…`) acts as one agent, a platform ' +
      'key (`lopk-…`) manages projects. Errors are `{error, message, status}`; `message` says what to change. ' +
      '200 requests a minute; a 429 carries `Retry-After` in seconds.',
    '## Guides',
    links(guides).join('\n'),
    '## Reference',
    links(reference).join('\n'),
    '## Optional',
    `- [openapi.json](${baseUrl}/openapi.json): the whole API as OpenAPI 3.1`,
  ]
  return {
    index: `${index.join('\n\n')}\n`,
    pages: new Map([...guides, ...reference].map(({ name, text }) => [`${name}.md`, text])),
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
    ({ name, in: place, description }) =>
      `- \`${name}\` (${place})${description === undefined ? '' : `: ${description}`}`,
  )
  const body = (operation.requestBody as Media | undefined)?.content?.['application/json']
  const answers = Object.entries(operation.responses)
  const [status, success] = answers.find(([code]) => code.startsWith('2'))!
  const example = (success as Media).content?.['application/json']?.example
  const errors = answers
    .filter(([code]) => !code.startsWith('2'))
    .map(([code, { description }]) => `- ${code}: ${description}`)
  return [
    `## ${method.toUpperCase()} ${path}`,
    `${operation.summary}. ${operation.description}`.trim(),
    ...(parameters.length === 0 ? [] : [`Parameters:\n${parameters.join('\n')}`]),
    ...(body === undefined
      ? []
      : [`Request body, for example:\n${json(body.example)}`, `Its schema:\n${json(body.schema)}`]),
    `Answer ${status}: ${success.description}${example === undefined ? '' : `\n${json(example)}`}`,
    `Errors:\n${errors.join('\n')}`,
  ].join('\n\n')
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
