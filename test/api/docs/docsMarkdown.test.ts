import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTestService, type TestService } from '../../support/service.ts'

const ROOT = join(import.meta.dir, '../../..')

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    smtp: false,
    workers: false,
    env: { BASE_URL: 'https://purser.example.com' },
  })
})
afterAll(() => service[Symbol.asyncDispose]())

const get = (path: string) => fetch(service.url + path)

test('/llms.txt links to an existing page for every part of the documentation', async () => {
  const response = await get('/llms.txt')
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/plain; charset=utf-8',
  ])
  const index = await response.text()
  expect(index).toStartWith('# Purser\n\n> ')
  const links = [...index.matchAll(/\]\(https:\/\/purser\.example\.com(\/[^)]+)\)/g)].map(
    ([, path]) => path!,
  )
  expect(links).toEqual(
    expect.arrayContaining(['/docs/agent.md', '/docs/seller.md', '/docs/mcp.md', '/openapi.json']),
  )
  for (const path of links) {
    const page = await get(path)
    expect([path, page.status]).toEqual([path, 200])
    if (!path.endsWith('.md')) continue
    expect(page.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
    expect(await page.text()).toStartWith('# ')
  }
})

test('the service serves each guide of the folder docs as the repository holds it, with the URL of the running service', async () => {
  const names = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'))
  expect(names.length).toBeGreaterThan(10)
  for (const name of names.map((name) => name.slice(0, -'.md'.length))) {
    const file = readFileSync(join(ROOT, `docs/${name}.md`), 'utf8')
    expect(await (await get(`/docs/${name}.md`)).text()).toBe(
      file.replaceAll('http://127.0.0.1:3000', 'https://purser.example.com'),
    )
  }
})

test('every link of every documentation page leads to an existing target', async () => {
  const index = await (await get('/llms.txt')).text()
  const pages = [...index.matchAll(/https:\/\/purser\.example\.com(\/docs\/[\w-]+\.md)/g)]
  expect(pages.length).toBeGreaterThan(15)
  const dead: string[] = []
  for (const [, page = ''] of pages) {
    const text = (await (await get(page)).text()).replace(/```[\s\S]*?```/g, '')
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)) {
      const url = new URL(target, `https://purser.example.com${page}`)
      if (url.host !== 'purser.example.com') continue
      if (!(await get(url.pathname)).ok) dead.push(`${page}: ${target}`)
    }
  }
  expect(dead).toEqual([])
})

test('every API operation and every MCP tool has an example on a documentation page', async () => {
  const document = (await (await get('/openapi.json')).json()) as any
  const pages = await Promise.all(
    document.tags.map(async ({ name }: any) =>
      (await get(`/docs/api-${name.toLowerCase()}.md`)).text(),
    ),
  )
  const reference = pages.join('\n')
  for (const [path, methods] of Object.entries(document.paths as object)) {
    for (const method of Object.keys(methods)) {
      expect(reference).toContain(`## ${method.toUpperCase()} ${path}\n`)
    }
  }
  expect(reference).toContain('"Shall I order?"')
  expect(reference).toContain('Scope: `mail:send`.')
  const mcp = await (await get('/docs/mcp.md')).text()
  for (const name of ['whoami', 'mail.send', 'mail.get_thread'])
    expect(mcp).toContain(`## ${name}\n`)
  expect(mcp).toContain('https://purser.example.com/mcp?names=underscore')
})

test('a documentation page shows the allowed values, bounds and default of each parameter', async () => {
  const messages = await (await get('/docs/api-messages.md')).text()
  const lines = messages.split('\n')
  const lineOf = (name: string) => lines.find((line) => line.startsWith(`- \`${name}\``))
  expect(lineOf('limit')).toStartWith('- `limit` (query; integer; at least 1; default 50): ')
  expect(lineOf('messageId')).toStartWith('- `messageId` (path; required; string')
  expect(lineOf('before')).toContain('at most 40 characters')
})

test('the documentation explains each error code of the API exactly once', async () => {
  const page = await (await get('/docs/errors.md')).text()
  const codes = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code!)
  expect(codes).toEqual(expect.arrayContaining(['bad_request', 'quota_exceeded', 'unavailable']))
  expect(new Set(codes).size).toBe(codes.length)
  const vault = await (await get('/docs/api-vault.md')).text()
  expect(vault).toContain('- 410: ')
  expect(vault).not.toContain('- 503: ')
})

test('a request for an unknown documentation page gets status 404 in the error format of the API', async () => {
  for (const path of [
    '/docs/nothing.md',
    '/docs/messages',
    '/docs/..%2Fpackage.json',
    '/docs/__proto__',
    '/examples/..%2Fpackage.json',
    '/examples/__proto__',
  ]) {
    const response = await get(path)
    expect([path, response.status, await response.json()]).toEqual([
      path,
      404,
      { error: 'not_found', message: 'Not found', status: 404 },
    ])
  }
})
