import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const ROOMS = ['api', 'workers', 'sql', 'shared'] as const
type Room = (typeof ROOMS)[number]

/** Maps each top folder of the source code to the top folders from which its files may import. */
const MAY_IMPORT: Record<Room, readonly Room[]> = {
  shared: ['shared'],
  sql: ['sql', 'shared'],
  api: ['api', 'sql', 'shared'],
  workers: ['workers', 'sql', 'shared'],
}

/**
 * Lists the entry files, in which the service's processes start. Only entry files may read environment variables and
 * command line arguments.
 */
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

/** Holds the folder of the console code that runs in the operator's browser. */
const PAGE = 'api/web/'

/**
 * Limits the number of lines in a source file. The project aims at 250 lines, because a file should have only one
 * reason to change.
 */
const FILE_LINES_MAX = 400
/** Limits the number of files in one folder, so that a reader can find a file by its name quickly. */
const FOLDER_FILES_MAX = 16

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

/** Removes the comments from a source file, because a comment may name things that code must not use. */
const code = (text: string) =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

/** Lists the files that break a rule, each in the form `path: text`. */
const offenders = (rule: (source: (typeof sources)[number]) => string | undefined) =>
  sources.flatMap((source) => {
    const found = rule(source)
    return found === undefined ? [] : [`${source.path}: ${found}`]
  })

test('every folder of the source has files, and every entry file of a process exists', () => {
  expect(files.length).toBeGreaterThan(40)
  for (const entry of ENTRIES) expect(files).toContain(entry)
})

/** Maps each file to the files that it imports, including imports of types. */
const imports = new Map(
  sources.map(({ path, text }) => [
    path,
    [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, target]) =>
      relative(ROOT, normalize(join(ROOT, dirname(path), target!))),
    ),
  ]),
)

test('each top folder of the source imports only the folders that MAY_IMPORT allows', () => {
  expect(
    offenders(({ path, room }) =>
      imports
        .get(path)!
        // Files in every folder may import package.json to read the version, so this import is no violation.
        .filter((other) => other !== 'package.json')
        .find((other) => !MAY_IMPORT[room].includes(other.split('/')[0] as Room)),
    ),
  ).toEqual([])
})

test('no file of the source imports itself through other files, not even for types', () => {
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

test('each folder of tests has the same name as the source folder that it tests', () => {
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

test('an API file xRoutes.ts exports its routes as xRoutes, and the name of no API file ends with View, Views or Operations', () => {
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

test('the folder shared/ imports no database, no web framework, no file access and no sockets', () => {
  const impure =
    /from '(pg|elysia|graphile-worker|bun:sqlite|smtp-server|nodemailer|node:(fs|net|http|https|child_process|dns|os)(\/\w+)?)'/
  // openFiles.ts reads only the open files of its own process, which Linux shows as files below /proc. Therefore it may
  // import the file system.
  const own = 'shared/process/openFiles.ts'
  expect(
    offenders(({ path, room, text }) => {
      const match = room === 'shared' && path !== own ? impure.exec(text) : null
      // The functions isIP and BlockList of node:net open no sockets, so they are allowed.
      return match === null || /import \{ (isIP|BlockList|[, ])+ \} from 'node:net'/.test(text)
        ? undefined
        : match[0]
    }),
  ).toEqual([])
})

test('only the folder sql/ and the spool (disk queue of mail) contain SQL text, and only sql/ calls graphile_worker', () => {
  const statement =
    /\b(select\s[\s\S]{0,200}\sfrom\s|insert\s+into\s|delete\s+from\s|update\s+\w+\s+set\s|graphile_worker\.)/i
  // The mail spool (accepted mail) is a separate SQLite database of the SMTP listener, so its files may contain SQL.
  const own = new Set(
    ['spool.ts', 'spoolAddresses.ts', 'spoolThread.ts'].map((name) => `api/smtp/spool/${name}`),
  )
  expect(
    offenders(({ path, room, text }) =>
      room === 'sql' || own.has(path) ? undefined : statement.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('the client library imports only itself, and the service does not import the library', () => {
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
      // The paywall proxy for sellers (api/sell) may import the client library, because a seller’s own program also
      // uses it.
      path.startsWith('api/client/') || path.startsWith(PAGE) || path.startsWith('api/sell/')
        ? undefined
        : /from '\.[^']*\/client\/[^']*'/.exec(text)?.[0],
    ),
  ).toEqual([])
})

test('the console page in the browser imports only itself and the client library', () => {
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

test('only the folder workers/ opens sockets to the outside', () => {
  // The client library, the console page in the browser, and the MCP relay over stdio run on the machines of the
  // service's users, so they may open connections.
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

test('only openTelemetry.ts imports OpenTelemetry, and no file imports openTelemetry.ts statically', () => {
  expect(
    offenders(({ path, text }) =>
      path === 'shared/process/openTelemetry.ts'
        ? undefined
        : /from '(@opentelemetry\/[^']*|[^']*\/openTelemetry\.ts)'/.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('only entry files read the environment variables or the command line arguments', () => {
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

test('no source file has more than 400 lines', () => {
  expect(
    offenders(({ text }) => {
      const lines = text.split('\n').length
      return lines > FILE_LINES_MAX ? `${lines} lines` : undefined
    }),
  ).toEqual([])
})

test('no source folder has more than sixteen files', () => {
  const tests = (readdirSync(join(ROOT, 'test'), { recursive: true }) as string[])
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => join('test', name))
  const folders = Map.groupBy([...files, ...tests], (path) => dirname(path))
  const full = [...folders].filter(([, own]) => own.length > FOLDER_FILES_MAX)
  expect(full.map(([folder, own]) => `${folder}: ${own.length} files`)).toEqual([])
})

test('only connectionTo.ts and db.ts create database connections, because these two files listen for connection errors', () => {
  const makers = sources.filter(({ text }) => /new pg\.(?:Client|Pool)\b/.test(text))
  expect(makers.map(({ path }) => path).toSorted()).toEqual(['sql/connectionTo.ts', 'sql/db.ts'])
})

test('no code calls add_job or add_jobs directly, because add_jobs can lose a job', () => {
  expect(
    offenders(({ path, text }) =>
      path.startsWith('test/') ? undefined : /\badd_jobs?\(/.exec(code(text))?.[0],
    ),
  ).toEqual([])
})

test('no comment on a declaration begins with "Is the", because the sentence would look like a question', () => {
  const wrong = sources.filter(({ text }) => /\/\*\*\s*(?:\* )?Is (?:the|an?) /.test(text))
  expect(wrong.map(({ path }) => path)).toEqual([])
})

test('no file contains the marks of an unresolved merge conflict', () => {
  const { stdout } = Bun.spawnSync(['git', 'grep', '-nE', '^(<<<<<<<|>>>>>>>) ', '--', '.'], {
    cwd: ROOT,
  })
  expect(stdout.toString()).toBe('')
})
