import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const ROOMS = ['api', 'workers', 'sql', 'shared'] as const
type Room = (typeof ROOMS)[number]

/** Who may import whom. */
const MAY_IMPORT: Record<Room, readonly Room[]> = {
  shared: ['shared'],
  sql: ['sql', 'shared'],
  api: ['api', 'sql', 'shared'],
  workers: ['workers', 'sql', 'shared'],
}

/** The files that a process starts with: they alone read the environment and the arguments. */
const ENTRIES = new Set([
  'api/main.ts',
  'api/operations/backupMain.ts',
  'api/operations/secretsMain.ts',
  'api/start.ts',
  'api/smtp/main.ts',
  'api/mcp/main.ts',
  'api/sell/main.ts',
  'api/console/loginMain.ts',
  'workers/main.ts',
  'workers/operations/doctor/doctorMain.ts',
  'workers/operations/doctor/dnsMain.ts',
  'workers/mail/inbound/parserMain.ts',
  'sql/main.ts',
  'sql/keyring/rotateMain.ts',
  'sql/account/keys/newKeyMain.ts',
  'sql/blobs/moveMain.ts',
  'sql/mail/domains/dkimMain.ts',
  'sql/purse/rotateKeyMain.ts',
  'sql/purse/sweepMain.ts',
])

/** What runs in the operator's browser. */
const PAGE = 'api/web/'

/** The aim is 250: a file has one reason to change. Nobody splits one to keep a count. */
const FILE_LINES_MAX = 400
/** Files side by side in a folder: a reader finds one by its name at a glance. */
const FOLDER_FILES_MAX = 20

const files = ROOMS.flatMap((room) =>
  (readdirSync(join(ROOT, room), { recursive: true }) as string[])
    .filter((name) => name.endsWith('.ts') && !name.startsWith('client/dist/'))
    .map((name) => join(room, name)),
)
const sources = files.map((path) => ({
  path,
  room: path.split('/')[0] as Room,
  text: readFileSync(join(ROOT, path), 'utf8'),
}))

/** Source without comments, so that a comment may speak of what code may not do. */
const code = (text: string) =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

/** Which files break a rule, as `path: what was found`. */
const offenders = (rule: (source: (typeof sources)[number]) => string | undefined) =>
  sources.flatMap((source) => {
    const found = rule(source)
    return found === undefined ? [] : [`${source.path}: ${found}`]
  })

test('there is something to check', () => {
  expect(files.length).toBeGreaterThan(40)
  for (const entry of ENTRIES) expect(files).toContain(entry)
})

/** The files that each file imports, types included. */
const imports = new Map(
  sources.map(({ path, text }) => [
    path,
    [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, target]) =>
      relative(ROOT, normalize(join(ROOT, dirname(path), target!))),
    ),
  ]),
)

test('rooms import only whom they may', () => {
  expect(
    offenders(({ path, room }) =>
      imports
        .get(path)!
        // The package's version is everybody's.
        .filter((other) => other !== 'package.json')
        .find((other) => !MAY_IMPORT[room].includes(other.split('/')[0] as Room)),
    ),
  ).toEqual([])
})

test('no file imports itself by way of others, not even for a type', () => {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) {
      circles.push([...way.slice(way.indexOf(path)), path].join(' → '))
      return
    }
    if (done.has(path)) return
    for (const next of imports.get(path) ?? []) visit(next, [...way, path])
    done.add(path)
  }
  for (const path of files) visit(path, [])
  expect(circles).toEqual([])
})

test('a folder of tests has the name of the folder it tests', () => {
  const houses = new Set(files.map((path) => dirname(path)))
  const folders = readdirSync(join(ROOT, 'test'))
    .filter((name) => name !== 'clients')
    .flatMap((name) =>
      name.includes('.')
        ? [name]
        : (readdirSync(join(ROOT, 'test', name), { recursive: true }) as string[]).map((path) =>
            join(name, path),
          ),
    )
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => dirname(path))
  const mirrors = folders.filter((folder) => ROOMS.some((room) => folder.startsWith(room)))
  expect(mirrors.length).toBeGreaterThan(100)
  expect(mirrors.filter((folder) => !houses.has(folder))).toEqual([])
  const others = folders.filter((folder) => !mirrors.includes(folder)).map((f) => f.split('/')[0])
  expect([...new Set(others)].toSorted()).toEqual(['.', 'chaos', 'e2e', 'steps'])
})

test('one name a triple: xRoutes.ts has the routes, x.ts what they do, xDocs.ts their schemas and examples', () => {
  const inApi = sources.filter(
    ({ path, room }) => room === 'api' && !path.startsWith('api/client/') && !path.startsWith(PAGE),
  )
  const nameOf = (path: string) => path.split('/').at(-1)!.replace('.ts', '')
  const routesOf = (text: string) => [
    ...text.matchAll(/^export (?:const|function) (\w+Routes)\b/gm),
  ]
  const astray = inApi.flatMap(({ path, text }) => {
    const routes = routesOf(text).map(([, name]) => name!)
    const isRoutes = path.endsWith('Routes.ts')
    if (routes.length > 0 || isRoutes) return routes.includes(nameOf(path)) ? [] : [path]
    return /(?:View|Operations|Views)\.ts$/.test(path) ? [path] : []
  })
  expect(inApi.length).toBeGreaterThan(100)
  expect(astray).toEqual([])
})

