/** Makes a signed-in session of the console without a browser. */
import { randomUUID } from 'node:crypto'
import type { Role } from '../../../shared/people/roles.ts'
import { createSignInLink, startSession } from '../../../sql/account/people/consoleSessions.ts'
import { addPerson } from '../../../sql/account/people/people.ts'
import type { TestService } from '../service.ts'

type Answer = { status: number; headers: Headers; body: any }

/**
 * Calls the API of the console in the same way as the web page of the console. The given `headers` override the default
 * headers.
 */
export type ConsoleClient = {
  cookie: string
  get(path: string, headers?: Record<string, string | null>): Promise<Answer>
  post(path: string, body?: unknown, headers?: Record<string, string | null>): Promise<Answer>
  put(path: string, body: unknown): Promise<Answer>
  patch(path: string, body: unknown): Promise<Answer>
  delete(path: string, headers?: Record<string, string | null>): Promise<Answer>
}

/** Makes a client of `/console/api` with the given cookie. A header whose given value is null is left out. */
export function consoleClient(url: string, cookie: string): ConsoleClient {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    changes: Record<string, string | null> = {},
  ): Promise<Answer> => {
    const wanted: Record<string, string | null> = {
      cookie,
      'x-purser-console': '1',
      'sec-fetch-site': 'same-origin',
      origin: url,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...changes,
    }
    const headers = Object.entries(wanted).filter(
      (header): header is [string, string] => header[1] !== null,
    )
    const response = await fetch(`${url}/console/api${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    return {
      status: response.status,
      headers: response.headers,
      body: isJson ? JSON.parse(text) : text,
    }
  }
  return {
    cookie,
    get: (path, headers) => call('GET', path, undefined, headers),
    post: (path, body, headers) => call('POST', path, body, headers),
    put: (path, body) => call('PUT', path, body),
    patch: (path, body) => call('PATCH', path, body),
    delete: (path, headers) => call('DELETE', path, undefined, headers),
  }
}

/** Adds a person with a role to the service, and starts a console session of this person. */
export async function signInAs(
  service: TestService,
  role: Role,
  projectIds: string[] = [],
): Promise<ConsoleClient & { personId: string; email: string }> {
  const { pool } = service.database
  const email = `${randomUUID()}@people.example`
  const person = await addPerson(pool, { email, name: 'Ada', role, projectIds }, async () => {})
  const started = await startSession(pool, { personId: person!.id, method: 'mail', agent: null })
  const client = consoleClient(service.url, `purser_session=${started!.secret}`)
  return { ...client, personId: person!.id, email }
}

/** Signs in the first operator with a new sign-in link. */
export async function signIn(service: TestService): Promise<ConsoleClient> {
  const token = await createSignInLink(service.database.pool)
  const { status, headers } = await consoleClient(service.url, '').post('/sessions', { token })
  if (status !== 201) throw new Error(`not signed in: ${status}`)
  return consoleClient(service.url, headers.get('set-cookie')!.split(';')[0]!)
}