test('shared is pure: no database, no web framework, no files, no sockets', () => {
  const impure =
    /from '(pg|elysia|graphile-worker|bun:sqlite|smtp-server|nodemailer|node:(fs|net|http|https|child_process|dns|os)(\/\w+)?)'/
  // A process looks at its own descriptors, which /proc shows as files.
  const own = 'shared/process/openFiles.ts'
  expect(
    offenders(({ path, room, text }) => {
      const match = room === 'shared' && path !== own ? impure.exec(text) : null
      // isIP and BlockList of node:net open nothing.
      return match === null || /import \{ (isIP|BlockList|[, ])+ \} from 'node:net'/.test(text)
        ? undefined
        : match[0]
    }),
  ).toEqual([])
})

test('SQL text stands only in sql/, and only there is graphile_worker called', () => {
  const statement =
    /\b(select\s[\s\S]{0,200}\sfrom\s|insert\s+into\s|delete\s+from\s|update\s+\w+\s+set\s|graphile_worker\.)/i
  // The spool is a database of the SMTP listener alone, in a file of its own.
  const own = new Set(
    ['spool.ts', 'spoolAddresses.ts', 'spoolThread.ts'].map((name) => `api/smtp/${name}`),
  )
  expect(
    offenders(({ path, room, text }) =>
      room === 'sql' || own.has(path) ? undefined : statement.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('the client library imports nothing but itself', () => {
  const library = /(?:from|import\()\s*'(?!\.)([^']+)'/
  expect(
    offenders(({ path, text }) =>
      path.startsWith('api/client/')
        ? (library.exec(code(text))?.[0] ??
          imports.get(path)!.find((other) => !other.startsWith('api/client/')))
        : undefined,
    ),
  ).toEqual([])
  expect(
    offenders(({ path, text }) =>
      // The seller's proxy is a program of a seller: it uses the library as one does.
      path.startsWith('api/client/') || path.startsWith(PAGE) || path.startsWith('api/sell/')
        ? undefined
        : /from '\.[^']*\/client\/[^']*'/.exec(text)?.[0],
    ),
  ).toEqual([])
})

test('the page of the console, which runs in a browser, imports itself and the client library alone', () => {
  const isPage = (path: string) => path.startsWith(PAGE)
  expect(
    offenders(({ path, text }) => {
      if (!isPage(path)) return imports.get(path)!.find(isPage)
      const library = /(?:\}\s*from|import\()\s*'(?!\.)([^']+)'/.exec(code(text))?.[0]
      return (
        library ??
        imports.get(path)!.find((other) => !isPage(other) && !other.startsWith('api/client/'))
      )
    }),
  ).toEqual([])
})

test('sockets to the outside are opened only in workers/', () => {
  // Not part of the service, but what its users reach it with: the client library, the page of the console in its
  // browser, and the relay of MCP over stdio.
  const own = (path: string) =>
    path.startsWith('api/client/') || path.startsWith(PAGE) || path === 'api/mcp/relay.ts'
  const outbound =
    /\b((?<!async )fetch\(|createTransport\(|https?\.request\(|net\.connect\(|createConnection\(|from 'node:(http|https|tls|dns)'|from 'nodemailer')/
  expect(
    offenders(({ path, room, text }) =>
      room === 'workers' || own(path) ? undefined : outbound.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('the libraries of OpenTelemetry are loaded only for traces', () => {
  expect(
    offenders(({ path, text }) =>
      path === 'shared/process/openTelemetry.ts'
        ? undefined
        : /from '(@opentelemetry\/[^']*|[^']*\/openTelemetry\.ts)'/.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('only entry files read the environment or the arguments', () => {
  expect(
    offenders(({ path, text }) =>
      ENTRIES.has(path) ? undefined : /process\.(env|argv)/.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('only entry files write to the terminal', () => {
  expect(
    offenders(({ path, text }) =>
      ENTRIES.has(path) ? undefined : /console\.|process\.std(out|err)/.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('no file outgrows its one purpose', () => {
  expect(
    offenders(({ text }) => {
      const lines = text.split('\n').length
      return lines > FILE_LINES_MAX ? `${lines} lines` : undefined
    }),
  ).toEqual([])
})

test('a folder holds at most twenty files side by side', () => {
  const tests = (readdirSync(join(ROOT, 'test'), { recursive: true }) as string[])
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => join('test', name))
  const folders = Map.groupBy([...files, ...tests], (path) => dirname(path))
  const full = [...folders].filter(([, own]) => own.length > FOLDER_FILES_MAX)
  expect(full.map(([folder, own]) => `${folder}: ${own.length} files`)).toEqual([])
})

test('jobs are queued by queue_jobs, because add_jobs can drop one', () => {
  expect(
    offenders(({ path, text }) =>
      path.startsWith('test/') ? undefined : /\badd_jobs?\(/.exec(code(text))?.[0],
    ),
  ).toEqual([])
})
